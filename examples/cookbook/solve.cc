// Cookbook: a solver in one launch. Solves Poisson's equation on a square by the method of conjugate gradients
// (Hestenes and Stiefel 1952): the loop, and the test that ends it, are in the graph.
//
// docs/howto/cookbook/solve.md explains the program.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kSide = 128;
constexpr int64_t kMostIterations = 1000;
constexpr double kTolerance = 1e-6;

// The five-point stencil: 4 u(y, x) minus its neighbours, which are 0 outside of the square.
template <class Plane>
PS_HOST_DEVICE inline float Laplacian(ps::Index2 i, const Plane& u) {
  const float up = i.y > 0 ? u(i.y - 1, i.x) : 0, down = i.y + 1 < kSide ? u(i.y + 1, i.x) : 0;
  const float left = i.x > 0 ? u(i.y, i.x - 1) : 0, right = i.x + 1 < kSide ? u(i.y, i.x + 1) : 0;
  return 4 * u(i.y, i.x) - up - down - left - right;
}

// The same plane in host memory.
struct HostPlane {
  const float* u;
  PS_HOST_DEVICE float operator()(int64_t y, int64_t x) const { return u[y * kSide + x]; }
};

struct Begin {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const float> b, ps::View<float> x, ps::View<float> r,
                                 ps::View<float> p) const {
    x(i.y, i.x) = 0;
    r(i.y, i.x) = p(i.y, i.x) = b(i.y, i.x);
  }
};
struct Apply {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const float> p, ps::View<float> q) const {
    q(i.y, i.x) = Laplacian(i, p);
  }
};
struct Product {
  PS_HOST_DEVICE double operator()(ps::Index2 i, ps::View<const float> a, ps::View<const float> b) const {
    return double{a(i.y, i.x)} * double{b(i.y, i.x)};
  }
};
struct Step {
  PS_HOST_DEVICE void operator()(ps::Index2 i, const double* rr, const double* pq, ps::View<const float> p,
                                 ps::View<const float> q, ps::View<float> x, ps::View<float> r) const {
    const auto alpha = static_cast<float>(*rr / *pq);
    x(i.y, i.x) += alpha * p(i.y, i.x);
    r(i.y, i.x) -= alpha * q(i.y, i.x);
  }
};
struct Turn {
  PS_HOST_DEVICE void operator()(ps::Index2 i, const double* rr, const double* next, ps::View<const float> r,
                                 ps::View<float> p) const {
    p(i.y, i.x) = r(i.y, i.x) + static_cast<float>(*next / *rr) * p(i.y, i.x);
  }
};
struct IsAbove {
  PS_HOST_DEVICE bool operator()(double limit, const double* rr) const { return *rr > limit; }
};

absl::Status Cookbook() {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  const ps::Extent square{kSide, kSide};

  ps::Graph g("poisson");
  auto limit = g.Param<double>("limit");  // the square of the residual's norm that is small enough
  auto b = g.Input<float>("b", square);
  auto x = g.Output<float>("x", square);
  auto iterations = g.Output<int32_t>("iterations", 1);
  auto r = g.Buffer<float>("r", square), p = g.Buffer<float>("p", square), q = g.Buffer<float>("q", square);
  auto rr = g.Buffer<double>("rr", 1), next = g.Buffer<double>("next", 1), pq = g.Buffer<double>("pq", 1);
  g.ParallelFor("begin", {kSide, kSide}, Begin{}, ps::Read(b), ps::Write(x), ps::Write(r), ps::Write(p));
  g.TransformReduce("rr", {kSide, kSide}, Product{}, ps::Plus(), 0.0, ps::Read(r), ps::Read(r), ps::Write(rr));
  const auto is_above = ps::When(IsAbove{}, limit, ps::Read(rr)).Count(iterations);
  g.While("solve", is_above, {.max = kMostIterations}, [&](ps::Graph& body) {
    body.ParallelFor("apply", {kSide, kSide}, Apply{}, ps::Read(p), ps::Write(q));
    body.TransformReduce("pq", {kSide, kSide}, Product{}, ps::Plus(), 0.0, ps::Read(p), ps::Read(q), ps::Write(pq));
    body.ParallelFor("step", {kSide, kSide}, Step{}, ps::Read(rr), ps::Read(pq), ps::Read(p), ps::Read(q),
                     ps::ReadWrite(x), ps::ReadWrite(r));
    body.TransformReduce("next", {kSide, kSide}, Product{}, ps::Plus(), 0.0, ps::Read(r), ps::Read(r), ps::Write(next));
    body.ParallelFor("turn", {kSide, kSide}, Turn{}, ps::Read(rr), ps::Read(next), ps::Read(r), ps::ReadWrite(p));
    body.Copy("keep", next, rr);
  });
  PS_ASSIGN_OR_RETURN(ps::Executable solver, runtime.Compile(g));

  std::vector<float> rhs(kSide * kSide), solution(rhs.size());
  double norm = 0;
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    rhs[i] = static_cast<float>(i * 7919 % 23) / 11 - 1;
    norm += double{rhs[i]} * double{rhs[i]};
  }
  int32_t count = 0;
  const double enough = kTolerance * kTolerance * norm;
  ps::Bindings io = solver.bindings();
  io.Set(limit, enough).Set(b, rhs).Set(x, solution).Set(iterations, std::span(&count, 1));
  PS_ASSIGN_OR_RETURN(ps::Run run, solver.Launch(io));
  PS_RETURN_IF_ERROR(run.Wait());

  double left = 0;
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    const ps::Index2 at{i / kSide, i % kSide};
    const double difference = double{rhs[i]} - double{Laplacian(at, HostPlane{solution.data()})};
    left += difference * difference;
  }
  std::printf("%d iterations leave %.1e of the right-hand side\n", count, std::sqrt(left / norm));
  return left <= 100 * enough ? absl::OkStatus() : absl::InternalError("the solution is wrong");
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
