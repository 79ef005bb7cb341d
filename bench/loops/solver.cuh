// Conjugate gradients (Hestenes and Stiefel 1952) for Poisson's equation on a square, to a tolerance: as a graph of
// Penstock's, and by hand as a graph of an iteration whose residual the host reads back each time.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "by_hand.cuh"
#include "penstock/ps.h"

namespace bench {

constexpr double kTolerance = 1e-5;  // of the right-hand side's norm
constexpr int kMostIterations = 20000;

// A plane in memory of its reader.
struct HandPlane {
  const float* u;
  int64_t side;
  PS_HOST_DEVICE float operator()(int64_t y, int64_t x) const { return u[y * side + x]; }
};
// 4 u(y, x) minus its neighbours, which are 0 outside of the square.
template <class Plane>
PS_HOST_DEVICE inline float Laplacian(const Plane& u, int64_t side, int64_t y, int64_t x) {
  const float up = y > 0 ? u(y - 1, x) : 0, down = y + 1 < side ? u(y + 1, x) : 0;
  const float left = x > 0 ? u(y, x - 1) : 0, right = x + 1 < side ? u(y, x + 1) : 0;
  return 4 * u(y, x) - up - down - left - right;
}

struct CgBegin {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const float> b, ps::View<float> x, ps::View<float> r,
                                 ps::View<float> p) const {
    x(i.y, i.x) = 0;
    r(i.y, i.x) = p(i.y, i.x) = b(i.y, i.x);
  }
};
struct CgZero {
  PS_HOST_DEVICE void operator()(int64_t, int32_t* iterations) const { *iterations = 0; }
};
struct CgSquare {
  PS_HOST_DEVICE float operator()(ps::Index2 i, ps::View<const float> r) const { return r(i.y, i.x) * r(i.y, i.x); }
};
struct CgCurvature {
  PS_HOST_DEVICE float operator()(ps::Index2 i, ps::View<const float> p) const {
    return p(i.y, i.x) * Laplacian(p, p.height, i.y, i.x);
  }
};
struct CgStep {
  PS_HOST_DEVICE void operator()(ps::Index2 i, const float* rr, const float* pq, ps::View<const float> p,
                                 ps::View<float> x, ps::View<float> r) const {
    const float alpha = *rr / *pq;
    x(i.y, i.x) += alpha * p(i.y, i.x);
    r(i.y, i.x) -= alpha * Laplacian(p, p.height, i.y, i.x);
  }
};
struct CgTurn {
  PS_HOST_DEVICE void operator()(ps::Index2 i, const float* rr, const float* next, ps::View<const float> r,
                                 ps::View<float> p) const {
    p(i.y, i.x) = r(i.y, i.x) + *next / *rr * p(i.y, i.x);
  }
};
struct CgKeep {
  PS_HOST_DEVICE void operator()(int64_t, const float* next, float* rr, int32_t* iterations) const {
    *rr = *next;
    ++*iterations;
  }
};
struct CgAbove {
  PS_HOST_DEVICE bool operator()(float limit, const float* rr) const { return *rr > limit; }
};

inline std::vector<float> RightHandSide(int64_t side) {
  std::vector<float> b(static_cast<size_t>(side * side));
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 7919 % 23) / 11 - 1;
  return b;
}
inline double SquareOf(const std::vector<float>& v) {
  double sum = 0;
  for (const float value : v) sum += double{value} * double{value};
  return sum;
}
// Fails unless x solves the equation as well as single precision lets it.
inline void CheckSolution(const std::vector<float>& x, const std::vector<float>& b, int64_t side) {
  const HandPlane plane{x.data(), side};
  double left = 0;
  for (int64_t i = 0; i < side * side; ++i) {
    const double off = double{b[static_cast<size_t>(i)]} - double{Laplacian(plane, side, i / side, i % side)};
    left += off * off;
  }
  if (!(std::sqrt(left / SquareOf(b)) < 100 * kTolerance)) Fail("the solution is wrong");
}

class PenstockSolver {
 public:
  // `iterations`: 0: until the tolerance is met; otherwise so many, unrolled.
  PenstockSolver(ps::Runtime& runtime, int64_t side, ps::Lowering lowering, int iterations = 0)
      : side_(side), b_(RightHandSide(side)), until_tolerance_(iterations == 0) {
    const ps::Extent square{side, side};
    on_device_ = Must(runtime.MakeState<float>("b", square, b_));
    x_ = Must(runtime.MakeState<float>("x", square));
    count_ = Must(runtime.MakeState<int32_t>("count", 1));
    ps::Graph g("solver");
    auto limit = g.Param<float>("limit");
    auto b = g.Use(on_device_), x = g.Use(x_);
    auto count = g.Use(count_);
    auto r = g.Buffer<float>("r", square), p = g.Buffer<float>("p", square);
    auto rr = g.Buffer<float>("rr", 1), next = g.Buffer<float>("next", 1), pq = g.Buffer<float>("pq", 1);
    g.ParallelFor("zero", 1, CgZero{}, ps::Write(count));
    g.ParallelFor("begin", {side, side}, CgBegin{}, ps::Read(b), ps::Write(x), ps::Write(r), ps::Write(p));
    g.TransformReduce("rr", {side, side}, CgSquare{}, ps::Plus(), 0.f, ps::Read(r), ps::Write(rr));
    const auto iterate = [&](ps::Graph& in) {
      in.TransformReduce("pq", {side, side}, CgCurvature{}, ps::Plus(), 0.f, ps::Read(p), ps::Write(pq));
      in.ParallelFor("step", {side, side}, CgStep{}, ps::Read(rr), ps::Read(pq), ps::Read(p), ps::ReadWrite(x),
                     ps::ReadWrite(r));
      in.TransformReduce("next", {side, side}, CgSquare{}, ps::Plus(), 0.f, ps::Read(r), ps::Write(next));
      in.ParallelFor("turn", {side, side}, CgTurn{}, ps::Read(rr), ps::Read(next), ps::Read(r), ps::ReadWrite(p));
      in.ParallelFor("keep", 1, CgKeep{}, ps::Read(next), ps::Write(rr), ps::ReadWrite(count));
    };
    if (iterations > 0) g.Repeat("solve", iterations, iterate);
    else g.While("solve", ps::When(CgAbove{}, limit, ps::Read(rr)), {.max = kMostIterations}, iterate);
    exec_ = Must(runtime.Compile(g, {.slots = 1, .mode = ps::Mode::kGraph, .constructs = lowering}));
    io_ = exec_.bindings();
    io_.Set(limit, static_cast<float>(kTolerance * kTolerance * SquareOf(b_)));
  }
  Sample Run() {
    const Clock::time_point begin = Clock::now();
    ps::Run run = Must(exec_.Launch(io_));
    const Clock::time_point submitted = Clock::now();
    Must(run.Wait());
    const Clock::time_point end = Clock::now();
    if (until_tolerance_) CheckSolution(Solution(), b_, side_);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }
  std::vector<float> Solution() {
    std::vector<float> x(b_.size());
    Must(x_.Read(x));
    return x;
  }
  int iterations() {
    std::vector<int32_t> count(1);
    Must(count_.Read(count));
    return count[0];
  }

 private:
  const int64_t side_;
  const std::vector<float> b_;
  const bool until_tolerance_;
  ps::State<float> on_device_, x_;
  ps::State<int32_t> count_;
  ps::Executable exec_;
  ps::Bindings io_;
};

// --- by hand: three kernels an iteration, whose sums are atomic ---

struct HandCg {
  float rr, next, pq;
};

constexpr int kCgBlock = 256;

__device__ inline void AddToSum(float value, float* sum) {
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  __shared__ float warps[kCgBlock / 32];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  value = threadIdx.x < kCgBlock / 32 ? warps[threadIdx.x] : 0;
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  if (threadIdx.x == 0) atomicAdd(sum, value);
}
__global__ void HandCgClear(HandCg* sums) {
  AwaitBefore();
  sums->rr = sums->next = sums->pq = 0;
}
__global__ void HandCgBegin(int n, const float* b, float* x, float* r, float* p, HandCg* sums) {
  AwaitBefore();
  const int i = static_cast<int>(blockIdx.x) * kCgBlock + static_cast<int>(threadIdx.x);
  const float value = i < n ? b[i] : 0;
  if (i < n) x[i] = 0, r[i] = p[i] = value;
  AddToSum(value * value, &sums->rr);
}
__global__ void HandCgCurvature(int side, const float* p, HandCg* sums) {
  AwaitBefore();
  const int i = static_cast<int>(blockIdx.x) * kCgBlock + static_cast<int>(threadIdx.x);
  if (i == 0) sums->next = 0;
  AddToSum(i < side * side ? p[i] * Laplacian(HandPlane{p, side}, side, i / side, i % side) : 0, &sums->pq);
}
__global__ void HandCgStep(int side, const float* p, float* x, float* r, HandCg* sums) {
  AwaitBefore();
  const int i = static_cast<int>(blockIdx.x) * kCgBlock + static_cast<int>(threadIdx.x);
  const float alpha = sums->rr / sums->pq;
  float left = 0;
  if (i < side * side) {
    x[i] += alpha * p[i];
    r[i] = left = r[i] - alpha * Laplacian(HandPlane{p, side}, side, i / side, i % side);
  }
  AddToSum(left * left, &sums->next);
}
__global__ void HandCgTurn(int n, const float* r, float* p, const HandCg* sums) {
  AwaitBefore();
  const int i = static_cast<int>(blockIdx.x) * kCgBlock + static_cast<int>(threadIdx.x);
  if (i < n) p[i] = r[i] + sums->next / sums->rr * p[i];
}
__global__ void HandCgKeep(HandCg* sums) {
  AwaitBefore();
  sums->rr = sums->next;
  sums->pq = 0;
}

class SolverByHand {
 public:
  explicit SolverByHand(int side) : side_(side), b_(RightHandSide(side)), stream_(MakeStream()) {
    const size_t n = b_.size();
    const auto count = static_cast<int>(n);
    device_b_ = MakeDeviceMemory<float>(n);
    x_ = MakeDeviceMemory<float>(n);
    float* const r = MakeDeviceMemory<float>(n);
    float* const p = MakeDeviceMemory<float>(n);
    sums_ = MakeDeviceMemory<HandCg>(1);
    Check(cudaMallocHost(&seen_, sizeof(*seen_)), "allocating pinned memory");
    Check(cudaMemcpy(device_b_, b_.data(), n * sizeof(float), cudaMemcpyHostToDevice), "setting b");
    limit_ = static_cast<float>(kTolerance * kTolerance * SquareOf(b_));
    const unsigned blocks = static_cast<unsigned>((n + kCgBlock - 1) / kCgBlock);
    HandGraph begin, iterate;
    const auto clear = begin.Add({}, HandCgClear, 1, sums_);
    begin.AddGrid({clear}, HandCgBegin, blocks, kCgBlock, count, device_b_, x_, r, p, sums_);
    begin_ = begin.Instantiate();
    const auto pq = iterate.AddGrid({}, HandCgCurvature, blocks, kCgBlock, side, p, sums_);
    const auto step = iterate.AddGrid({pq}, HandCgStep, blocks, kCgBlock, side, p, x_, r, sums_);
    const auto turn = iterate.AddGrid({step}, HandCgTurn, blocks, kCgBlock, count, r, p, sums_);
    iterate.Add({turn}, HandCgKeep, 1, sums_);
    iterate_ = iterate.Instantiate();
  }
  Sample Run() {
    const Clock::time_point begin = Clock::now();
    Check(cudaGraphLaunch(begin_, stream_), "launching");
    iterations_ = 0;
    do {
      Check(cudaGraphLaunch(iterate_, stream_), "launching");
      Check(cudaMemcpyAsync(seen_, sums_, sizeof(HandCg), cudaMemcpyDeviceToHost, stream_), "reading");
      Check(cudaStreamSynchronize(stream_), "waiting");
      ++iterations_;
    } while (seen_->rr > limit_ && iterations_ < kMostIterations);
    const Clock::time_point end = Clock::now();
    std::vector<float> x(b_.size());
    Check(cudaMemcpy(x.data(), x_, x.size() * sizeof(float), cudaMemcpyDeviceToHost), "reading");
    CheckSolution(x, b_, side_);
    return {0, Microseconds(end - begin)};
  }
  int iterations() const { return iterations_; }

 private:
  const int side_;
  const std::vector<float> b_;
  const cudaStream_t stream_;
  float *device_b_ = nullptr, *x_ = nullptr;
  HandCg *sums_ = nullptr, *seen_ = nullptr;
  float limit_ = 0;
  cudaGraphExec_t begin_ = nullptr, iterate_ = nullptr;
  int iterations_ = 0;
};

}  // namespace bench
