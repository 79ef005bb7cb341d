// one-slot and waits-for-each-run: each run ends before the next one begins, so engines that could work side by side
// take turns.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/analysis/rules/enough_slots.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

// What both rules say of graph `g`, if overlapping its runs would bring enough; else no rule.
Finding NoOverlapIn(const Facts& facts, int g) {
  const GraphFacts& of = facts.graphs()[static_cast<size_t>(g)];
  if (of.time.empty()) return {};
  const OverlapBound bound = BoundOfOverlap(facts, g);
  const double gain = facts.Share(of.time_us - bound.us);
  Finding finding;
  if (gain < kNoticeable || of.runs < 2) return finding;
  const auto runs = static_cast<double>(of.runs);
  finding.share = gain;
  finding.graph = g;
  finding.evidence.push_back(absl::StrCat("A run takes ", TimeText(of.time_us / runs), ", of which ", bound.what,
                                          " has ", TimeText(bound.us / runs), ": ", of.runs, " runs, one at a time."));
  finding.gain = gain;
  finding.gain_how = absl::StrCat("with runs that overlap, a run takes as long as its busiest part, ", bound.what);
  return finding;
}

}  // namespace

void FindOneSlot(const Facts& facts, std::vector<Finding>& findings) {
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    const GraphFacts& of = facts.graphs()[g];
    const Profile::Graph& graph = facts.profile().graphs[g];
    if (graph.slots != 1 || of.is_body || !of.steady) continue;
    Finding finding = NoOverlapIn(facts, static_cast<int>(g));
    if (!finding.gain) continue;
    finding.rule = "one-slot";
    const int slots = SlotsFor(facts, static_cast<int>(g), BoundOfOverlap(facts, static_cast<int>(g)));
    finding.evidence.push_back(absl::StrCat("The executable has one slot, so its runs cannot overlap. A slot takes ",
                                            SizeText(graph.slot_device_bytes), " on the device and ",
                                            SizeText(graph.slot_pinned_bytes), " pinned."));
    finding.fix = absl::StrCat("Compile ", GraphText(graph), " with CompileOptions::slots = ", slots,
                               ", and launch the next run before you wait for the one before.");
    findings.push_back(std::move(finding));
  }
}

// A caller that is slow, and waits for nothing, launches late as well. It does so by less than a run's time only by
// chance.
void FindWaitsForEachRun(const Facts& facts, std::vector<Finding>& findings) {
  double late_us = 0;
  for (const IdlePart& part : facts.idle()) late_us += part.cause == IdleCause::kCaller ? part.at.length() : 0;
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    const GraphFacts& of = facts.graphs()[g];
    const Profile::Graph& graph = facts.profile().graphs[g];
    if (graph.slots <= 1 || of.is_body || !of.steady || of.most_in_flight != 1) continue;
    if (late_us > of.time_us / 2) continue;
    Finding finding = NoOverlapIn(facts, static_cast<int>(g));
    if (!finding.gain) continue;
    finding.rule = "waits-for-each-run";
    finding.evidence.push_back(absl::StrCat("The executable has ", graph.slots,
                                            " slots, but each run is launched after the one before has ended."));
    finding.fix = absl::StrCat("Keep several runs of ", GraphText(graph),
                               " in flight: call Launch for the next one before Run::Wait of the one before, or use a "
                               "Pipeline.");
    findings.push_back(std::move(finding));
  }
}

}  // namespace penstock::analysis
