// Order: list scheduling by critical path. Of the steps whose predecessors are submitted, the next is the one with the
// longest path still to go (its own cost included), the earliest in sequence among equals. Uploads that open long
// chains come early by themselves.
//
// Costs are microseconds. PlanOptions::costs gives those of declared nodes; otherwise, and for inserted copies, they
// are guessed: a start-up time and, for copies, the bytes over a usual bandwidth. Only their ratios matter.
#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "graph/passes.h"

namespace penstock::graph {
namespace {

constexpr double kBytesPerMicrosecondOfLink = 50e3, kBytesPerMicrosecondOfHost = 12e3,
                 kBytesPerMicrosecondOfDevice = 2e6;

double CopyCost(const Draft& draft, const Step& step, double start, double bytes_per_microsecond) {
  return start + static_cast<double>(draft.instances[static_cast<size_t>(step.dst)].bytes) / bytes_per_microsecond;
}

double Cost(const Draft& draft, const Step& step) {
  if (step.decl >= 0 && static_cast<size_t>(step.decl) < draft.options.costs.size()) {
    const double given = draft.options.costs[static_cast<size_t>(step.decl)];
    if (given >= 0) return given;
  }
  switch (step.kind) {
    case PlanKind::kUpload:
    case PlanKind::kDownload:
    case PlanKind::kPeerCopy: return CopyCost(draft, step, 10, kBytesPerMicrosecondOfLink);
    case PlanKind::kDeviceCopy: return CopyCost(draft, step, 3, kBytesPerMicrosecondOfDevice);
    case PlanKind::kStageIn:
    case PlanKind::kStageOut:
    case PlanKind::kHostCopy: return CopyCost(draft, step, 20, kBytesPerMicrosecondOfHost);
    case PlanKind::kFill: return 3;
    case PlanKind::kParallelFor:
    case PlanKind::kKernel: return 10;
    case PlanKind::kLaunch: return 20;
    case PlanKind::kHost: return 50;
  }
  return 0;
}

// A step that may be submitted, as one number: the greatest is next. The bits of numbers that are not negative grow
// with them (-0.0 + 0.0 is 0.0); behind them the step counts down.
__extension__ typedef unsigned __int128 Ready;
Ready ReadyOf(double to_go, int32_t step) {
  return static_cast<Ready>(std::bit_cast<uint64_t>(to_go + 0.0)) << 32 | static_cast<uint32_t>(INT32_MAX - step);
}
int32_t StepOf(Ready ready) { return INT32_MAX - static_cast<int32_t>(ready & UINT32_MAX); }

}  // namespace

void Order(Draft& draft) {
  const int32_t count = draft.step_count();
  draft.cost.reserve(static_cast<size_t>(count));
  for (const Step& step : draft.steps) draft.cost.push_back(Cost(draft, step));

  std::vector<double> to_go = draft.cost;
  std::vector<int32_t> missing(static_cast<size_t>(count)), next(static_cast<size_t>(count) + 1);
  for (int32_t v = count - 1; v >= 0; --v) {
    missing[static_cast<size_t>(v)] = static_cast<int32_t>(draft.edges[v].size());
    for (const int32_t p : draft.edges[v]) {
      double& before = to_go[static_cast<size_t>(p)];
      before = std::max(before, draft.cost[static_cast<size_t>(p)] + to_go[static_cast<size_t>(v)]);
      ++next[static_cast<size_t>(p) + 1];
    }
  }
  for (size_t v = 0; v < static_cast<size_t>(count); ++v) next[v + 1] += next[v];
  const std::vector<int32_t> first(next);
  std::vector<int32_t> succs(draft.edges.items());
  for (int32_t v = 0; v < count; ++v) {
    for (const int32_t p : draft.edges[v]) succs[static_cast<size_t>(next[static_cast<size_t>(p)]++)] = v;
  }

  std::vector<Ready> open;
  for (int32_t v = 0; v < count; ++v) {
    if (missing[static_cast<size_t>(v)] == 0) open.push_back(ReadyOf(to_go[static_cast<size_t>(v)], v));
  }
  std::priority_queue<Ready> ready(std::less<Ready>(), std::move(open));
  draft.order.reserve(static_cast<size_t>(count));
  while (!ready.empty()) {
    const int32_t v = StepOf(ready.top());
    ready.pop();
    draft.order.push_back(v);
    for (int32_t i = first[static_cast<size_t>(v)]; i < first[static_cast<size_t>(v) + 1]; ++i) {
      const int32_t s = succs[static_cast<size_t>(i)];
      if (--missing[static_cast<size_t>(s)] == 0) ready.push(ReadyOf(to_go[static_cast<size_t>(s)], s));
    }
  }
}

}  // namespace penstock::graph
