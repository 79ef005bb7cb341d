// What a new scalar costs a captured library call: y = max(alpha * A * x + b, 0) by cuBLAS's gemv and a kernel,
// replayed as CUDA graphs, by hand (raw.cuh) and with Penstock (penstock.cuh).
//
//   unchanged   the graph that was captured is launched again; alpha is as it was
//   new scalar  alpha is another in every run: by hand by a small copy, or captured anew and updated
//
// Both upload x and download y in every run; A and b stay on the device, Penstock's as States. x is drawn anew and y
// poisoned before each run, and each result is compared with the CPU's. All numbers are small integers, so sums are
// exact. Timed: from before what is set for the launch to its return (submit), and until the work is done (total).
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock.cuh"
#include "penstock/ps.h"
#include "raw.cuh"
#include "work.cuh"

namespace bench {
namespace {

// One run after the other: draws, times and checks.
std::function<Sample()> Checked(std::shared_ptr<Step> step, bool changes, std::function<Sample(float)> run) {
  return [step = std::move(step), changes, run = std::move(run)] {
    const float alpha = changes ? step->NextAlpha() : Step::SameAlpha();
    step->Draw();
    const Sample sample = run(alpha);
    step->CheckResult(alpha);
    return sample;
  };
}

// Whatever alpha was, only the first launch has set nodes, and only Compile has captured.
void CheckLedger(const ps::SubmissionReport& before, const ps::SubmissionReport& after) {
  if (after.captures != before.captures || after.nodes_set != before.nodes_set || after.graphs != before.graphs) {
    Fail("a new scalar has set nodes or was captured: " + after.Text());
  }
}

void Main(const Options& options) {
  Report report("Captured library call: a new scalar");
  if (const std::string missing = WhyNoDevice(); !missing.empty()) return report.Skip(missing, "");
  Check(cudaSetDevice(0), "choosing device 0");
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "cuda:0"}));
  report.Note("cuBLAS's gemv of " + std::to_string(kN) + " x " + std::to_string(kN) +
              " and a kernel, captured once. Medians of " + std::to_string(options.repeats) +
              " runs each, the ways in turn, on " + runtime.devices()[0].description +
              ". Raw is the best of the raw ways below but where a row names one.");
  const auto step = std::make_shared<Step>(runtime);
  const auto raw = std::make_shared<RawCaptured>(runtime, step);
  const auto same = std::make_shared<PenstockCaptured>(runtime, *step);
  const auto changing = std::make_shared<PenstockCaptured>(runtime, *step);
  enum Group { kUnchanged, kChanged };
  std::vector<Way> ways;
  const auto add = [&](Kind kind, const std::string& name, Group group, std::function<Sample(float)> run) {
    ways.push_back({kind, name, Checked(step, group == kChanged, std::move(run)), group});
  };
  const std::string anew = "raw, new scalar captured anew, and update";
  add(Kind::kRaw, "raw, unchanged", kUnchanged, [raw](float alpha) { return raw->Run(alpha); });
  add(Kind::kRaw, "raw, new scalar by a copy before", kChanged, [raw](float alpha) { return raw->RunCopying(alpha); });
  add(Kind::kRaw, "raw, new scalar by a copy in the graph", kChanged,
      [raw](float alpha) { return raw->RunWithCopyInside(alpha); });
  add(Kind::kRaw, anew, kChanged, [raw](float alpha) { return raw->RunCapturingAnew(alpha); });
  add(Kind::kPenstock, "penstock, unchanged", kUnchanged, [same](float alpha) { return same->Run(alpha); });
  add(Kind::kPenstock, "penstock, new scalar", kChanged, [changing](float alpha) { return changing->Run(alpha); });
  Measure(ways, 1, 0);
  const ps::SubmissionReport before = changing->submission_report();
  Measure(ways, options.quick ? 1 : 3, options.repeats);
  CheckLedger(before, changing->submission_report());

  const Way &ours_same = Find(ways, "penstock, unchanged"), &ours_new = Find(ways, "penstock, new scalar");
  const auto rows = [&](const std::string& when, double Sample::* figure) {
    const auto of = [&](const Way& way) { return SpreadOf(way, figure, 1); };
    report.Compare("unchanged, " + when, "us", of(Best(ways, Kind::kRaw, figure, kUnchanged)), of(ours_same), 0);
    report.Compare("new scalar, " + when, "us", of(Best(ways, Kind::kRaw, figure, kChanged)), of(ours_new), 0);
    report.Compare("new scalar, " + when + "; raw: captured anew", "us", of(Find(ways, anew)), of(ours_new), 0);
    report.CompareSums("new scalar, " + when + "; raw: Penstock's, unchanged", "us", of(ours_same), of(ours_new), 3);
  };
  rows("submit", &Sample::submit);
  rows("until done", &Sample::total);
  report.Details("step", "us", ways, 1);
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "captured", "What a new scalar costs a captured library call."));
    return 0;
  });
}
