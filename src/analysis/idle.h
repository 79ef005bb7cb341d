// Idle time: when no engine of any device works, and what lies behind each such moment.
//
// Each moment has one cause, so that advice about one cause never promises what advice about another promises too. If
// several things go on, the cause is the first in the order of IdleCause, since what stands earlier there keeps waiting
// what stands later: a launch waits for a slot because a run has not ended, which waits for its host step.
//
// A cut of a run for a host step costs more than that step: a thread has to see that the device has ended, and the
// device to start again. So kHandOver and kSlotWait directly before and behind a host step count as that step.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/profile.h"
#include "src/analysis/time_set.h"

namespace penstock::analysis {

enum class IdleCause : uint8_t {
  kHostStep,  // a host node runs
  kStaging,  // host threads copy memory that is not pinned
  kLaunch,  // a run is being submitted
  kStateWait,  // a run waits for another one's use of a State
  kRecording,  // a run's spans are being recorded, which nothing did without the profile
  kSlotWait,  // runs are in flight, and a launch waits for a slot
  kHandOver,  // runs are in flight, and nothing of them is at work: it starts, or its end is being noticed
  kLeaseWait,  // a launch waits for a slot though no run is in flight: leases hold the slots
  kCaller  // no run is in flight, and none is being launched
};

// An interval in which no engine works, with one cause.
struct IdlePart {
  Interval at;
  IdleCause cause = IdleCause::kCaller;
  int span = -1;  // what lies behind it, as a place in Profile::spans; of kHandOver the run; of kCaller -1
  bool absorbed = false;  // a hand-over that counts as the step beside it
};

// The idle parts of `window`, in order. `working` has the places of the spans that count.
std::vector<IdlePart> FindIdleParts(const Profile& profile, const std::vector<int>& working, const TimeSet& window);

// Whether the span is a host step of a run that copies memory that is not pinned.
bool IsStaging(const Profile::Node& node);

}  // namespace penstock::analysis
