// A region of ten tasks against one kernel, written by hand, that does all of them: two threads with five steps each,
// their constants in the kernel's arguments. The driver's call launches it; then an event is recorded, and queried
// until it is complete. The two differ by what a launch of Penstock and the wait for its end cost more, and by the
// workers' walk.
//
// Threads: single-threaded.
#pragma once

#include <algorithm>

#include "trial.cuh"

namespace bench {

inline constexpr int kShortLanes = 2, kShortLevels = 5;
struct ShortConstants {
  Constants k[kShortLanes * kShortLevels];
};

static __global__ void ShortKernel(uint32_t* words, ShortConstants all) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i >= kShortLanes) return;
  uint32_t x = words[i];
  for (int level = 0; level < kShortLevels; ++level) x = ChainStep(x, all.k[level * kShortLanes + i]);
  words[i] = x;
}

// A kernel launched into a stream of its own.
class ByKernel {
 public:
  ByKernel(const void* kernel, unsigned int threads) : function_(FunctionOf(kernel)), threads_(threads) {}
  ByKernel(const ByKernel&) = delete;
  ~ByKernel() {
    (void)cudaEventDestroy(done_);
    (void)cudaStreamDestroy(stream_);
  }

  Sample Run(void** argv) const {
    const DriverCalls& calls = DriverCalls::Get();
    const Clock::time_point begin = Clock::now();
    int failed = calls.launch(function_, 1, 1, 1, threads_, 1, 1, 0, stream_, argv, nullptr);
    failed |= calls.record(done_, stream_);
    const Clock::time_point submitted = Clock::now();
    int answer = calls.query(done_);
    while (answer == CUDA_ERROR_NOT_READY) answer = calls.query(done_);
    const Clock::time_point end = Clock::now();
    if ((failed | answer) != 0) Fail("a kernel failed; OR of the codes: " + std::to_string(failed | answer));
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const CUfunction function_;
  const unsigned int threads_;
  const cudaStream_t stream_ = MakeStream();
  const cudaEvent_t done_ = MakeEvent();
};

inline void MeasureShort(const Context& context, Report& report) {
  Trial trial(context, Chains(kShortLanes, kShortLevels, context.random));
  if (context.cuda) {
    ShortConstants constants;
    std::transform(trial.list().tasks.begin(), trial.list().tasks.end(), constants.k,
                   [](const Task& task) { return task.k; });
    auto kernel = std::make_shared<ByKernel>(reinterpret_cast<const void*>(&ShortKernel), 32);
    trial.Add(Kind::kRaw, "one kernel that does all ten", [kernel, constants, words = trial.words().data()]() mutable {
      void* argv[] = {&words, &constants};
      return kernel->Run(argv);
    });
  }
  trial.AddRaw(kOverExtent, Kind::kScale);
  trial.AddPenstock();
  trial.Run();
  if (!context.cuda) return;
  const std::string& name = trial.list().name;
  report.Note(RegionsOf(trial));
  report.CompareSums(name + ", resident; raw: one kernel by hand", "us", trial.OfRaw(1), trial.Of(kOn, 1), 1);
  report.Compare(name + ", graph mode; raw: one kernel by hand", "us", trial.OfRaw(1), trial.Of(kOff, 1), 0);
  report.Details(name, "us", trial.ways(), 1);
}

}  // namespace bench
