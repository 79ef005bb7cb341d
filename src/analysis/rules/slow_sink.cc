// slow-sink: a host stage after the graphs of a pipeline sets its pace. Items queue in front of that stage and use up
// the pipeline's window, so that no new item can enter.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/analysis/rules/enough_slots.h"
#include "src/analysis/rules/host_stages.h"
#include "src/analysis/rules/idle_sums.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/text.h"

namespace penstock::analysis {
void FindSlowSink(const Facts& facts, std::vector<Finding>& findings) {
  const std::vector<HostStage> stages = HostStagesOf(facts);
  const TimeSet gaps = IdleTimes(facts, IdleCause::kCaller);
  const HostStage* const sink = StageThatSetsThePace(facts, stages, gaps);
  if (sink == nullptr || !sink->is_behind || facts.floor_us() > sink->us()) return;
  const PipelineStats& stats = facts.profile().pipelines[sink->pipeline].stats;
  Finding finding;
  finding.rule = "slow-sink";
  finding.graph = TheGraph(facts);
  finding.share = facts.Share(sink->full.length());
  finding.evidence.push_back(
      absl::StrCat("Behind the graphs of its pipeline, ", StageText(*sink), " was called ", TimesText(sink->calls),
                   ", for ", TimeText(sink->total_us / static_cast<double>(sink->calls)),
                   " on average; none of its workers was free for ", PercentText(finding.share), " of the time."));
  finding.evidence.push_back(absl::StrCat("Items in front of it count for the pipeline's window (", stats.window,
                                          "), so nothing more comes in. It was busy for ",
                                          PercentText(stats.stages[sink->place].busy), " of the pipeline's life, with ",
                                          CountText(stats.stages[sink->place].done, "item"), "."));
  const double least_us = sink->IsSaturated(facts) ? 0 : facts.wall_us() - gaps.length();
  AdviseOnStage(facts, stages, *sink, least_us, finding);
  findings.push_back(std::move(finding));
}

}  // namespace penstock::analysis
