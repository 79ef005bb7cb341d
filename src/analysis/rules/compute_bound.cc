// compute-bound: kernels fill a device, and nothing else limits it. This is no fault, but what is left to look at.
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

// Of kernels that take less on average much is starting them (many-tiny-nodes, launch-bound).
constexpr double kShortMicros = 10;

// A node with the time in which kernels of it ran on the device, and of this the time in which no others did.
struct Heaviest {
  int graph = -1, node = -1;
  double us = 0, alone_us = 0;
  int64_t kernels = 0;  // of all nodes
};

Heaviest HeaviestNode(const Facts& facts, const Engine& engine) {
  std::map<std::pair<int, int>, std::vector<Interval>> kernels;
  for (const int s : facts.working()) {
    const Span& span = facts.profile().spans[static_cast<size_t>(s)];
    if (span.kind == engine.kind && span.device == engine.device) {
      kernels[{facts.GraphOf(s), facts.NodeOf(s)}].push_back(facts.At(s));
    }
  }
  Heaviest most;
  for (const auto& [of, intervals] : kernels) {
    const double us = facts.Clip(intervals).length();
    if (of.second >= 0 && us > most.us) most = {of.first, of.second, us, 0, 0};
  }
  std::vector<Interval> others;
  for (const auto& [of, intervals] : kernels) {
    most.kernels += static_cast<int64_t>(intervals.size());
    if (of != std::pair(most.graph, most.node)) others.insert(others.end(), intervals.begin(), intervals.end());
  }
  most.alone_us = engine.busy.Minus(TimeSet(std::move(others))).length();
  return most;
}

}  // namespace

void FindComputeBound(const Facts& facts, std::vector<Finding>& findings) {
  const Engine* const busiest = facts.busiest();
  if (busiest == nullptr || busiest->kind != SpanKind::kKernel) return;
  const double busy = facts.Share(busiest->busy_us);
  if (100 * busy < kGoodEfficiency ||
      facts.Share(facts.FloorCut(SpanKind::kKernel, busiest->busy_us / 2)) < kNoticeable)
    return;
  const Heaviest most = HeaviestNode(facts, *busiest);
  if (most.node < 0 || busiest->busy_us < kShortMicros * static_cast<double>(most.kernels)) return;
  const Profile::Node& node =
      facts.profile().graphs[static_cast<size_t>(most.graph)].nodes[static_cast<size_t>(most.node)];
  const NodeFacts& seen = facts.graphs()[static_cast<size_t>(most.graph)].nodes[static_cast<size_t>(most.node)];
  Finding finding;
  finding.rule = "compute-bound";
  finding.share = busy;
  finding.graph = most.graph;
  finding.node = most.node;
  finding.span = seen.span;
  finding.evidence.push_back(absl::StrCat(
      busiest->name, " go on for ", PercentText(busy), " of the time: no order of the same nodes is faster. ",
      NodeText(node), " takes most, ", PercentText(facts.Share(most.us)), " of the time, ", TimeText(seen.median_us),
      " as a rule", seen.batched ? ", with other nodes in the same kernels." : "."));
  finding.fix = absl::StrCat("This is no fault of how the program uses the device. To be faster, make ", NodeText(node),
                             " do less or do it faster, or share the work among several devices.");
  const double saved_us = facts.FloorCut(SpanKind::kKernel, most.alone_us / 2);
  finding.gain_how = absl::StrCat("unknown: how much faster it can be is not in the profile; if it took half as long, ",
                                  PercentText(facts.Share(saved_us)), " of the time would be saved");
  findings.push_back(std::move(finding));
}

}  // namespace penstock::analysis
