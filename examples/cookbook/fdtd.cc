// Cookbook: electromagnetic waves between walls of metal, by finite differences in time (Yee 1966): a simulation of as
// many steps as each launch says.
//
// docs/howto/cookbook/fdtd.md explains the program.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kSide = 100, kMiddle = kSide / 2;
constexpr int64_t kMostSteps = 1000, kPulse = 40;

// Light crosses half a cell in a step. Products with a half are exact, so the fields have the same bits everywhere,
// whether or not a compiler makes one operation of a product and a sum.
struct Magnetic {
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const double> ez, ps::View<double> hx,
                                 ps::View<double> hy) const {
    hx(i.y, i.x) -= 0.5 * (ez(i.y + 1, i.x) - ez(i.y, i.x));
    hy(i.y, i.x) += 0.5 * (ez(i.y, i.x + 1) - ez(i.y, i.x));
  }
};
struct Electric {  // not in the walls, where the field stays 0
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const double> hx, ps::View<const double> hy,
                                 ps::View<double> ez) const {
    const int64_t y = i.y + 1, x = i.x + 1;
    ez(y, x) += 0.5 * ((hy(y, x) - hy(y, x - 1)) - (hx(y, x) - hx(y - 1, x)));
  }
};
struct Source {
  PS_HOST_DEVICE void operator()(int64_t, const double* pulse, int64_t* step, ps::View<double> ez) const {
    ez(kMiddle, kMiddle) += pulse[(*step)++];
  }
};

// The fields in host memory, and a step by plain loops.
struct Fields {
  std::vector<double> ez = std::vector<double>(kSide * kSide), hx = ez, hy = ez;

  void Step(double pulse) {
    for (int64_t i = 0; i < kSide * (kSide - 1); ++i) {
      if (i % kSide == kSide - 1) continue;
      hx[i] -= 0.5 * (ez[i + kSide] - ez[i]);
      hy[i] += 0.5 * (ez[i + 1] - ez[i]);
    }
    for (int64_t i = kSide; i < kSide * (kSide - 1); ++i) {
      if (i % kSide == 0 || i % kSide == kSide - 1) continue;
      ez[i] += 0.5 * ((hy[i] - hy[i - 1]) - (hx[i] - hx[i - kSide]));
    }
    ez[kMiddle * kSide + kMiddle] += pulse;
  }
  double Energy() const {
    double sum = 0;
    for (int64_t i = 0; i < kSide * kSide; ++i) sum += (ez[i] * ez[i] + hx[i] * hx[i] + hy[i] * hy[i]) / 2;
    return sum;
  }
  bool operator==(const Fields&) const = default;
};

absl::Status Cookbook() {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  ps::Graph g("fdtd");
  auto steps = g.Param<int64_t>("steps", ps::AtMost(kMostSteps));
  auto pulse = g.Input<double>("pulse", kMostSteps);
  auto ez = g.Output<double>("ez", {kSide, kSide});
  auto hx = g.Output<double>("hx", {kSide, kSide}), hy = g.Output<double>("hy", {kSide, kSide});
  auto step = g.Buffer<int64_t>("step", 1);
  g.Fill("step", step, 0);
  g.Fill("ez", ez, 0);
  g.Fill("hx", hx, 0);
  g.Fill("hy", hy, 0);
  g.Repeat("go on", steps, [&](ps::Graph& body) {
    body.ParallelFor("magnetic", {kSide - 1, kSide - 1}, Magnetic{}, ps::Read(ez), ps::ReadWrite(hx),
                     ps::ReadWrite(hy));
    body.ParallelFor("electric", {kSide - 2, kSide - 2}, Electric{}, ps::Read(hx), ps::Read(hy), ps::ReadWrite(ez));
    body.ParallelFor("source", 1, Source{}, ps::Read(pulse), ps::ReadWrite(step), ps::ReadWrite(ez));
  });
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(g));

  std::vector<double> wave(kMostSteps);
  for (int64_t n = 0; n < kPulse; ++n) wave[n] = std::sin(M_PI * n / kPulse) * std::sin(M_PI * n / 10);
  Fields fields, expected;
  int64_t done = 0;
  double energy = 0;  // after the first launch: later ones have no more to put in, and walls keep it
  ps::Bindings io = exec.bindings();
  io.Set(pulse, wave).Set(ez, fields.ez).Set(hx, fields.hx).Set(hy, fields.hy);
  for (const int64_t n : {kPulse, 3 * kPulse, 10 * kPulse}) {
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(steps, n)));
    for (; done < n; ++done) expected.Step(wave[done]);
    PS_RETURN_IF_ERROR(run.Wait());
    if (energy == 0) energy = fields.Energy();
    std::printf("%d steps: energy %.3f, in the middle %+.4f\n", static_cast<int>(n), fields.Energy(),
                fields.ez[kMiddle * kSide + kMiddle]);
    if (fields != expected) return absl::InternalError("the fields are wrong");
    if (!(std::fabs(fields.Energy() - energy) < 0.02 * energy)) return absl::InternalError("energy is lost or made");
  }
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
