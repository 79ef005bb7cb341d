// For programs that call CUDA themselves: the stream of a Launch node, their own streams, events and graphs, and CUDA
// errors as Status.
//
//   graph.Launch("gemm", [](ps::LaunchContext& foreign, const float* a, float* c) -> absl::Status {
//     return ps::ToStatus(cudaMemcpyAsync(c, a, kBytes, cudaMemcpyDefault, ps::CudaStream(foreign)), "copying a to c");
//   }, ps::Read(a), ps::Write(c));
//
// Needs the CUDA headers and links the application's own copy of the CUDA runtime; so what calls CUDA here is hidden in
// each shared object, which has a copy of its own.
#pragma once

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
#include "penstock/export.h"
#include "penstock/exported_graph.h"
#include "penstock/launch_context.h"

namespace penstock {

// The stream to submit to. Its device is current. Null on host devices.
inline cudaStream_t CudaStream(const LaunchContext& launch) {
  return static_cast<cudaStream_t>(launch.native_stream());
}

// For Bindings::After: what the application has submitted to a stream before it recorded the event there.
inline NativeEvent Native(cudaEvent_t event) { return {event}; }

// OK for cudaSuccess. Otherwise `what` with the error's words, and the last error is cleared. Codes: InvalidArgument
// for a wrong argument, ResourceExhausted for memory, FailedPrecondition for what this device or image cannot do,
// Internal and DataLoss for faults; a fault that ends all CUDA work of the process is known to the runtime by a
// payload.
PENSTOCK_HIDDEN inline absl::Status ToStatus(cudaError_t code, std::string_view what = "a CUDA call") {
  if (code == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();
  const std::string text = detail::TextOfCudaError(code, what);
  absl::Status status(detail::StatusCodeOfCudaError(code), text);
  // The form of base::WithFault. Not Cord's constructor for strings: g++ and clang give it different symbols.
  const std::string fault = "cuda=" + detail::DigitsOf(code) + " fatal=" + (detail::IsFatalCudaError(code) ? "1" : "0");
  status.SetPayload("penstock.dev/fault", absl::Cord(fault.c_str()));
  return status;
}

// What Executable::Export gave.
inline cudaGraph_t CudaGraphOf(const ExportedGraph& exported) {
  return static_cast<cudaGraph_t>(exported.native_graph());
}
cudaGraph_t CudaGraphOf(const ExportedGraph&& exported) = delete;

// What null is for a stream, the compiler is told for each file: so such functions are others in each.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
inline namespace per_thread_default_stream {
PENSTOCK_HIDDEN inline constexpr bool kNullIsPerThread = true;
#else
inline namespace legacy_default_stream {
PENSTOCK_HIDDEN inline constexpr bool kNullIsPerThread = false;
#endif

// For Bindings::On. Null is the default stream, as for the calls of the file that is being compiled.
inline NativeStream Native(cudaStream_t stream) {
  return {stream != nullptr ? stream : kNullIsPerThread ? cudaStreamPerThread : cudaStreamLegacy};
}
inline NativeStream Native(std::nullptr_t) { return Native(cudaStream_t()); }
// The same of a cuda::stream_ref.
template <class Ref>
  requires requires(const Ref& ref) {
    { ref.get() } -> std::same_as<cudaStream_t>;
  }
NativeStream Native(const Ref& ref) {
  return Native(ref.get());
}

// Adds a graph to what the stream captures, behind what it has captured, as a child: what the graph names must live
// while what the capture becomes is used. FailedPrecondition, and the capture goes on, where the stream captures
// nothing, or CUDA takes the graph for no child.
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

// For a scope, calls of this thread break no capture that another, or this one, has open elsewhere.
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

// Callables of Launch nodes. Their accesses order them, and are nothing to them otherwise.
//
//   graph.Launch("frame arrived", ps::WaitForEvent{event}, ps::Write(frame));
//   graph.Launch("solve", ps::CudaGraph(solver), ps::Read(a), ps::Write(x));
//
// Waits for an event as it stands when the node is submitted, in a graph when that is launched.
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

// Records an event when what its accesses order before it is done.
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

// Runs a graph of the application's, as it is now: later changes are not seen, and it may be destroyed. It uses the
// addresses it was made with, so the same memory is to be bound to what the node declares, and one slot at a time may
// use it. In a graph it is a child; on streams an exec is made by a slot's first run. A step that is declared again has
// one and the same CudaGraph, made outside the declaration.
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
    std::mutex mu;  // one thread at a time uses a graph
  };

  // Of a lane of a slot, for all nodes of this kind.
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
      std::erase_if(made, [](const auto& of) {  // of callables that are gone, and runs that have ended
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
