// 64 items of 4 MiB up, through a kernel as long as the upload, and down: raw CUDA (raw.cuh) and Penstock
// against the floor max(both directions at once, kernels alone). All memory is pinned, but for one Penstock way, whose
// items lie in ordinary memory; its floor is the same.
//
// Penstock: one graph of one kernel, compiled with a few slots, and the loop that a user would write: launch every
// item, then wait for all; the slots hold the loop back. Beside it a Pipeline of the same executable. Timed from before
// the first Launch to after the last Wait. Raw ways and Penstock use the same host memory, where it is pinned, and
// launch the same kernel. Every word of every run is checked. One Penstock way records a profile.
//
// Without a CUDA device the Penstock half runs on a host device, for its results only.
#include <algorithm>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock.cuh"
#include "penstock/ps.h"
#include "raw.cuh"
#include "staging_log.h"
#include "work.cuh"

namespace bench {
namespace {

constexpr const char* kBoth = "both directions at once";
constexpr const char* kKernels = "kernels alone";
constexpr const char *kPenstockWay = "Penstock", *kPenstockPipe = "Penstock, a Pipeline",
                     *kPenstockPlain = "Penstock, not pinned", *kPenstockProfiled = "Penstock, with a profile";

std::vector<Way> WaysOf(Items& items, RawPipeline& raw, PenstockPipeline& penstock, Items& plain_items,
                        PenstockPipeline& plain, PenstockPipeline& profiled, int slots) {
  const std::string sets = std::to_string(slots) + " pairs of buffers";
  const int all = items.count;
  return {
      {Kind::kFloor, kBoth, [&] { return raw.Alone(true, false, true); }},
      {Kind::kFloor, kKernels, [&] { return raw.Alone(false, true, false); }},
      {Kind::kScale, "uploads alone", [&] { return raw.Alone(true, false, false); }},
      {Kind::kScale, "downloads alone", [&] { return raw.Alone(false, false, true); }},
      Checked(Kind::kRaw, "engines, " + sets, items, [&raw, slots] { return raw.Engines(slots, 1); }),
      Checked(Kind::kRaw, "engines, a pair an item", items, [&raw, all] { return raw.Engines(all, 1); }),
      Checked(Kind::kRaw, "pieces of half an item, a pair a piece", items,
              [&raw, all] { return raw.Engines(2 * all, 2); }),
      Checked(Kind::kRaw, "slots, " + sets, items, [&raw, slots] { return raw.Slots(slots); }),
      Checked(Kind::kPenstock, kPenstockWay, items, [&penstock] { return penstock.Run(); }),
      Checked(Kind::kPenstock, kPenstockPipe, items, [&penstock] { return penstock.RunPipe(); }),
      Checked(Kind::kPenstock, kPenstockPlain, plain_items, [&plain] { return plain.Run(); }),
      Checked(Kind::kPenstock, kPenstockProfiled, items, [&profiled] { return profiled.Run(); }),
  };
}

void AddTo(Report& report, const std::vector<Way>& ways, const Items& items) {
  const auto total = [&](const Way& way) { return SpreadOf(way, &Sample::total, 1); };
  const Spread both = total(Find(ways, kBoth)), kernels = total(Find(ways, kKernels));
  const Spread floor = both.median > kernels.median ? both : kernels;
  const Spread penstock = total(Find(ways, kPenstockWay)), best = total(BestRaw(ways, &Sample::total));
  const std::string what =
      std::to_string(items.count) + " x " + std::to_string(items.words * 4 / 1024) + " KiB up, kernel, down";
  report.Compare(what + "; raw: the floor", "us", floor, penstock, 1.03);
  report.Compare(what + "; raw: the best by hand", "us", best, penstock, 0);
  report.Compare(what + ", a Pipeline; raw: the best by hand", "us", best, total(Find(ways, kPenstockPipe)), 1 / 0.97);
  report.Compare(what + ", not pinned, default slots; raw: the floor", "us", floor, total(Find(ways, kPenstockPlain)),
                 1.30);
  report.Compare(what + ", with a profile; raw: Penstock without", "us", penstock, total(Find(ways, kPenstockProfiled)),
                 1.03);
  report.Details("all items", "us", ways, 1);
}

int OnHostDevice(const std::string& missing) {
  constexpr int64_t kWords = 20000;  // enough for the way of large copies
  Items plain_items(nullptr, 8, kWords);
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host"}));
  Items items(&runtime, 8, kWords);
  items.rounds = plain_items.rounds = 10;
  PenstockPipeline penstock(runtime, items, 3, ps::kPinned), plain(runtime, plain_items, 3, ps::kHost);
  Checked(Kind::kPenstock, kPenstockWay, items, [&] { return penstock.Run(); }).run();
  Checked(Kind::kPenstock, kPenstockPipe, items, [&] { return penstock.RunPipe(); }).run();
  Checked(Kind::kPenstock, kPenstockPlain, plain_items, [&] { return plain.Run(); }).run();
  Report("Copies and kernels").Skip(missing, "On a host device the Penstock half gave the right results.");
  return 0;
}

int Main(const Options& options) {
  if (const std::string missing = WhyNoDevice(); !missing.empty()) return OnHostDevice(missing);
  Check(cudaSetDevice(0), "choosing device 0");
  const int count = options.quick ? 8 : 64;
  constexpr int64_t kWords = int64_t{1} << 20;
  Items plain_items(nullptr, count, kWords);  // outlives the runtime, which may still have runs after a failure
  const StagingLog log;
  ps::Runtime runtime = Must(ps::Runtime::Create(log.Listen({.devices = "cuda:0"})));
  Items items(&runtime, count, kWords);
  RawPipeline raw(items);
  MakeKernelAsLongAsUpload(items, raw);
  plain_items.rounds = items.rounds;
  PenstockPipeline penstock(runtime, items, options.slots, ps::kPinned);
  PenstockPipeline plain(runtime, plain_items, 0, ps::kHost);
  PenstockPipeline profiled(runtime, items, options.slots, ps::kPinned, {}, true);
  std::vector<Way> ways = WaysOf(items, raw, penstock, plain_items, plain, profiled, options.slots);
  Measure(ways, 2, options.repeats);

  Report report("Copies and kernels");
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
              runtime.devices()[0].description + ". The kernel was made as long as the upload (" +
              std::to_string(items.rounds) +
              " rounds a word). The floor is the longer of both directions at once and the kernels alone, with pinned "
              "memory. Penstock has " +
              std::to_string(options.slots) + " slots, where memory is not pinned those that Compile chooses, " +
              std::to_string(plain.exec().slots()) +
              ", and is fed by one host thread; host memory is pinned unless a row says that it is not, and every word "
              "of every run is checked.");
  report.Note("Staging had " + log.text() + ".");
  AddTo(report, ways, items);
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(
        bench::ParseOptions(argc, argv, "copy_pipeline", "Copies and kernels at once, by hand and with Penstock."));
  });
}
