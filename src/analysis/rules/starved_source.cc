// starved-source: no run is in flight, and the program has not launched the next one.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/rules/enough_slots.h"
#include "src/analysis/rules/host_stages.h"
#include "src/analysis/rules/idle_sums.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

constexpr double kMostWorkers = 4;

// The launch that ended a gap, as a place in Profile::spans; -1: none.
int LaunchBehind(const Facts& facts, const Interval& gap) {
  int first = -1;
  for (const int s : facts.working()) {
    if (facts.profile().spans[static_cast<size_t>(s)].kind != SpanKind::kSubmit || facts.At(s).begin < gap.end)
      continue;
    if (first < 0 || facts.At(s).begin < facts.At(first).begin) first = s;
  }
  return first;
}

// What the application's own spans say about the gaps: the one that covers most of them.
void AddApplicationSpans(const Facts& facts, const std::vector<HostStage>& stages, const TimeSet& gaps,
                         Finding& finding) {
  constexpr size_t kMostNames = 1000;
  std::map<std::string, std::vector<Interval>> by_name;
  for (const int s : facts.working()) {
    const Span& span = facts.profile().spans[static_cast<size_t>(s)];
    if (span.executable >= 0) continue;
    if (by_name.size() < kMostNames || by_name.contains(span.name)) by_name[span.name].push_back(facts.At(s));
  }
  std::pair<double, std::string> most{0, ""};
  for (auto& [name, intervals] : by_name) {
    most = std::max(most, {TimeSet(std::move(intervals)).And(gaps).length(), name});
  }
  if (most.first < gaps.length() / 10) return;
  const auto stage = std::find_if(stages.begin(), stages.end(),
                                  [&](const HostStage& of) { return of.name == graph::OneLine(most.second); });
  const std::string what = stage == stages.end()
                               ? absl::StrCat("the program's own span '", graph::OneLine(most.second), "' was open")
                               : absl::StrCat(StageText(*stage),
                                              " was at work, but mostly not with all its workers, so "
                                              "no item waited for it");
  finding.evidence.push_back(absl::StrCat("In ", PercentText(most.first / gaps.length()), " of that time ", what, "."));
}

void AddStage(const Facts& facts, const HostStage& stage, const TimeSet& gaps, Finding& finding) {
  finding.evidence.push_back(
      absl::StrCat("For ", PercentText(stage.full.And(gaps).length() / gaps.length()), " of that time ",
                   StageText(stage), " had no worker free: ", TimesText(stage.calls), " it was called, for ",
                   TimeText(stage.total_us / static_cast<double>(stage.calls)), " on average, and so at work for ",
                   PercentText(facts.Share(stage.us())), " of the time."));
}

// Whether the program never launched a run before the one before had ended, and that is no matter of chance.
bool LaunchesOneAtATime(const Facts& facts, double late_us) {
  const int graph = TheGraph(facts);
  if (graph < 0) return false;
  const GraphFacts& of = facts.graphs()[static_cast<size_t>(graph)];
  return of.most_in_flight == 1 && late_us > of.time_us / 4;
}

// With other threads at it, runs follow each other as closely as their slots, and what they use, let them. If they
// overlap already where they can, only the gaps go away. What one thread does for all runs may take all the time there
// is, since it may go on beside the runs too.
void AdviseOnSource(const Facts& facts, double late_us, Finding& finding) {
  const bool one_at_a_time = LaunchesOneAtATime(facts, late_us);
  const OverlapBound pace = PaceOfRuns(facts);
  const double rest_us = std::max(pace.us, one_at_a_time ? 0 : facts.wall_us() - late_us);
  const double enough = rest_us > 0 ? std::ceil(facts.wall_us() / rest_us) : kMostWorkers;
  const int workers = static_cast<int>(std::clamp(enough, 2.0, kMostWorkers));
  finding.fix = facts.profile().pipelines.empty()
                    ? absl::StrCat(
                          "Let other threads do what the program does between runs (prepare inputs, use "
                          "results): make it host stages of a Pipeline (Stages::Host, with ",
                          workers, " workers), or launch the next run before it.")
                    : absl::StrCat("Let host stages of the pipeline (Stages::Host, with ", workers,
                                   " workers) do what the thread does that gives it items and takes them out: the "
                                   "source and the sink, or what goes on between Submit and Pop.");
  finding.gain = std::max(0.0, 1 - facts.Share(std::max(rest_us, facts.wall_us() / workers)));
  finding.gain_how =
      absl::StrCat("with ", workers, " other threads at it, ",
                   one_at_a_time ? absl::StrCat("runs overlap, and the next slowest part sets the pace, ", pace.what)
                                 : "devices need not wait for it");
}

}  // namespace

void FindStarvedSource(const Facts& facts, std::vector<Finding>& findings) {
  const std::vector<HostStage> stages = HostStagesOf(facts);
  const TimeSet gaps = IdleTimes(facts, IdleCause::kCaller);
  const HostStage* const stage = StageThatSetsThePace(facts, stages, gaps);
  if (stage != nullptr && stage->is_behind) return;  // slow-sink says it
  for (const IdleSum& idle : SumIdle(facts, IdleCause::kCaller)) {
    if (facts.Share(idle.us) < kNoticeable) continue;
    Finding finding;
    finding.rule = "starved-source";
    finding.share = facts.Share(idle.us);
    finding.span = LaunchBehind(facts, idle.longest.at);
    if (finding.span >= 0) finding.graph = facts.GraphOf(finding.span);
    finding.begin_us = idle.longest.at.begin;
    finding.end_us = idle.longest.at.end;
    finding.evidence.push_back(absl::StrCat("For ", PercentText(finding.share),
                                            " of the time no run was in flight and none was being ",
                                            "launched: ", TimesText(idle.parts), ", ",
                                            TimeText(idle.us / static_cast<double>(idle.parts)), " on average."));
    if (stage == nullptr) {
      AddApplicationSpans(facts, stages, gaps, finding);
      AdviseOnSource(facts, idle.us, finding);
    } else {
      AddStage(facts, *stage, gaps, finding);
      AdviseOnStage(facts, stages, *stage, stage->IsSaturated(facts) ? 0 : facts.wall_us() - idle.us, finding);
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace penstock::analysis
