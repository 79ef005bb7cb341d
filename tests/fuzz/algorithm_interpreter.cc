#include "tests/fuzz/algorithm_interpreter.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "tests/fuzz/algorithm_values.h"

namespace penstock::fuzz {

using Step = AlgorithmStep;
using Numbers = std::vector<int32_t>;

void AlgorithmInterpreter::Run(const std::vector<Step>& program) {
  for (const Step& step : program) {
    for (int i = 0; step.kind == Step::kRepeat && i < step.number; ++i) Run(step.body);
    if (step.kind != Step::kRepeat) Do(step);
  }
}

// Where an element that is not known decides, nothing of the result is known.
void AlgorithmInterpreter::Do(const Step& step) {
  Cells taken = memory_[step.from];
  bool known = true;
  if (step.of.has_value()) {
    const Cell count = at(*step.of);
    known = count.known;
    taken.resize(std::min(taken.size(), static_cast<size_t>(std::max(count.value, 0))));
  }
  Cells& to = memory_[step.to];
  const auto are_known = [](const Cells& cells) {
    return std::all_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.known; });
  };
  switch (step.kind) {
    case Step::kFill: to.assign(to.size(), {step.number, true}); return;
    case Step::kCopy: to = taken; return;
    case Step::kSetCount: Put(step.count, param_); return;
    case Step::kMap:
      for (size_t i = 0; i < to.size(); ++i) {
        const Cell a = taken[i], b = memory_[step.with][i];
        to[i] = {Formula(step, a.value, b.value), step.way % 8 == 7 || (a.known && b.known)};
      }
      return;
    case Step::kCountedFor:
    case Step::kCountedChange:
      if (!known) return Forget(step.to);
      if (step.kind == Step::kCountedFor) BeginSome(step.to);
      for (size_t i = 0; i < taken.size(); ++i) {
        const int32_t given = taken[i].value;
        if (step.kind == Step::kCountedFor) {
          to[i] = {given ^ step.number ^ static_cast<int32_t>(i), taken[i].known};
        } else {
          to[i] = {to[i].value ^ (given & step.number), to[i].known && taken[i].known};
        }
      }
      return;
    case Step::kScan: return known ? Scan(step, taken) : Forget(step.to);
    default: break;
  }
  const bool pairs = step.kind == Step::kSortPairs || step.kind == Step::kReduceByKey;
  known = known && are_known(taken);
  if (pairs) {
    Cells with = memory_[step.with];
    with.resize(taken.size());
    known = known && are_known(with);
  }
  if (!known) {
    if (step.kind != Step::kReduce && step.kind != Step::kArgMax) Forget(step.to), Forget(step.also);
    if (step.WritesCount()) memory_[step.count.array][static_cast<size_t>(step.count.at)].known = false;
    return;
  }
  switch (step.kind) {
    case Step::kSelect: return Keep(step, taken);
    case Step::kHistogram: return CountBins(step, taken);
    case Step::kReduceByKey: return ReduceRuns(step, taken);
    case Step::kReduce: return Reduce(step, taken);
    case Step::kArgMax: {
      const auto less = [](const Cell& a, const Cell& b) { return a.value < b.value; };
      const auto most = std::max_element(taken.begin(), taken.end(), less);
      return Put(step.count, taken.empty() ? -1 : most - taken.begin());
    }
    default: return Sort(step);
  }
}

int32_t AlgorithmInterpreter::Formula(const Step& step, int32_t a, int32_t b) const {
  const auto wide = static_cast<int64_t>(a);
  switch (step.way % 8) {
    case 0: return Wrapped(static_cast<uint64_t>(wide + b));
    case 1: return Wrapped(static_cast<uint64_t>(wide * 3 - param_));
    case 2: return Wrapped(static_cast<uint64_t>(std::max<int64_t>(wide, b) - step.number));
    case 3: return a < b ? b : Wrapped(static_cast<uint64_t>(wide + 1));
    case 4: return b == 0 ? 0 : Wrapped(static_cast<uint64_t>(wide / b));
    case 5: return Wrapped(static_cast<uint64_t>((wide < 0 ? -wide : wide) - b));
    case 6: return Wrapped(static_cast<uint64_t>((wide & 0xff) + b));
    default: return param_;
  }
}

void AlgorithmInterpreter::Scan(const Step& step, const Cells& taken) {
  const auto combine = [&](int32_t a, int32_t b) {
    if (step.way % 3 == 0) return Wrapped(static_cast<uint64_t>(int64_t{a} + b));
    return step.way % 3 == 1 ? std::max(a, b) : b % 2 != 0 ? b : a;
  };
  const bool exclusive = step.way & 64;
  Cell sum{step.number, true};
  Cells& to = memory_[step.to];
  if (step.of.has_value()) BeginSome(step.to);
  for (size_t i = 0; i < taken.size(); ++i) {
    const Cell before = sum;
    sum = {combine(sum.value, taken[i].value), sum.known && taken[i].known};
    to[i] = exclusive ? before : sum;
  }
}

void AlgorithmInterpreter::Keep(const Step& step, const Cells& taken) {
  Numbers kept;
  for (const Cell& cell : taken) {
    if (((cell.value ^ step.number) & 6) != 0) kept.push_back(cell.value);
  }
  BeginSome(step.to);
  Put(step.to, kept);
  Put(step.count, static_cast<int64_t>(kept.size()));
}

void AlgorithmInterpreter::CountBins(const Step& step, const Cells& taken) {
  Numbers counts(kBinCount);
  for (const Cell& cell : taken) {
    const uint32_t bin = static_cast<uint32_t>(cell.value ^ step.number) % 9;
    if (bin >= 1 && bin <= kBinCount) ++counts[bin - 1];
  }
  Put(step.to, counts);
}

void AlgorithmInterpreter::Sort(const Step& step) {
  const Cells keys = memory_[step.from], values = memory_[step.with];
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int32_t first = keys[step.way % 2 == 0 ? a : b].value, second = keys[step.way % 2 == 0 ? b : a].value;
    return first != second ? first < second : a < b;
  });
  for (size_t i = 0; i < order.size(); ++i) {
    memory_[step.to][i] = keys[order[i]];
    if (step.kind == Step::kSortPairs) memory_[step.also][i] = values[order[i]];
  }
}

void AlgorithmInterpreter::ReduceRuns(const Step& step, const Cells& taken) {
  Numbers unique, totals;
  for (size_t i = 0; i < taken.size(); ++i) {
    const int32_t value = memory_[step.with][i].value;
    if (i > 0 && taken[i].value == taken[i - 1].value) {
      totals.back() = Wrapped(static_cast<uint64_t>(int64_t{totals.back()} + value));
    } else {
      unique.push_back(taken[i].value);
      totals.push_back(value);
    }
  }
  BeginSome(step.to);
  BeginSome(step.also);
  Put(step.to, unique);
  Put(step.also, totals);
  Put(step.count, static_cast<int64_t>(unique.size()));
}

void AlgorithmInterpreter::Reduce(const Step& step, const Cells& taken) {
  int64_t result = step.way % 2 == 0 ? 0 : std::numeric_limits<int32_t>::max();
  for (const Cell& cell : taken) {
    result =
        step.way % 2 == 0 ? Wrapped(static_cast<uint64_t>(result + cell.value)) : std::min<int64_t>(result, cell.value);
  }
  Put(step.count, result);
}

void AlgorithmInterpreter::BeginSome(size_t array) {
  if (kArrays[array].role == BufferRole::kInternal || array == kKept) Forget(array);
}
void AlgorithmInterpreter::Forget(size_t array) {
  for (Cell& cell : memory_[array]) cell.known = false;
}
void AlgorithmInterpreter::Put(size_t array, const Numbers& values) {
  for (size_t i = 0; i < values.size(); ++i) memory_[array][i] = {values[i], true};
}

}  // namespace penstock::fuzz
