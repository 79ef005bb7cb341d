// What `penstock bench` measures of copies, by plain CUDA: for device 0 and pinned memory, in the same sizes. Prints
// the same table, so that compare.py can put one beside the other:
//
//   penstock bench --only copies --devices cuda:0 --csv penstock.csv
//   plain_copies > plain.csv
//   compare.py penstock.csv plain.csv
//
// A figure is that of equal cudaMemcpyAsync calls one after the other, by events around them, in the best of three
// ways:
//
//   stream  submitted while the first ones go on already
//   queued  all submitted before the first begins, behind a kernel that waits for the host
//   graph   captured, and launched as a graph
//
// Where both directions go on at once, `stream` does not count: of small copies the other direction's would be over
// before the first that is timed has been submitted. A figure is the median of 31, or of fewer of large copies. What
// has been copied is compared once.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"

namespace bench {
namespace {

enum class Route { kUp, kDown, kUpBesideDown, kDownBesideUp, kWithin };
struct NamedRoute {
  Route route;
  const char* name;
};
constexpr NamedRoute kRoutes[] = {
    {Route::kUp, "H2D pinned"},
    {Route::kDown, "D2H pinned"},
    {Route::kUpBesideDown, "H2D both ways"},
    {Route::kDownBesideUp, "D2H both ways"},
    {Route::kWithin, "D2D"},
};
enum class Submission { kStream, kQueued, kGraph };
constexpr Submission kSubmissions[] = {Submission::kStream, Submission::kQueued, Submission::kGraph};

constexpr int kMostCopies = 1024;
constexpr int kMostQueued = 192;  // about a thousand in front of a device that waits block whoever submits
constexpr int kTimesAsLong = 3;  // the other direction's copies outlast those that are timed

bool IsUp(Route route) { return route == Route::kUp || route == Route::kUpBesideDown; }
bool IsBothWays(Route route) { return route == Route::kUpBesideDown || route == Route::kDownBesideUp; }
Route OtherWay(Route route) { return route == Route::kUpBesideDown ? Route::kDownBesideUp : Route::kUpBesideDown; }

__global__ void AwaitFlag(const volatile int* flag) {
  while (*flag == 0) {
  }
}

char* MakePinned(size_t bytes) {
  void* memory = nullptr;
  Check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "allocating pinned memory");
  return static_cast<char*>(memory);
}
cudaEvent_t MakeTimer() {
  cudaEvent_t event = nullptr;
  Check(cudaEventCreate(&event), "creating an event");
  return event;
}

// Memory of all routes, for as long as the process lives.
class Copies {
 public:
  explicit Copies(size_t most)
      : most_(most),
        pattern_(MakePinned(most)),
        down_(MakePinned(most)),
        target_(MakeDeviceMemory<char>(most)),
        source_(MakeDeviceMemory<char>(most)),
        flag_(reinterpret_cast<int*>(MakePinned(sizeof(int)))) {
    for (size_t i = 0; i < most; ++i) pattern_[i] = static_cast<char>(1 + i % 251);
    Check(cudaMemcpy(source_, pattern_, most, cudaMemcpyHostToDevice), "uploading");
    *flag_ = 1;
    AwaitFlag<<<1, 1, 0, timed_>>>(flag_);  // loads it: a first launch may wait for whatever is under way
    Wait();
  }

  // GB/s in the best way.
  double Rate(Route route, size_t bytes, const Options& options) {
    Poison(bytes);
    double best = 0;
    for (const Submission how : kSubmissions) {
      if (how == Submission::kStream && IsBothWays(route)) continue;
      const int copies = CopiesFor(route, bytes, how, options.quick ? 0.2 : 4);
      std::vector<double> times;
      const Clock::time_point end = Clock::now() + std::chrono::milliseconds(300);
      while (times.size() < static_cast<size_t>(options.repeats) && (times.size() < 5 || Clock::now() < end)) {
        times.push_back(Milliseconds(route, bytes, copies, how));
      }
      const double us = SpreadOf(std::move(times)).median * 1e3 / copies;
      best = std::max(best, static_cast<double>(bytes) / us / 1e3);
    }
    ForgetGraphs();
    CheckCopied(route, bytes);
    return best;
  }

 private:
  int CopiesFor(Route route, size_t bytes, Submission how, double least_ms) {
    int copies = 1;
    const int most = how == Submission::kQueued ? kMostQueued : kMostCopies;
    while (2 * copies <= most && Milliseconds(route, bytes, copies, how) < least_ms) copies *= 2;
    (void)Milliseconds(route, bytes, copies, how);  // the first run of a graph
    return copies;
  }

  double Milliseconds(Route route, size_t bytes, int copies, Submission how) {
    if (how == Submission::kGraph) MakeGraphs(route, bytes, copies);
    if (how == Submission::kQueued) {
      *flag_ = 0;
      for (const cudaStream_t stream : {beside_, timed_}) AwaitFlag<<<1, 1, 0, stream>>>(flag_);
      Check(cudaGetLastError(), "launching");
    }
    if (IsBothWays(route)) Submit(OtherWay(route), bytes, kTimesAsLong * copies, beside_, how, beside_graph_);
    Check(cudaEventRecord(begin_, timed_), "recording");
    Submit(route, bytes, copies, timed_, how, timed_graph_);
    Check(cudaEventRecord(end_, timed_), "recording");
    *static_cast<volatile int*>(flag_) = 1;
    Wait();
    float ms = 0;
    Check(cudaEventElapsedTime(&ms, begin_, end_), "reading events");
    return ms;
  }

  void Submit(Route route, size_t bytes, int copies, cudaStream_t stream, Submission how, cudaGraphExec_t graph) {
    if (how == Submission::kGraph) {
      Check(cudaGraphLaunch(graph, stream), "launching a graph");
    } else {
      for (int i = 0; i < copies; ++i) CopyOnce(route, bytes, i, stream);
    }
  }
  // Makes the i-th copy. Each copy moves the memory behind that of the copy before it. Within the device, each copies
  // back to where the copy before it read.
  void CopyOnce(Route route, size_t bytes, int i, cudaStream_t stream) {
    const size_t at = static_cast<size_t>(i) % (most_ / bytes) * bytes;
    if (route == Route::kWithin) {
      char *const to = i % 2 == 0 ? target_ : source_, *const from = i % 2 == 0 ? source_ : target_;
      Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copying");
    } else if (IsUp(route)) {
      Check(cudaMemcpyAsync(target_ + at, pattern_ + at, bytes, cudaMemcpyHostToDevice, stream), "copying");
    } else {
      Check(cudaMemcpyAsync(down_ + at, source_ + at, bytes, cudaMemcpyDeviceToHost, stream), "copying");
    }
  }

  // Keeps the graphs that exist if they have as many copies.
  void MakeGraphs(Route route, size_t bytes, int copies) {
    if (timed_graph_ != nullptr && graph_copies_ == copies) return;
    ForgetGraphs();
    graph_copies_ = copies;
    timed_graph_ = Captured(route, bytes, copies);
    if (IsBothWays(route)) beside_graph_ = Captured(OtherWay(route), bytes, kTimesAsLong * copies);
  }
  cudaGraphExec_t Captured(Route route, size_t bytes, int copies) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    Check(cudaStreamBeginCapture(timed_, cudaStreamCaptureModeThreadLocal), "beginning a capture");
    for (int i = 0; i < copies; ++i) CopyOnce(route, bytes, i, timed_);
    Check(cudaStreamEndCapture(timed_, &graph), "ending a capture");
    Check(cudaGraphInstantiate(&exec, graph, 0), "instantiating a graph");
    Check(cudaGraphDestroy(graph), "destroying a graph");
    return exec;
  }
  void ForgetGraphs() {
    for (cudaGraphExec_t* const exec : {&timed_graph_, &beside_graph_}) {
      if (*exec != nullptr) Check(cudaGraphExecDestroy(*exec), "destroying a graph");
      *exec = nullptr;
    }
  }

  void Poison(size_t bytes) {
    Check(cudaMemset(target_, 0, bytes), "filling device memory");
    std::memset(down_, 0, bytes);
    Check(cudaDeviceSynchronize(), "waiting for the device");
  }
  void CheckCopied(Route route, size_t bytes) {
    if (IsUp(route) || route == Route::kWithin) {
      Check(cudaMemcpy(down_, target_, bytes, cudaMemcpyDeviceToHost), "downloading");
    }
    if (std::memcmp(down_, pattern_, bytes) != 0) Fail("a copy has brought something else");
  }
  void Wait() {
    for (const cudaStream_t stream : {timed_, beside_}) Check(cudaStreamSynchronize(stream), "waiting for a stream");
  }

  const size_t most_;
  const cudaStream_t timed_ = MakeStream(), beside_ = MakeStream();
  const cudaEvent_t begin_ = MakeTimer(), end_ = MakeTimer();
  char *const pattern_, *const down_, *const target_, *const source_;
  int* const flag_;
  cudaGraphExec_t timed_graph_ = nullptr, beside_graph_ = nullptr;
  int graph_copies_ = 0;
};

int Main(const Options& options) {
  Report report("Copies by plain CUDA");
  if (const std::string why = WhyNoDevice(); !why.empty()) {
    report.Skip(why, "");
    return 0;
  }
  Choose(0);
  const size_t most = size_t{options.quick ? 1u : 1024u} << 20;
  Copies copies(most);
  std::printf("part,device,to,what,bytes,unit,value\n");
  for (size_t bytes = 4096; bytes <= most; bytes *= 4) {
    for (const NamedRoute& route : kRoutes) {
      const double rate = copies.Rate(route.route, bytes, options);
      std::printf("copies,cuda:0,,%s,%zu,GB/s,%.6g\n", route.name, bytes, rate);
      report.Alone(std::string(route.name) + ", " + std::to_string(bytes) + " bytes", "GB/s", {rate, rate, rate}, "-");
    }
  }
  report.Save(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(
        bench::ParseOptions(argc, argv, "plain_copies", "Copies by plain CUDA, as `penstock bench` measures them."));
  });
}
