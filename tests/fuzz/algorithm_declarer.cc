#include "tests/fuzz/algorithm_declarer.h"

#include "penstock/arg_max.h"
#include "penstock/count_of.h"
#include "penstock/expr.h"
#include "penstock/histogram.h"
#include "penstock/map.h"
#include "penstock/reduce_by_key.h"
#include "penstock/scan.h"
#include "penstock/select.h"
#include "penstock/sort.h"
#include "tests/fuzz/algorithm_values.h"

namespace penstock::fuzz {

using Step = AlgorithmStep;

AlgorithmDeclarer::AlgorithmDeclarer(Graph& graph, const CountAt& kept_count, State<int32_t>& state, int64_t most,
                                     bool any_length)
    : most_(most),
      any_length_(any_length),
      param_(graph.Param<int32_t>("param")),
      length_(graph.Param<int64_t>("length", AtMost(most))),
      arrays_(kArrays.size()) {
  for (size_t a = 0; a < kArrays.size(); ++a) {
    if (a == kState) arrays_[a] = graph.Use(state);
    else if (a != kKept) arrays_[a] = MakeArray(graph, a);
  }
  arrays_[kKept] = graph.Output<int32_t>(kArrays[kKept].name, CountOf(ReadAt(kept_count), LengthOf(kKept)));
}

BufferHandle<int32_t> AlgorithmDeclarer::MakeArray(Graph& graph, size_t index) const {
  const char* const name = kArrays[index].name;
  const Extent extent(LengthOf(index));
  switch (kArrays[index].role) {
    case BufferRole::kInput: return graph.Input<int32_t>(name, extent);
    case BufferRole::kInOut: return graph.InOut<int32_t>(name, extent);
    case BufferRole::kOutput: return graph.Output<int32_t>(name, extent);
    default: return graph.Buffer<int32_t>(name, extent);
  }
}

Dim AlgorithmDeclarer::LengthOf(size_t array) const {
  if (kArrays[array].length == Length::kOne) return 1;
  if (kArrays[array].length == Length::kBins) return kBinCount;
  return any_length_ ? Dim(length_) : Dim(most_);
}

void AlgorithmDeclarer::Declare(Graph& graph, const std::vector<Step>& program) const {
  for (const Step& step : program) {
    if (step.kind == Step::kRepeat) {
      graph.Repeat(step.name, step.number, [&](Graph& body) { Declare(body, step.body); });
    } else {
      One(graph, step);
    }
  }
}

template <class F>
void AlgorithmDeclarer::WithCount(const Step& step, F f) const {
  const auto declare = [&](const auto&... count) {
    auto node = f(count...);
    if (step.device >= 0) node.On(step.device);
  };
  if (!step.of.has_value()) return declare();
  declare(CountOf(ReadAt(*step.of), step.wrong_maximum ? Dim(most_ + 1) : LengthOf(step.from)));
}

void AlgorithmDeclarer::One(Graph& graph, const Step& step) const {
  const Name name(step.name);
  const auto from = arrays_[step.from], with = arrays_[step.with], to = arrays_[step.to], also = arrays_[step.also];
  const SortOptions order{.descending = step.way % 2 != 0};
  switch (step.kind) {
    case Step::kMap: return Map(graph, step);
    case Step::kScan: return Scan(graph, step);
    case Step::kReduce: return Reduce(graph, step);
    case Step::kSelect:
      return WithCount(step, [&](const auto&... count) {
        return Select(graph, name, count..., Read(from), Write(to), WriteAt(step.count), IsKept{step.number});
      });
    case Step::kHistogram:
      return WithCount(step, [&](const auto&... count) {
        return Histogram(graph, name, count..., Read(from), Write(to), BinOf{step.number});
      });
    case Step::kReduceByKey:
      return WithCount(step, [&](const auto&... count) {
        return ReduceByKey(graph, name, count..., Read(from), Read(with), Write(to), Write(also), WriteAt(step.count),
                           WrappingSum());
      });
    case Step::kArgMax:
      return WithCount(
          step, [&](const auto&... count) { return ArgMax(graph, name, count..., Read(from), WriteAt(step.count)); });
    case Step::kSort:
      return WithCount(step, [&](const auto&...) { return Sort(graph, name, Read(from), Write(to), order); });
    case Step::kSortPairs:
      return WithCount(step, [&](const auto&...) {
        return SortPairs(graph, name, Read(from), Write(to), Read(with), Write(also), order);
      });
    case Step::kCopy: return WithCount(step, [&](const auto&...) { return graph.Copy(name, from, to); });
    case Step::kFill: return WithCount(step, [&](const auto&...) { return graph.Fill(name, to, step.number); });
    case Step::kSetCount:
      return WithCount(
          step, [&](const auto&...) { return graph.ParallelFor(name, 1, SetNumber(), WriteAt(step.count), param_); });
    default: {
      const CountedExtent<int32_t> extent = CountOf(ReadAt(step.of.value_or(CountAt())), LengthOf(step.from));
      if (step.kind == Step::kCountedFor) {
        graph.ParallelFor(name, extent, WriteNumbered(), Write(to), Read(from), step.number);
      } else {
        graph.ParallelFor(name, extent, ChangeSome(), ReadWrite(to), Read(from), step.number);
      }
    }
  }
}

void AlgorithmDeclarer::Map(Graph& graph, const Step& step) const {
  using expr::Of;
  const auto a = Of(arrays_[step.from]), b = Of(arrays_[step.with]);
  const auto write = [&](const auto& formula) {
    WithCount(step,
              [&](const auto&...) { return penstock::Map(graph, Name(step.name), Write(arrays_[step.to]), formula); });
  };
  switch (step.way % 8) {
    case 0: return write(a + b);
    case 1: return write(a * 3 - param_);
    case 2: return write(expr::Max(a, b) - step.number);
    case 3: return write(expr::Select(a < b, b, a + 1));
    case 4: return write(a / b);
    case 5: return write(expr::Abs(a) - b);
    case 6: return write(expr::Cast<uint8_t>(a) + b);
    default: return write(param_);
  }
}

void AlgorithmDeclarer::Scan(Graph& graph, const Step& step) const {
  const ScanOptions options{.kind = (step.way & 64) != 0 ? ScanKind::kExclusive : ScanKind::kInclusive,
                            .order = (step.way & 128) != 0 ? CombineOrder::kAny : CombineOrder::kFixed};
  const auto from = Read(arrays_[step.from]);
  const auto to = Write(arrays_[step.to]);
  const Name name(step.name);
  WithCount(step, [&](const auto&... count) {
    if (step.without_initial) return penstock::Scan(graph, name, count..., from, to, LastOdd(), kExclusive);
    switch (step.way % 3) {
      case 0: return penstock::Scan(graph, name, count..., from, to, WrappingSum(), step.number, options);
      case 1: return penstock::Scan(graph, name, count..., from, to, Max(), step.number, options);
      default: return penstock::Scan(graph, name, count..., from, to, LastOdd(), step.number, options);
    }
  });
}

void AlgorithmDeclarer::Reduce(Graph& graph, const Step& step) const {
  const auto from = Read(arrays_[step.from]);
  const auto to = WriteAt(step.count);
  WithCount(step, [&](const auto&... count) {
    if (step.way % 2 == 0) return graph.Reduce(Name(step.name), count..., from, to, WrappingSum());
    return graph.Reduce(Name(step.name), count..., from, to, Min());
  });
}

}  // namespace penstock::fuzz
