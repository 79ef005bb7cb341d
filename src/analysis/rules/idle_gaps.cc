// idle-gaps: idle time behind which no other rule's cause lies: waits for States and leases, and hand-overs within
// runs.
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/rules/idle_sums.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

struct GapAdvice {
  IdleCause cause;
  const char* what;  // went on
  const char* fix;
  double shortest_us;  // on average; less may be a thread that takes its time to wake up
};

constexpr GapAdvice kGapAdvice[] = {
    {IdleCause::kStateWait, "a run waited for another one's use of a State",
     "Use the State in as few nodes as possible, close to each other, so that less of a run lies between its first and "
     "its last "
     "use.",
     0},
    {IdleCause::kLeaseWait, "a launch waited for a slot that a lease held, since no run was in flight",
     "Drop each lease as soon as its results are used, or compile with more CompileOptions::slots than leases are "
     "held.",
     200},
    {IdleCause::kSlotWait, "runs were in flight, a launch waited for a slot, and no node was at work",
     "If runs may overlap, compile with more CompileOptions::slots, so that the next run's work is on the device when "
     "one ends; "
     "else give each run more to do.",
     0},
    {IdleCause::kHandOver,
     "a run was in flight, and no node of it was at work: it started, or its end was being noticed",
     "Launch the next run before the one before has ended, or give each run more to do.", 0},
};

}  // namespace

void FindIdleGaps(const Facts& facts, std::vector<Finding>& findings) {
  for (const GapAdvice& advice : kGapAdvice) {
    IdleSum most;
    double us = 0;
    int64_t parts = 0;
    for (const IdleSum& idle : SumIdle(facts, advice.cause)) {
      const bool one_slot = idle.graph >= 0 && facts.profile().graphs[static_cast<size_t>(idle.graph)].slots <= 1;
      if (advice.cause == IdleCause::kSlotWait && one_slot) continue;  // one-slot says it
      us += idle.us;
      parts += idle.parts;
      if (idle.us > most.us) most = idle;
    }
    if (facts.Share(us) < kNoticeable || us < advice.shortest_us * static_cast<double>(parts)) continue;
    Finding finding;
    finding.rule = "idle-gaps";
    finding.share = facts.Share(us);
    finding.graph = most.graph;
    finding.span = most.longest.span;
    finding.begin_us = most.longest.at.begin;
    finding.end_us = most.longest.at.end;
    finding.evidence.push_back(
        absl::StrCat("For ", PercentText(finding.share), " of the time no device worked while ", advice.what, "."));
    if (finding.span >= 0) {
      finding.evidence.push_back(
          absl::StrCat("The longest such gap took ", TimeText(most.longest.at.length()), " (",
                       graph::OneLine(facts.profile().spans[static_cast<size_t>(finding.span)].name), ")."));
    }
    finding.fix = advice.fix;
    finding.gain_how = "unknown: what could fill these gaps is not in the profile";
    findings.push_back(std::move(finding));
  }
}

}  // namespace penstock::analysis
