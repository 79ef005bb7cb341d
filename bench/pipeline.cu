// What a pipeline costs an item: items whose run is a CUDA graph of one kernel of one thread, three of them at once.
//
// items    many items, as fast as they go, in microseconds each. By hand: an exec launched over and over on a stream
// with
//          nothing else; three execs on three streams, each launched again once an event behind it is complete; the
//          same on one stream. Penstock: pulled (Run with a source and a sink), and pushed and popped by one thread.
// latency  one item at a time, from before it is handed in until its end is known: medians, and the slow ones. By hand:
//          launch and wait, by cudaStreamSynchronize and by polling an event.
//
// Every kernel counts on the device what it was; the count is checked behind each run.
//
// Without a CUDA device the Penstock half runs on a host device, for its results only.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

constexpr int kSlots = 3;

__global__ void CountKernel(unsigned long long* count) { atomicAdd(count, 1ull); }

// A word on the device, or on the host where there is none.
class Counter {
 public:
  explicit Counter(bool on_device) : on_device_(on_device) {
    if (on_device_) word_ = MakeDeviceMemory<unsigned long long>(1);
  }
  unsigned long long* word() { return on_device_ ? word_ : &host_; }
  void Clear() {
    host_ = 0;
    if (on_device_) Check(cudaMemset(word_, 0, sizeof(*word_)), "clearing the count");
  }
  void Expect(int count, const std::string& way) {
    if (on_device_) Check(cudaMemcpy(&host_, word_, sizeof(*word_), cudaMemcpyDeviceToHost), "reading the count");
    if (host_ != static_cast<unsigned long long>(count)) {
      Fail(way + ": " + std::to_string(host_) + " kernels ran for " + std::to_string(count) + " items");
    }
  }

 private:
  const bool on_device_;
  unsigned long long* word_ = nullptr;
  unsigned long long host_ = 0;
};

// Three execs of the graph of one kernel.
class RawItems {
 public:
  explicit RawItems(Counter& counter) {
    cudaGraph_t graph = nullptr;
    Check(cudaGraphCreate(&graph, 0), "creating a graph");
    unsigned long long* word = counter.word();
    std::array<void*, 1> argv{&word};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(&CountKernel);
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = argv.data();
    cudaGraphNode_t node = nullptr;
    Check(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params), "adding a node");
    for (int s = 0; s < kSlots; ++s) {
      streams_.push_back(MakeStream());
      events_.push_back(MakeEvent());
      cudaGraphExec_t exec = nullptr;
      Check(cudaGraphInstantiate(&exec, graph, 0), "instantiating a graph");
      Check(cudaGraphUpload(exec, streams_.back()), "uploading a graph");
      execs_.push_back(exec);
    }
    Check(cudaDeviceSynchronize(), "uploading graphs");
    Check(cudaGraphDestroy(graph), "destroying a graph");
  }

  double Bare(int items) {
    return Time([&] {
      for (int i = 0; i < items; ++i) Launch(0, 0);
      Check(cudaStreamSynchronize(streams_[0]), "waiting");
    });
  }
  double Slots(int items, bool one_stream) {
    return Time([&] {
      for (int i = 0; i < items; ++i) {
        const size_t slot = static_cast<size_t>(i % kSlots), stream = one_stream ? 0 : slot;
        if (i >= kSlots) Poll(slot);
        Launch(slot, stream);
        Check(cudaEventRecord(events_[slot], streams_[stream]), "recording");
      }
      for (size_t slot = 0; slot < kSlots; ++slot) Poll(slot);
    });
  }
  double OneSynchronized() {
    return Time([&] {
      Launch(0, 0);
      Check(cudaStreamSynchronize(streams_[0]), "waiting");
    });
  }
  double OnePolled() {
    return Time([&] {
      Launch(0, 0);
      Check(cudaEventRecord(events_[0], streams_[0]), "recording");
      Poll(0);
    });
  }

 private:
  template <class F>
  static double Time(F f) {
    const Clock::time_point begin = Clock::now();
    f();
    return Microseconds(Clock::now() - begin);
  }
  void Launch(size_t slot, size_t stream) { Check(cudaGraphLaunch(execs_[slot], streams_[stream]), "launching"); }
  void Poll(size_t slot) {
    cudaError_t code;
    while ((code = cudaEventQuery(events_[slot])) == cudaErrorNotReady) {
    }
    Check(code, "polling");
  }

  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<cudaGraphExec_t> execs_;
};

class PenstockItems {
 public:
  PenstockItems(ps::Runtime& runtime, Counter& counter, ps::Mode mode) {
    ps::Graph graph("count");
    graph.Kernel("count", &CountKernel, ps::Blocks({1, 1, 1}, {1, 1, 1}), counter.word())
        .HostFallback([](unsigned long long* word) { __atomic_fetch_add(word, 1ull, __ATOMIC_RELAXED); });
    exec_ = Must(runtime.Compile(graph, {.slots = kSlots, .mode = mode}));
  }

  double Pulled(int items) {
    ps::Pipeline<> pipe = Make(kSlots + 1);
    const Clock::time_point begin = Clock::now();
    Must(pipe.Run(
        [&]() -> std::optional<ps::NoValue> { return items-- > 0 ? std::optional(ps::NoValue()) : std::nullopt; },
        [](ps::Item<>& item) { Must(item.status()); }));
    return Microseconds(Clock::now() - begin);
  }
  double Pushed(int items) {
    ps::Pipeline<> pipe = Make(kSlots + 1);
    const Clock::time_point begin = Clock::now();
    int inside = 0;
    for (int i = 0; i < items; ++i) {
      Must(pipe.Push({}));
      if (++inside > kSlots) Must(pipe.Pop().status()), --inside;
    }
    for (; inside > 0; --inside) Must(pipe.Pop().status());
    return Microseconds(Clock::now() - begin);
  }
  // One after the other in a pipeline that stays.
  double One() {
    if (!pipe_) pipe_ = Make(kSlots);
    const Clock::time_point begin = Clock::now();
    Must(pipe_->Push({}));
    const ps::Item<> item = pipe_->Pop();
    const double took = Microseconds(Clock::now() - begin);
    Must(item.status());
    return took;
  }
  double OneRun() {
    const ps::Bindings io = exec_.bindings();
    const Clock::time_point begin = Clock::now();
    Must(Must(exec_.Launch(io)).Wait());
    return Microseconds(Clock::now() - begin);
  }

 private:
  ps::Pipeline<> Make(int window) {
    ps::Stages<> stages;
    stages.Run("count", exec_);
    return Must(ps::Pipeline<>::Create(std::move(stages), {.window = window}));
  }
  ps::Executable exec_;
  std::optional<ps::Pipeline<>> pipe_;
};

Way Counted(Kind kind, const std::string& name, Counter& counter, int items, std::function<double(int)> time) {
  return {kind, name, [&counter, name, items, time] {
            counter.Clear();
            const double total = time(items) / items;
            counter.Expect(items, name);
            return Sample{total, total};
          }};
}

Report MeasureItems(Counter& counter, RawItems& raw, PenstockItems& graphs, PenstockItems& streams,
                    const Options& options) {
  const int items = options.quick ? 200 : 5000;
  std::vector<Way> ways = {
      Counted(Kind::kRaw, "one exec, nothing else", counter, items, [&](int n) { return raw.Bare(n); }),
      Counted(Kind::kRaw, "three execs, three streams, events", counter, items,
              [&](int n) { return raw.Slots(n, false); }),
      Counted(Kind::kRaw, "three execs, one stream, events", counter, items, [&](int n) { return raw.Slots(n, true); }),
      Counted(Kind::kPenstock, "pulled", counter, items, [&](int n) { return graphs.Pulled(n); }),
      Counted(Kind::kPenstock, "pushed and popped", counter, items, [&](int n) { return graphs.Pushed(n); }),
      Counted(Kind::kPenstock, "pulled, Mode::kStream", counter, items, [&](int n) { return streams.Pulled(n); }),
  };
  Measure(ways, 2, options.repeats);
  Report report("Items");
  report.Note(std::to_string(items) + " items a run, " + std::to_string(kSlots) + " at once.");
  const auto total = [&](const Way& way) { return SpreadOf(way, &Sample::total, 1); };
  const Spread best = total(BestRaw(ways, &Sample::total));
  report.CompareSums("an item, pulled; raw: the best by hand", "us", best, total(Find(ways, "pulled")), 3.0);
  report.CompareSums("an item, pushed and popped", "us", best, total(Find(ways, "pushed and popped")), 3.0);
  report.Details("an item", "us", ways, 1);
  return report;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())))];
}

Report MeasureLatency(Counter& counter, RawItems& raw, PenstockItems& graphs, const Options& options) {
  const int items = options.quick ? 100 : 3000;
  struct Kept {
    std::string name;
    std::function<double()> one;
    std::vector<double> p50{}, p99{}, p999{};
  };
  std::vector<Kept> all = {{"raw: launch, cudaStreamSynchronize", [&] { return raw.OneSynchronized(); }},
                           {"raw: launch, record, poll", [&] { return raw.OnePolled(); }},
                           {"Launch and Wait", [&] { return graphs.OneRun(); }},
                           {"Push and Pop", [&] { return graphs.One(); }}};
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (Kept& way : all) {
      counter.Clear();
      std::vector<double> took;
      for (int i = 0; i < items; ++i) took.push_back(way.one());
      counter.Expect(items, way.name);
      way.p50.push_back(Quantile(took, 0.5));
      way.p99.push_back(Quantile(took, 0.99));
      way.p999.push_back(Quantile(took, 0.999));
    }
  }
  Report report("Latency");
  report.Note(std::to_string(items) +
              " items one after the other a run; of each run the quantile, of those the median.");
  for (const Kept& way : all) {
    report.Alone(way.name + ", p50", "us", SpreadOf(way.p50), "");
    report.Alone(way.name + ", p99", "us", SpreadOf(way.p99), "");
    report.Alone(way.name + ", p99.9", "us", SpreadOf(way.p999), "");
  }
  return report;
}

int OnHostDevice(const std::string& missing) {
  Counter counter(false);
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host"}));
  PenstockItems items(runtime, counter, ps::Mode::kGraph);
  for (const auto& time : {std::function<double(int)>([&](int n) { return items.Pulled(n); }),
                           std::function<double(int)>([&](int n) { return items.Pushed(n); })}) {
    counter.Clear();
    time(100);
    counter.Expect(100, "on a host device");
  }
  Report("Pipeline").Skip(missing, "On a host device the Penstock half gave the right results.");
  return 0;
}

int Main(const Options& options) {
  if (const std::string missing = WhyNoDevice(); !missing.empty()) return OnHostDevice(missing);
  Check(cudaSetDevice(0), "choosing device 0");
  Counter counter(true);
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "cuda:0"}));
  RawItems raw(counter);
  PenstockItems graphs(runtime, counter, ps::Mode::kGraph), streams(runtime, counter, ps::Mode::kStream);
  Report report("Pipeline");
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
              runtime.devices()[0].description + ".");
  const auto wanted = [&](const char* part) {
    return options.parts.empty() || std::find(options.parts.begin(), options.parts.end(), part) != options.parts.end();
  };
  if (wanted("items")) report.Append(MeasureItems(counter, raw, graphs, streams, options));
  if (wanted("latency")) report.Append(MeasureLatency(counter, raw, graphs, options));
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(
        bench::ParseOptions(argc, argv, "pipeline", "What a pipeline costs an item.", {"items", "latency"}));
  });
}
