// The step with Penstock: OnDevice brings alpha, LaunchContext::Get has the handle.
//
// Threads: single-threaded.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "penstock/cublas.h"
#include "work.cuh"

namespace bench {

inline absl::Status GemvForeign(ps::LaunchContext& launch, const float* alpha, const float* a, const float* x,
                                float* y) {
  PS_ASSIGN_OR_RETURN(ps::Cublas * blas, launch.Get<ps::Cublas>());
  return ps::ToStatus(Gemv(blas->handle(), alpha, a, x, launch.Zero<float>(), y), "cublasSgemv");
}

class PenstockCaptured {
 public:
  PenstockCaptured(ps::Runtime& runtime, const Step& step)
      : a_(Must(runtime.MakeState<float>("A", {kN, kN}, step.a))), b_(Must(runtime.MakeState<float>("b", kN, step.b))) {
    ps::Graph graph("step");
    alpha_ = graph.Param<float>("alpha");
    auto x = graph.Input<float>("x", kN, ps::kPinned);
    auto y = graph.Output<float>("y", kN, ps::kPinned);
    graph.Launch("gemv", GemvForeign, ps::OnDevice(alpha_), ps::Read(a_), ps::Read(x), ps::Write(y));
    graph.Kernel("relu", Relu, ps::Threads(kN), kN, ps::Read(b_), ps::ReadWrite(y));
    exec_ = Must(runtime.Compile(graph, {.slots = 1, .mode = ps::Mode::kGraph}));
    io_ = exec_.bindings();
    io_.Set(x, step.x).Set(y, step.y);
  }

  Sample Run(float alpha) {
    const Clock::time_point begin = Clock::now();
    ps::Run run = Must(exec_.Launch(io_.Set(alpha_, alpha)));
    const Clock::time_point submitted = Clock::now();
    const absl::Status status = run.Wait();
    const Clock::time_point end = Clock::now();
    Must(status);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  ps::SubmissionReport submission_report() const { return exec_.submission_report(); }

 private:
  ps::State<float> a_, b_;
  ps::ParamHandle<float> alpha_;
  ps::Executable exec_;
  ps::Bindings io_;
};

}  // namespace bench
