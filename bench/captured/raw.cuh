// The step by hand: captured once, replayed, and given a new alpha in three ways.
//
// A replay is a launch into a non-blocking stream and a record behind it; the event is queried until it is complete.
// What a program can know beforehand is ready; the execs were uploaded once. Return codes are gathered with one OR a
// call.
//
// Threads: single-threaded.
#pragma once

#include <memory>
#include <utility>

#include "work.cuh"

namespace bench {

class RawCaptured {
 public:
  RawCaptured(ps::Runtime& runtime, std::shared_ptr<Step> step)
      : step_(std::move(step)), pinned_alpha_(Must(runtime.MakeHostBuffer<float>(1))) {
    Must(cudaMemcpy(a_, step_->a.data(), step_->a.size() * sizeof(float), cudaMemcpyHostToDevice) |
         cudaMemcpy(b_, step_->b.data(), kN * sizeof(float), cudaMemcpyHostToDevice) |
         cudaMemset(zero_, 0, sizeof(float)));
    SetAlpha(Step::SameAlpha());
    plain_ = Instantiate(Capture([this] { return Gemv(on_device_, alpha_); }));
    copying_ = Instantiate(Capture([this] { return CopyAlpha() | Gemv(on_device_, alpha_); }));
    by_value_ = Instantiate(CaptureValue(Step::SameAlpha()));
  }
  RawCaptured(const RawCaptured&) = delete;
  ~RawCaptured() {
    for (const cudaGraphExec_t exec : {plain_, copying_, by_value_}) (void)cudaGraphExecDestroy(exec);
    for (float* const memory : {a_, b_, x_, y_, alpha_, zero_}) (void)cudaFree(memory);
    (void)cudaEventDestroy(done_);
  }

  // Alpha in device memory: as it is; by a copy before the launch; by a copy that is a node of the graph.
  Sample Run(float alpha) {
    SetAlpha(alpha);
    return Time([&] { return cudaGraphLaunch(plain_, stream_); });
  }
  Sample RunCopying(float alpha) {
    return Time([&] {
      pinned_alpha_[0] = alpha;
      return CopyAlpha() | cudaGraphLaunch(plain_, stream_);
    });
  }
  Sample RunWithCopyInside(float alpha) {
    return Time([&] {
      pinned_alpha_[0] = alpha;
      return cudaGraphLaunch(copying_, stream_);
    });
  }
  // Alpha by value, as cuBLAS takes it by default: captured anew, and the exec updated.
  Sample RunCapturingAnew(float alpha) {
    cudaGraph_t graph = nullptr;
    const Sample sample = Time([&] {
      graph = CaptureValue(alpha);
      cudaGraphExecUpdateResultInfo info{};
      return cudaGraphExecUpdate(by_value_, graph, &info) | cudaGraphLaunch(by_value_, stream_);
    });
    Must(cudaGraphDestroy(graph));
    return sample;
  }

 private:
  static void Must(int failed) {
    if (failed != 0) Fail("a raw CUDA call failed; OR of the codes: " + std::to_string(failed));
  }
  template <class T>
  static T Must(absl::StatusOr<T> result) {
    return bench::Must(std::move(result));
  }

  void SetAlpha(float alpha) {
    pinned_alpha_[0] = alpha;
    Must(CopyAlpha() | cudaStreamSynchronize(stream_));
  }
  int CopyAlpha() {
    return cudaMemcpyAsync(alpha_, pinned_alpha_.data(), sizeof(float), cudaMemcpyHostToDevice, stream_);
  }
  int Gemv(const Cublas& cublas, const float* alpha) {
    return bench::Gemv(cublas.handle(), alpha, a_, x_, &cublas == &on_device_ ? zero_ : &kZero, y_);
  }

  template <class F>
  cudaGraph_t Capture(F gemv) {
    cudaGraph_t graph = nullptr;
    int failed = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
    failed |= cudaMemcpyAsync(x_, step_->x.data(), kN * sizeof(float), cudaMemcpyHostToDevice, stream_);
    failed |= gemv();
    Relu<<<(kN + 255) / 256, 256, 0, stream_>>>(kN, b_, y_);
    failed |= cudaMemcpyAsync(step_->y.data(), y_, kN * sizeof(float), cudaMemcpyDeviceToHost, stream_);
    Must(failed | cudaStreamEndCapture(stream_, &graph));
    return graph;
  }
  cudaGraph_t CaptureValue(float alpha) {
    return Capture([&] { return Gemv(by_value_handle_, &alpha); });
  }
  cudaGraphExec_t Instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    Must(cudaGraphInstantiate(&exec, graph, 0) | cudaGraphDestroy(graph) | cudaGraphUpload(exec, stream_) |
         cudaStreamSynchronize(stream_));
    return exec;
  }

  // `submit` is what is timed.
  template <class F>
  Sample Time(F submit) {
    const Clock::time_point begin = Clock::now();
    int failed = submit();
    failed |= cudaEventRecord(done_, stream_);
    const Clock::time_point submitted = Clock::now();
    int answer = cudaEventQuery(done_);
    while (answer == cudaErrorNotReady) answer = cudaEventQuery(done_);
    const Clock::time_point end = Clock::now();
    Must(failed | answer);
    (void)cudaGetLastError();  // "not ready" is not an error
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  static constexpr float kZero = 0;
  const std::shared_ptr<Step> step_;
  ps::HostBuffer<float> pinned_alpha_;
  const cudaStream_t stream_ = MakeStream();
  const cudaEvent_t done_ = MakeEvent();
  const Cublas on_device_{stream_, CUBLAS_POINTER_MODE_DEVICE}, by_value_handle_{stream_, CUBLAS_POINTER_MODE_HOST};
  float* const a_ = MakeDeviceMemory<float>(size_t{kN} * kN);
  float* const b_ = MakeDeviceMemory<float>(kN);
  float* const x_ = MakeDeviceMemory<float>(kN);
  float* const y_ = MakeDeviceMemory<float>(kN);
  float* const alpha_ = MakeDeviceMemory<float>(1);
  float* const zero_ = MakeDeviceMemory<float>(1);
  cudaGraphExec_t plain_ = nullptr, copying_ = nullptr, by_value_ = nullptr;
};

}  // namespace bench
