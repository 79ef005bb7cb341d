// The host stages of a profile's pipelines: how long their workers were in calls, by the spans of these.
//
// HostStagesOf leaves out stages that share a name at the same time, because their spans cannot be told apart. It takes
// a stage that items have left without a call for one that runs graphs.
//
// Threads: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/analysis/doctor.h"
#include "src/analysis/facts.h"

namespace penstock::analysis {

struct HostStage {
  size_t pipeline = 0, place = 0;  // in Profile::pipelines, and in its stages
  std::string name;  // fit for one line
  bool is_behind = false;  // all graphs of its pipeline, and there is one
  int workers = 0;  // at least one
  int64_t calls = 0;  // in the wall time, at least in part
  double total_us = 0;  // of these calls, as far as they are in the wall time
  TimeSet full;  // when all of its workers were in calls

  // What it would take with all workers always in calls: it sets the pace if that is nearly all of the wall time.
  double us() const { return total_us / workers; }
  bool IsSaturated(const Facts& facts) const { return facts.Share(us()) >= 0.8; }
};

// Returns the host stages that were called within the wall time, in the order of the profile.
std::vector<HostStage> HostStagesOf(const Facts& facts);

// Returns the stage that sets the pace: the slowest of those that are always at work, or else the one whose workers
// were all busy for most of the gaps, provided that the gaps are noticeable. Returns null if there is no such stage:
// the stages then waited for items.
const HostStage* StageThatSetsThePace(const Facts& facts, const std::vector<HostStage>& stages, const TimeSet& gaps);

// Fills in the fix, more workers for the stage, and the gain: with these, the next slowest part of the program sets the
// pace. No less than `least_us` is left of the wall time.
void AdviseOnStage(const Facts& facts, const std::vector<HostStage>& stages, const HostStage& stage, double least_us,
                   Finding& finding);

std::string StageText(const HostStage& stage);  // "host stage 'decode' (2 workers)"

}  // namespace penstock::analysis
