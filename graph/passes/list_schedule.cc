// ListSchedule: list scheduling by critical path. Among the steps whose predecessors are submitted, the next is the one
// with the longest remaining path (its own cost included), the earliest in sequence among equals. Uploads that open
// long chains therefore come early.
//
// A step's remaining path is at least as long as its successors', and it precedes them in the sequence. So sorting
// suffices: the next of all steps is always one whose predecessors are submitted.
//
// Boundary steps (prioritize_boundaries.cc) come before all others whose predecessors are submitted, however long their
// paths: on a stream a device takes up what was submitted first. They may come after steps of longer paths, so where
// there are any, sorting does not suffice.
//
// Costs are in microseconds. PlanOptions::costs has those of declared nodes; otherwise, and for inserted copies, they
// are estimated (graph/common/assumed_figures.h): a start-up time and, for copies, the bytes over a typical bandwidth;
// for constructs, the nodes that run in them. Only their ratios matter.
#include <algorithm>
#include <queue>

#include "graph/common/assumed_figures.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

double CopyCost(const Records& records, const Ordered& ordered, const Step& step, double start, double gbs) {
  return start + static_cast<double>(CopyBytes(records, ordered, step)) / (gbs * 1e3);
}

double Cost(const Records& records, const Ordered& ordered, const Step& step) {
  if (step.decl >= 0 && step.decl < records.options.costs.count()) {
    const double given = records.options.costs[step.decl];
    if (given >= 0) return given;
  }
  switch (step.kind) {
    case PlanKind::kUpload:
    case PlanKind::kDownload:
    case PlanKind::kPeerCopy: return CopyCost(records, ordered, step, assumed::order::kLinkUs, assumed::order::kLink);
    case PlanKind::kDeviceCopy:
      return CopyCost(records, ordered, step, assumed::order::kDeviceUs, assumed::order::kDevice);
    case PlanKind::kStageIn:
    case PlanKind::kStageOut:
    case PlanKind::kHostCopy: return CopyCost(records, ordered, step, assumed::order::kHostUs, assumed::order::kHost);
    case PlanKind::kFill: return assumed::order::kFillUs;
    case PlanKind::kParallelFor:
    case PlanKind::kKernel: return assumed::order::kKernelUs;
    case PlanKind::kLaunch: return assumed::order::kLaunchNodeUs;
    case PlanKind::kHostcall: return assumed::order::kHostcallUs;
    case PlanKind::kGate: return 0;
    case PlanKind::kHost: return assumed::order::kHostNodeUs;
    case PlanKind::kConditional:
    case PlanKind::kControl:
      return assumed::order::kConstructUs + assumed::order::kBodyNodeUs * records.model.nodes[step.decl].runs;
  }
  return 0;
}

struct Rank {
  double to_go;
  StepId step;
};
bool Earlier(const Rank& a, const Rank& b) { return a.to_go != b.to_go ? a.to_go > b.to_go : a.step < b.step; }

CsrRows SuccessorsOf(const Ordered& ordered) {
  std::vector<Edge> edges;
  for (const StepId v : ordered.steps.ids()) {
    for (const StepId p : ordered.edges[v]) edges.push_back({v, p});
  }
  return MakeEdges(ordered.steps.next(), edges);
}

// Appends the steps whose predecessors are in the order one after another: boundary steps first, then by rank.
std::vector<StepId> BoundariesFirst(const Ordered& ordered, const Table<StepId, Rank>& ranks) {
  const auto later = [&](StepId a, StepId b) {
    const int32_t of_a = ordered.steps[a].priority, of_b = ordered.steps[b].priority;
    return of_a != of_b ? of_a > of_b : Earlier(ranks[b], ranks[a]);
  };
  const CsrRows successors = SuccessorsOf(ordered);
  std::priority_queue<StepId, std::vector<StepId>, decltype(later)> ready(later);
  Table<StepId, size_t> left(ordered.steps.size());
  for (const StepId v : ordered.steps.ids()) {
    left[v] = ordered.edges[v].size();
    if (left[v] == 0) ready.push(v);
  }
  std::vector<StepId> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const StepId next : successors[order.back()]) {
      if (--left[next] == 0) ready.push(next);
    }
  }
  return order;
}

}  // namespace

int64_t CopyBytes(const Records& records, const Ordered& ordered, const Step& step) {
  if (step.part >= 0) return BytesOf(ordered.parts[step.part]);
  const int64_t all = ordered.instances[step.dst].bytes;
  if (step.copy < 0) return all;
  const AccessDecl& access = records.model.nodes[step.copy].accesses[0];
  const BufferDecl& buffer = records.model.buffers[access.buffer];
  const Box& box = access.box;
  const Extent& extent = box.whole ? buffer.extent : box.size;
  int64_t bytes = buffer.type.size;
  for (int i = 0; i < extent.rank; ++i) {
    const Dim& dim = extent.dims[i];
    const int64_t most = dim.is_constant() ? dim.value : ParamOf(records.model, dim)->max;
    if (most > 0 && bytes > all / most) return all;
    bytes *= most;
  }
  return bytes;
}

void ListSchedule(const Records& records, Ordered& ordered) {
  const size_t count = ordered.steps.size();
  ordered.cost.reserve(count);
  for (const Step& step : ordered.steps) ordered.cost.push_back(Cost(records, ordered, step));

  Table<StepId, Rank> ranks(count);
  for (StepId v = ordered.steps.next() - 1; v >= 0; v = v - 1) {
    ranks[v].step = v;
    ranks[v].to_go += ordered.cost[v];
    for (const StepId p : ordered.edges[v]) {
      double& least = ranks[p].to_go;
      least = std::max(least, ranks[v].to_go);
    }
  }
  if (ordered.any_boundary) {
    ordered.order = BoundariesFirst(ordered, ranks);
    return;
  }
  if (!std::is_sorted(ranks.begin(), ranks.end(), Earlier)) std::sort(ranks.begin(), ranks.end(), Earlier);
  ordered.order.reserve(count);
  for (const Rank& rank : ranks) ordered.order.push_back(rank.step);
}

}  // namespace penstock::graph
