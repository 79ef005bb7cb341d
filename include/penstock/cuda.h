// For programs that call CUDA themselves: the stream of a Launch node, the application's own streams, events and
// graphs, and CUDA errors as Status.
//
//   graph.Launch("gemm", [](ps::LaunchContext& launch, const float* a, float* c) -> absl::Status {
//     return ps::ToStatus(cudaMemcpyAsync(c, a, kBytes, cudaMemcpyDefault, ps::CudaStream(launch)), "copying a to c");
//   }, ps::Read(a), ps::Write(c));
//
// Needs the CUDA headers and links the application's own copy of the CUDA runtime. Functions here that call CUDA are
// therefore hidden in each shared object, which has its own copy.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "penstock/bindings.h"
#include "penstock/detail/cuda_error.h"
#include "penstock/detail/on_cuda.h"
#include "penstock/export.h"
#include "penstock/exported_graph.h"
#include "penstock/launch_context.h"

// In this file callables of Launch nodes have CUDA, whatever compiles it (detail/on_cuda.h).
#undef PENSTOCK_ON_CUDA
// The callable itself.
#define PENSTOCK_ON_CUDA(...) __VA_ARGS__

namespace penstock {

// The stream to submit to; its device is current. Null on host devices.
inline cudaStream_t CudaStream(const LaunchContext& launch) {
  return static_cast<cudaStream_t>(launch.native_stream());
}

// For Bindings::After: the work that the application submitted to a stream before it recorded the event there.
inline NativeEvent Native(cudaEvent_t event) { return {event}; }

// Returns OK for cudaSuccess. Otherwise returns `what` with the error's text, and clears CUDA's last error. Codes:
// InvalidArgument for a wrong argument, ResourceExhausted for memory, FailedPrecondition for an operation that this
// device or image does not support, Internal and DataLoss for faults. A payload tells the runtime of a fault that ends
// all CUDA work of the process.
PENSTOCK_HIDDEN inline absl::Status ToStatus(cudaError_t code, std::string_view what = "a CUDA call") {
  if (code == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();
  const std::string text = detail::TextOfCudaError(code, what);
  absl::Status status(detail::StatusCodeOfCudaError(code), text);
  // The payload has the form of base::WithFault. Cord's string constructor is avoided: g++ and clang mangle
  // it differently.
  const std::string fault = "cuda=" + detail::DigitsOf(code) + " fatal=" + (detail::IsFatalCudaError(code) ? "1" : "0");
  status.SetPayload("penstock.dev/fault", absl::Cord(fault.c_str()));
  return status;
}

// The graph that Executable::Export returned.
inline cudaGraph_t CudaGraphOf(const ExportedGraph& exported) {
  return static_cast<cudaGraph_t>(exported.native_graph());
}
cudaGraph_t CudaGraphOf(const ExportedGraph&& exported) = delete;

// A compiler option per file decides what a null stream means, so each file gets its own instance of these functions.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
inline namespace per_thread_default_stream {
PENSTOCK_HIDDEN inline constexpr bool kNullIsPerThread = true;
#else
inline namespace legacy_default_stream {
PENSTOCK_HIDDEN inline constexpr bool kNullIsPerThread = false;
#endif

// For Bindings::On. Null is the default stream of the file that is being compiled, as in its CUDA calls.
inline NativeStream Native(cudaStream_t stream) {
  return {stream != nullptr ? stream : kNullIsPerThread ? cudaStreamPerThread : cudaStreamLegacy};
}
inline NativeStream Native(std::nullptr_t) { return Native(cudaStream_t()); }
// The same for a cuda::stream_ref.
template <class Ref>
  requires requires(const Ref& ref) {
    { ref.get() } -> std::same_as<cudaStream_t>;
  }
NativeStream Native(const Ref& ref) {
  return Native(ref.get());
}

// Adds a graph as a child node to the stream's capture, after the work captured so far. Everything the graph names must
// outlive every use of the capture's result. Returns FailedPrecondition, and leaves the capture open, if the stream
// captures nothing or CUDA does not accept the graph as a child.
PENSTOCK_HIDDEN inline absl::Status AddToCapture(cudaGraph_t graph, cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaGraph_t to = nullptr;
  const cudaGraphNode_t* after = nullptr;
  size_t count = 0;
  auto* const of = static_cast<cudaStream_t>(Native(stream).handle);
  const cudaError_t asked = cudaStreamGetCaptureInfo(of, &capture, nullptr, &to, &after, nullptr, &count);
  if (asked != cudaSuccess) return ToStatus(asked, "asking what a stream captures");
  if (graph == nullptr || capture != cudaStreamCaptureStatusActive) {
    return absl::FailedPreconditionError(graph == nullptr ? "there is no graph to add to a capture"
                                                          : "the stream captures nothing; begin a capture there first");
  }
  cudaGraphNode_t child = nullptr;
  cudaError_t added = cudaGraphAddChildGraphNode(&child, to, after, count, graph);
  if (added == cudaSuccess) {
    added = cudaStreamUpdateCaptureDependencies(of, &child, nullptr, 1, cudaStreamSetCaptureDependencies);
  }
  const absl::Status status = ToStatus(added, "adding a graph to a capture");
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return absl::Status(absl::StatusCode::kFailedPrecondition, status.message());
}
PENSTOCK_HIDDEN inline absl::Status AddToCapture(const ExportedGraph& exported, cudaStream_t stream) {
  return AddToCapture(CudaGraphOf(exported), stream);
}
absl::Status AddToCapture(const ExportedGraph&& exported, cudaStream_t stream) = delete;

}  // namespace

namespace detail {
PENSTOCK_HIDDEN inline bool IsCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &capture) == cudaSuccess && capture == cudaStreamCaptureStatusActive;
}

// While in scope, calls of this thread break no capture that this or another thread has open.
class CaptureScope {
 public:
  PENSTOCK_HIDDEN CaptureScope() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  PENSTOCK_HIDDEN ~CaptureScope() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};
}  // namespace detail

// Callables of Launch nodes. Their accesses only order them; the callables ignore the memory.
//
//   graph.Launch("frame arrived", ps::WaitForEvent{event}, ps::Write(frame));
//   graph.Launch("solve", ps::CudaGraph(solver), ps::Read(a), ps::Write(x));
//
// Waits for an event: for the record that is current when the node is submitted or, in a graph, when the
// graph is launched.
struct WaitForEvent {
  cudaEvent_t event;
  // Submits the wait; the node calls this.
  template <class... Args>
  PENSTOCK_HIDDEN absl::Status operator()(LaunchContext& launch, const Args&...) const {
    const cudaStream_t stream = CudaStream(launch);
    const unsigned flags = detail::IsCapturing(stream) ? cudaEventWaitExternal : cudaEventWaitDefault;
    return ToStatus(cudaStreamWaitEvent(stream, event, flags), "waiting for an event of the application's");
  }
};

// Records an event once the work that the node's accesses order before it is done.
struct SignalEvent {
  cudaEvent_t event;
  // Submits the record; the node calls this.
  template <class... Args>
  PENSTOCK_HIDDEN absl::Status operator()(LaunchContext& launch, const Args&...) const {
    const cudaStream_t stream = CudaStream(launch);
    const unsigned flags = detail::IsCapturing(stream) ? cudaEventRecordExternal : cudaEventRecordDefault;
    return ToStatus(cudaEventRecordWithFlags(event, stream, flags), "recording an event of the application's");
  }
};

// Runs one of the application's graphs as it is now: later changes are not seen, and it may be destroyed. It uses the
// addresses it was made with, so bind the same memory to the buffers that the node declares, and let only one slot at a
// time use it. In a graph it becomes a child node; on streams a slot's first run instantiates it. A step that is
// declared again must use the same CudaGraph, made outside the declaration.
class CudaGraph {
 public:
  // Clones `graph`. If that fails, the nodes that use this object fail with the error.
  PENSTOCK_HIDDEN explicit CudaGraph(cudaGraph_t graph) : whole_(new Whole(graph)) {}

  // Submits the graph; the node calls this.
  template <class... Args>
  PENSTOCK_HIDDEN absl::Status operator()(LaunchContext& launch, const Args&...) const {
    if (!whole_->cloned.ok()) return whole_->cloned;
    const cudaStream_t stream = CudaStream(launch);
    if (detail::IsCapturing(stream)) {
      const std::lock_guard lock(whole_->mu);
      return AddToCapture(whole_->graph, stream);
    }
    return launch.Get<Execs>().Launch(whole_, stream);
  }

 private:
  struct Whole {
    PENSTOCK_HIDDEN explicit Whole(cudaGraph_t from)
        : cloned(ToStatus(cudaGraphClone(&graph, from), "cloning a CUDA graph")) {}
    PENSTOCK_HIDDEN ~Whole() {
      const detail::CaptureScope uncaptured;
      if (cloned.ok()) (void)cudaGraphDestroy(graph);
    }
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

    cudaGraph_t graph = nullptr;
    absl::Status cloned;
    std::mutex mu;  // one thread at a time uses the graph
  };

  // The execs of one lane of a slot, shared by all nodes of this kind.
  struct Execs {
    PENSTOCK_HIDDEN explicit Execs(const LaunchContext&) {}
    PENSTOCK_HIDDEN ~Execs() {
      const detail::CaptureScope uncaptured;
      for (const auto& [whole, exec] : made) (void)cudaGraphExecDestroy(exec);
    }
    Execs(const Execs&) = delete;
    Execs& operator=(const Execs&) = delete;

    PENSTOCK_HIDDEN absl::Status Launch(const std::shared_ptr<Whole>& whole, cudaStream_t stream) {
      for (const auto& [of, exec] : made) {
        if (of == whole) return ToStatus(cudaGraphLaunch(exec, stream), "launching a CUDA graph");
      }
      const detail::CaptureScope uncaptured;
      std::erase_if(made, [](const auto& of) {  // drop those whose callable and runs are gone
        if (of.first.use_count() > 1) return false;
        (void)cudaGraphExecDestroy(of.second);
        return true;
      });
      cudaGraphExec_t exec = nullptr;
      const std::lock_guard lock(whole->mu);
      const cudaError_t code = cudaGraphInstantiate(&exec, whole->graph, 0);
      if (code != cudaSuccess) return ToStatus(code, "instantiating a CUDA graph");
      made.emplace_back(whole, exec);
      return ToStatus(cudaGraphLaunch(exec, stream), "launching a CUDA graph");
    }

    std::vector<std::pair<std::shared_ptr<Whole>, cudaGraphExec_t>> made;
  };

  std::shared_ptr<Whole> whole_;
};

}  // namespace penstock
