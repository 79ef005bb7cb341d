// Hand-made CUDA graphs of the chain and the stencil, written to win: what Penstock's graph mode is compared with.
//
// The graph is the tasks with the fewest edges that order them, and, of the stencil, an upload and a download of pinned
// memory (raw_work.cuh). It is made, launched and changed in three ways (raw_build.cuh). A replay is a
// launch into a non-blocking stream and a record behind it; the event is queried until it is complete. What a program
// can know beforehand (arguments, streams, events, handles) is ready; the exec was instantiated and uploaded once.
// Return codes are gathered with one OR a call.
//
// Threads: single-threaded.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <utility>

#include "cuda_check.cuh"
#include "harness.h"
#include "raw_build.cuh"
#include "raw_work.cuh"

namespace bench {

template <class By>
class RawReplay {
 public:
  explicit RawReplay(std::shared_ptr<const RawWork> work) : work_(std::move(work)) {
    const Clock::time_point begin = Clock::now();
    built_ = By::Build(*work_);
    const Clock::time_point built = Clock::now();
    built_.failed |= cudaGraphInstantiate(&exec_, built_.graph, 0);
    const Clock::time_point instantiated = Clock::now();
    if (built_.first != nullptr) built_.failed |= cudaGraphNodeSetEnabled(exec_, built_.first, 0);
    Must(built_.failed);
    Check(cudaGraphUpload(exec_, stream_), "uploading a graph");
    Check(cudaStreamSynchronize(stream_), "uploading a graph");
    const Clock::time_point uploaded = Clock::now();
    made_ = {Microseconds(built - begin), Microseconds(instantiated - begin)};
    uploaded_ = {made_.submit, Microseconds(uploaded - begin)};
  }
  RawReplay(const RawReplay&) = delete;
  ~RawReplay() {
    (void)cudaGraphExecDestroy(exec_);
    (void)cudaGraphDestroy(built_.graph);
    (void)cudaEventDestroy(done_);
    (void)cudaStreamDestroy(stream_);
  }

  // How long it took to build the graph, and until it was instantiated too, or uploaded too.
  Sample made() const { return made_; }
  Sample uploaded() const { return uploaded_; }

  // Replays: of what the exec has; with new arguments from the work for the middle task, or for all of them.
  Sample Run() {
    return Time([] { return 0; });
  }
  Sample RunSettingMiddle() {
    return Time([this] { return Set(work_->tasks.size() / 2); });
  }
  Sample RunSettingAll() {
    return Time([this] {
      int failed = 0;
      for (size_t t = 0; t < work_->tasks.size(); ++t) failed |= Set(t);
      return failed;
    });
  }
  // The same by a whole update, with the graph's own nodes changed, or with a graph made anew.
  Sample RunRewritten() {
    return Time([this] {
      int failed = 0;
      for (size_t t = 0; t < work_->tasks.size(); ++t) {
        failed |= By::Rewrite(built_.tasks[t], *work_, work_->tasks[t]);
      }
      return failed | Update(built_.graph);
    });
  }
  Sample RunRebuilt() {
    BuiltGraph fresh;
    const Sample sample = Time([&] {
      fresh = By::Build(*work_);
      return fresh.failed | Update(fresh.graph);
    });
    Check(cudaGraphDestroy(fresh.graph), "destroying a graph");
    return sample;
  }

 private:
  static void Must(int failed) {
    if (failed != 0) Fail("a raw CUDA call failed; OR of the codes: " + std::to_string(failed));
  }
  int Set(size_t task) { return By::Set(exec_, built_.tasks[task], *work_, work_->tasks[task]); }
  int Update(cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo info{};
    return cudaGraphExecUpdate(exec_, graph, &info);
  }

  // `change` is part of what is timed.
  template <class Change>
  Sample Time(Change change) {
    const Clock::time_point begin = Clock::now();
    int failed = change();
    failed |= By::Launch(exec_, stream_);
    failed |= By::Record(done_, stream_);
    const Clock::time_point submitted = Clock::now();
    int answer = By::Query(done_);
    while (answer == cudaErrorNotReady) answer = By::Query(done_);
    const Clock::time_point end = Clock::now();
    Must(failed | answer);
    (void)cudaGetLastError();  // "not ready" is not an error
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  const std::shared_ptr<const RawWork> work_;
  const cudaStream_t stream_ = MakeStream();
  const cudaEvent_t done_ = MakeEvent();
  BuiltGraph built_;
  cudaGraphExec_t exec_ = nullptr;
  Sample made_, uploaded_;
};

}  // namespace bench
