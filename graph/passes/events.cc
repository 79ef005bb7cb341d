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
  explicit Pool(Draft& draft) : d_(draft), free_(draft.options.devices.size()) {}

  int32_t New(int32_t device) {
    d_.events.push_back({device});
    return static_cast<int32_t>(d_.events.size()) - 1;
  }
  int32_t Take(int32_t device) {
    std::vector<int32_t>& free = free_[device];
    if (free.empty()) return New(device);
    const int32_t event = free.back();
    free.pop_back();
    return event;
  }
  void Return(int32_t event) { free_[d_.events[event].device].push_back(event); }

 private:
  Draft& d_;
  std::vector<std::vector<int32_t>> free_;  // by device
};

constexpr int32_t kNever = -1, kAlways = INT32_MAX;

// For each step: the last one whose lane waits for it, kAlways if its event is used later, or kNever.
std::vector<int32_t> AwaitedUntil(const Draft& draft) {
  std::vector<int32_t> until(draft.steps.size(), kNever);
  for (int32_t v = 0; v < draft.step_count(); ++v) {
    const int32_t by = draft.steps[v].on_host() ? kAlways : v;
    for (const int32_t p : draft.waits[v]) {
      until[p] = std::max(until[p], by);
    }
  }
  for (const FirstLastUses& touches : draft.states) {
    for (const int32_t v : touches.lasts) until[v] = kAlways;
  }
  return until;
}

// Whether a segment may be submitted by several threads.
bool MayBePartitioned(const Draft& draft) {
  if (!draft.options.events_once || draft.lanes.size() < 2) return false;
  std::vector<int32_t> steps(static_cast<size_t>(draft.segments));
  for (int32_t v = 0; v < draft.step_count(); ++v) {
    if (!draft.steps[v].on_host()) ++steps[draft.segment[v]];
  }
  // The commands that are not nodes are waits and records, of which a node has a few.
  return std::any_of(steps.begin(), steps.end(), [](int32_t count) { return count >= kPartitionFrom / 4; });
}

}  // namespace

void Events(Draft& draft) {
  const std::vector<int32_t> until = AwaitedUntil(draft);
  draft.event.assign(draft.steps.size(), -1);
  const bool once = MayBePartitioned(draft);
  Pool pool(draft);
  for (int32_t v = 0; v < draft.step_count(); ++v) {
    const Step& step = draft.steps[v];
    if (step.on_host()) continue;
    for (const int32_t p : draft.waits[v]) {
      if (!once && until[p] == v) pool.Return(draft.event[p]);
    }
    const int32_t by = until[v];
    if (by == kNever) continue;
    draft.event[v] = by == kAlways ? pool.New(step.device) : pool.Take(step.device);
  }
}

}  // namespace penstock::graph
