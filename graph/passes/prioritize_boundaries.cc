// PrioritizeBoundaries: boundary steps are those that another device waits for, and the copies between devices. They
// get a priority above all other steps, so that their device computes what others wait for before what only it needs,
// and the copies are on their way while it computes the rest.
//
// Where a program has given any node a priority, its priorities stand. A device whose kernels all follow one another
// has no choice, so its steps keep their priority: two priorities would only cost it lanes and events.
#include <algorithm>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

bool AnyPriority(const Records& records) {
  return std::any_of(records.nodes.begin(), records.nodes.end(),
                     [](const NodeFacts& node) { return node.priority != 0; });
}

bool IsOnSeveralDevices(const Ordered& ordered) {
  DeviceId first;
  for (const Step& step : ordered.steps) {
    if (step.on_host()) continue;
    if (first >= 0 && step.device != first) return true;
    first = step.device;
  }
  return false;
}

// Whether the step takes a device's time, so that its priority counts.
bool IsKernel(const Step& step) {
  switch (step.kind) {
    case PlanKind::kDeviceCopy:
    case PlanKind::kFill:
    case PlanKind::kParallelFor:
    case PlanKind::kKernel:
    case PlanKind::kLaunch: return true;
    default: return false;
  }
}

Table<StepId, bool> FindBoundaries(const Ordered& ordered) {
  Table<StepId, bool> found(ordered.steps.size());
  for (const StepId v : ordered.steps.ids()) {
    const Step& step = ordered.steps[v];
    if (step.on_host()) continue;
    if (step.kind == PlanKind::kPeerCopy) found[v] = true;
    for (const StepId p : ordered.edges[v]) {
      if (IsKernel(ordered.steps[p]) && ordered.steps[p].device != step.device) found[p] = true;
    }
  }
  return found;
}

// Whether two kernels of the device may be ready at once: fewer of them than there are follow one another.
bool HasChoice(const Ordered& ordered, DeviceId device) {
  Table<StepId, int32_t> chain(ordered.steps.size());  // the most kernels of the device on a path to each step
  int32_t kernels = 0, longest = 0;
  for (const StepId v : ordered.steps.ids()) {
    for (const StepId p : ordered.edges[v]) chain[v] = std::max(chain[v], chain[p]);
    if (ordered.steps[v].on_host() || ordered.steps[v].device != device || !IsKernel(ordered.steps[v])) continue;
    ++kernels;
    longest = std::max(longest, ++chain[v]);
  }
  return longest < kernels;
}

}  // namespace

void PrioritizeBoundaries(const Records& records, Ordered& ordered) {
  // One lane has one priority.
  if (records.options.max_lanes < 2 || AnyPriority(records) || !IsOnSeveralDevices(ordered)) return;
  const Table<StepId, bool> boundaries = FindBoundaries(ordered);
  Table<DeviceId, bool> has_choice(records.options.devices.size());
  for (const DeviceId d : has_choice.ids()) has_choice[d] = HasChoice(ordered, d);
  for (const StepId v : ordered.steps.ids()) {
    Step& step = ordered.steps[v];
    if (!boundaries[v] || !has_choice[step.device]) continue;
    step.priority = kBoundaryPriority;
    ordered.any_boundary = true;
  }
}

}  // namespace penstock::graph
