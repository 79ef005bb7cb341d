// Cookbook: a Kalman filter (Kalman 1960) that follows a thing which moves along a line: a thousand steps of a control
// loop in one launch, each of a few nodes that are far smaller than what a launch costs.
//
// docs/howto/cookbook/kalman.md explains the program.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kSteps = 1000;
constexpr double kTick = 0.01;  // s between measurements
constexpr double kPush = 20, kNoise = 0.04;  // variances: of unknown acceleration, of measurements

// Place and speed, and how they vary together.
struct Estimate {
  double place, speed;
  double pp, ps, ss;
};

struct Predict {
  PS_HOST_DEVICE void operator()(int64_t, Estimate* e) const {
    const double t = kTick;
    e->place += t * e->speed;
    e->pp += t * (2 * e->ps + t * e->ss) + kPush * t * t * t * t / 4;
    e->ps += t * e->ss + kPush * t * t * t / 2;
    e->ss += kPush * t * t;
  }
};
struct Gain {
  PS_HOST_DEVICE void operator()(int64_t i, const Estimate* e, double* gain) const {
    gain[i] = (i == 0 ? e->pp : e->ps) / (e->pp + kNoise);
  }
};
struct Correct {
  PS_HOST_DEVICE void operator()(int64_t, const double* measured, const double* gain, int64_t* step, Estimate* e,
                                 double* path) const {
    const double off = measured[*step] - e->place;
    e->place += gain[0] * off;
    e->speed += gain[1] * off;
    e->ss -= gain[1] * e->ps;
    e->pp -= gain[0] * e->pp;
    e->ps -= gain[0] * e->ps;
    path[(*step)++] = e->place;
  }
};

// The same by a plain loop.
std::vector<double> Follow(const std::vector<double>& measured, Estimate e) {
  std::vector<double> path(kSteps);
  int64_t step = 0;
  while (step < kSteps) {
    double gain[2];
    Predict{}(0, &e);
    for (int64_t i = 0; i < 2; ++i) Gain{}(i, &e, gain);
    Correct{}(0, measured.data(), gain, &step, &e, path.data());
  }
  return path;
}

absl::Status Cookbook() {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  ps::Graph g("kalman");
  auto measured = g.Input<double>("measured", kSteps);
  auto start = g.Input<Estimate>("start", 1);
  auto path = g.Output<double>("path", kSteps);
  auto now = g.Buffer<Estimate>("now", 1);
  auto gain = g.Buffer<double>("gain", 2);
  auto step = g.Buffer<int64_t>("step", 1);
  g.Copy("begin", start, now);
  g.Fill("step", step, 0);
  g.Repeat("follow", kSteps, [&](ps::Graph& body) {
    body.ParallelFor("predict", 1, Predict{}, ps::ReadWrite(now));
    body.ParallelFor("gain", 2, Gain{}, ps::Read(now), ps::Write(gain));
    body.ParallelFor("correct", 1, Correct{}, ps::Read(measured), ps::Read(gain), ps::ReadWrite(step),
                     ps::ReadWrite(now), ps::WriteSome(path));
  });
  PS_ASSIGN_OR_RETURN(ps::Executable exec,
                      runtime.Compile(g, {.mode = ps::Mode::kGraph, .resident = ps::Resident::kOn}));

  std::vector<double> seen(kSteps), truth(kSteps), got(kSteps);
  uint32_t random = 1;
  for (int64_t n = 0; n < kSteps; ++n) {
    truth[n] = std::sin(n * kTick);
    random = random * 1664525U + 1013904223U;
    seen[n] = truth[n] + (random / 4294967296.0 - 0.5) * 0.7;  // a variance of about 0.04
  }
  std::vector<Estimate> guess = {{.place = 0, .speed = 0, .pp = 1, .ps = 0, .ss = 1}};
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(exec.bindings().Set(measured, seen).Set(start, guess).Set(path, got)));
  PS_RETURN_IF_ERROR(run.Wait());

  double before = 0, after = 0, wrong = 0;
  const std::vector<double> expected = Follow(seen, guess[0]);
  for (int64_t n = 0; n < kSteps; ++n) {
    before += (seen[n] - truth[n]) * (seen[n] - truth[n]) / kSteps;
    after += (got[n] - truth[n]) * (got[n] - truth[n]) / kSteps;
    wrong = std::fmax(wrong, std::fabs(got[n] - expected[n]));
  }
  std::printf("%d steps in one launch\n", static_cast<int>(kSteps));
  std::printf("measurements are off by %.3f, the filter by %.3f\n", std::sqrt(before), std::sqrt(after));
  return wrong < 1e-9 ? absl::OkStatus() : absl::InternalError("the path is wrong");
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
