// Events: which event each step records after itself, if one is needed.
//
// A lane that waits for an event waits for its last record at the time of the call (CUDA: cudaStreamWaitEvent captures
// the event's state), so once the last wait for a record has been submitted the event may be recorded again. Segments
// are submitted in order, so the time of a call is its place among the commands. An event that is used later, by a host
// step or for a State, has one record. If several threads submit a segment (PlanOptions::events_once) there is no such
// order, and every event has one record.
#include <algorithm>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

class Pool {
 public:
  explicit Pool(const Records& records, Table<EventId, PlanEvent>& events)
      : events_(events), free_(records.options.devices.size()) {}

  EventId New(DeviceId device) {
    events_.push_back({device});
    return events_.next() - 1;
  }
  EventId Take(DeviceId device) {
    std::vector<EventId>& free = free_[device];
    if (free.empty()) return New(device);
    const EventId event = free.back();
    free.pop_back();
    return event;
  }
  void Return(EventId event) { free_[events_[event].device].push_back(event); }

 private:
  Table<EventId, PlanEvent>& events_;
  Table<DeviceId, std::vector<EventId>> free_;
};

constexpr int32_t kNever = -1, kAlways = INT32_MAX;

// For each step: the last one whose lane waits for it, kAlways if its event is used later, or kNever.
Table<StepId, int32_t> AwaitedUntil(const Ordered& ordered, const Reduced& reduced, const Packed& packed) {
  Table<StepId, int32_t> until(ordered.steps.size(), kNever);
  for (const StepId v : ordered.steps.ids()) {
    const int32_t by = ordered.steps[v].on_host() ? kAlways : int32_t{v};
    for (const StepId p : reduced.waits[v]) {
      until[p] = std::max(until[p], by);
    }
  }
  for (const FirstLastUses& touches : packed.states) {
    for (const StepId v : touches.lasts) until[v] = kAlways;
  }
  return until;
}

// Whether a segment may be submitted by several threads.
bool MayBePartitioned(const Records& records, const Ordered& ordered) {
  if (!records.options.events_once || ordered.lanes.size() < 2) return false;
  Table<SegmentId, int32_t> steps(ordered.segments);
  for (const StepId v : ordered.steps.ids()) {
    if (!ordered.steps[v].on_host()) ++steps[ordered.segment[v]];
  }
  // The commands that are not nodes are waits and records, of which a node has a few.
  return std::any_of(steps.begin(), steps.end(), [](int32_t count) { return count >= kPartitionFrom / 4; });
}

}  // namespace

void Events(const Records& records, const Ordered& ordered, const Reduced& reduced, Packed& packed) {
  const Table<StepId, int32_t> until = AwaitedUntil(ordered, reduced, packed);
  packed.event.assign(ordered.steps.size(), EventId());
  const bool once = MayBePartitioned(records, ordered);
  Pool pool(records, packed.events);
  for (const StepId v : ordered.steps.ids()) {
    const Step& step = ordered.steps[v];
    if (step.on_host()) continue;
    for (const StepId p : reduced.waits[v]) {
      if (!once && until[p] == v) pool.Return(packed.event[p]);
    }
    const int32_t by = until[v];
    if (by == kNever) continue;
    packed.event[v] = by == kAlways ? pool.New(step.device) : pool.Take(step.device);
  }
}

}  // namespace penstock::graph
