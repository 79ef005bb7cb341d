#include "src/analysis/rules/host_stages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/rules/enough_slots.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/text.h"

namespace penstock::analysis {
namespace {

constexpr int kMostStageWorkers = 16;  // where nobody knows how many cores there are

// The calls of one host stage in the wall time, as the runtime names their track.
using CallsByStage = std::map<std::string, std::vector<Interval>>;

CallsByStage CallsOf(const Facts& facts) {
  CallsByStage calls;
  for (const int s : facts.working()) {
    const Span& span = facts.profile().spans[static_cast<size_t>(s)];
    if (span.executable >= 0 || !span.track.starts_with(absl::StrCat("stage ", span.name, " thread "))) continue;
    calls[span.name].push_back(facts.At(s));
  }
  return calls;
}

// The moments in which as many intervals as that are open.
TimeSet OpenAtOnce(const std::vector<Interval>& intervals, int least) {
  std::vector<std::pair<double, int>> changes;
  for (const Interval& at : intervals) {
    changes.emplace_back(at.begin, 1);
    changes.emplace_back(at.end, -1);
  }
  std::sort(changes.begin(), changes.end());
  std::vector<Interval> open;
  int now = 0;
  for (size_t c = 0; c + 1 < changes.size(); ++c) {
    now += changes[c].second;
    if (now >= least) open.push_back({changes[c].first, changes[c + 1].first});
  }
  return TimeSet(std::move(open));
}

bool IsNameOfSeveral(const Profile& profile, const Profile::Pipeline& pipeline, const std::string& name) {
  int64_t stages = 0;
  for (const Profile::Pipeline& other : profile.pipelines) {
    if (other.end_us < pipeline.begin_us || other.begin_us > pipeline.end_us) continue;
    stages += std::count_if(other.stats.stages.begin(), other.stats.stages.end(),
                            [&](const StageStats& stage) { return stage.name == name; });
  }
  return stages > 1;
}

// The calls in the lifetime of the pipeline.
HostStage HostStageOf(const Facts& facts, size_t p, size_t s, const std::vector<Interval>& all) {
  const Profile::Pipeline& pipeline = facts.profile().pipelines[p];
  const StageStats& stats = pipeline.stats.stages[s];
  HostStage stage;
  stage.pipeline = p;
  stage.place = s;
  stage.name = graph::OneLine(stats.name);
  stage.workers = std::max(1, stats.capacity);
  std::vector<Interval> calls;
  for (const Interval& call : all) {
    if (call.begin < pipeline.begin_us || call.begin > pipeline.end_us) continue;
    calls.push_back(call);
    stage.total_us += facts.Clip({call}).length();
  }
  stage.calls = static_cast<int64_t>(calls.size());
  stage.full = OpenAtOnce(calls, stage.workers).And(facts.window());
  return stage;
}

// What sets the pace if that stage does not: an engine, launches, slots, a host node, or another stage.
OverlapBound PaceBeside(const Facts& facts, const std::vector<HostStage>& stages, const HostStage& stage) {
  OverlapBound pace = PaceOfRuns(facts);
  for (const HostStage& other : stages) {
    if (&other != &stage && other.us() > pace.us) pace = {other.us(), StageText(other)};
  }
  return pace;
}

}  // namespace

std::vector<HostStage> HostStagesOf(const Facts& facts) {
  std::vector<HostStage> stages;
  const CallsByStage calls = CallsOf(facts);
  const std::vector<Profile::Pipeline>& pipelines = facts.profile().pipelines;
  for (size_t p = 0; p < pipelines.size(); ++p) {
    const std::vector<StageStats>& all = pipelines[p].stats.stages;
    const size_t first = stages.size();
    bool has_graph = false;
    for (size_t s = 0; s < all.size(); ++s) {
      const auto its = calls.find(all[s].name);
      if (its == calls.end()) {
        if (all[s].done == 0) continue;
        has_graph = true;
        for (size_t before = first; before < stages.size(); ++before) stages[before].is_behind = false;
        continue;
      }
      if (IsNameOfSeveral(facts.profile(), pipelines[p], all[s].name)) continue;
      HostStage stage = HostStageOf(facts, p, s, its->second);
      stage.is_behind = has_graph;  // until another one follows
      if (stage.calls > 0) stages.push_back(std::move(stage));
    }
  }
  return stages;
}

const HostStage* StageThatSetsThePace(const Facts& facts, const std::vector<HostStage>& stages, const TimeSet& gaps) {
  const HostStage* behind = nullptr;
  for (const HostStage& stage : stages) {
    if (stage.IsSaturated(facts) && (behind == nullptr || stage.us() > behind->us())) behind = &stage;
  }
  if (behind != nullptr || facts.Share(gaps.length()) < kNoticeable) return behind;
  double most = gaps.length() / 2;
  for (const HostStage& stage : stages) {
    const double us = stage.full.And(gaps).length();
    if (us <= most) continue;
    behind = &stage;
    most = us;
  }
  return behind;
}

void AdviseOnStage(const Facts& facts, const std::vector<HostStage>& stages, const HostStage& stage, double least_us,
                   Finding& finding) {
  const bool knows_cores = facts.machine() != nullptr && facts.machine()->cores > 0;
  const int most = knows_cores ? facts.machine()->cores : kMostStageWorkers;
  if (most <= stage.workers) {
    finding.fix = absl::StrCat("Let ", StageText(stage), " do less, or let the device do some of it",
                               knows_cores ? ": it has a worker for each core." : ".");
    finding.gain_how = "unknown: what else could do its work is not in the profile";
    return;
  }
  const OverlapBound pace = PaceBeside(facts, stages, stage);
  const double rest_us = std::max(pace.us, least_us);
  const double enough = rest_us > 0 ? std::ceil(stage.total_us / rest_us) : most;
  const int workers = static_cast<int>(std::clamp<double>(enough, stage.workers + 1, most));
  const bool remains = stage.total_us / workers > rest_us;
  finding.fix = absl::StrCat("Give ", StageText(stage), " ", workers,
                             " workers (HostStageOptions::workers), if its function may be called by so many threads "
                             "at once and there are cores for them; or let it do less.");
  finding.gain = std::max(0.0, 1 - facts.Share(std::max(rest_us, stage.total_us / workers)));
  finding.gain_how =
      absl::StrCat("with ", workers, " workers ",
                   remains               ? "it still sets the pace"
                   : pace.us >= least_us ? absl::StrCat("the next slowest part sets the pace, ", pace.what)
                                         : "no run waits for it");
}

std::string StageText(const HostStage& stage) {
  return absl::StrCat("host stage '", stage.name, "' (", CountText(stage.workers, "worker"), ")");
}

}  // namespace penstock::analysis
