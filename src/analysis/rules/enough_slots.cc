#include "src/analysis/rules/enough_slots.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {

OverlapBound BoundOfOverlap(const Facts& facts, int graph, BetweenRuns between) {
  const GraphFacts& of = facts.graphs()[static_cast<size_t>(graph)];
  const Profile::Graph& plan = facts.profile().graphs[static_cast<size_t>(graph)];
  OverlapBound bound;
  const auto at_least = [&](double us, const std::string& what) {
    if (us > bound.us) bound = {us, what};
  };
  for (const Engine& engine : facts.engines()) at_least(engine.busy.And(of.time).length(), engine.name);

  std::vector<Interval> staging, launches;
  for (const int s : of.spans) {
    const SpanKind kind = facts.profile().spans[static_cast<size_t>(s)].kind;
    if (kind == SpanKind::kSubmit) launches.push_back(facts.At(s));
    const int node = facts.NodeOf(s);
    if (node >= 0 && IsStaging(plan.nodes[static_cast<size_t>(node)])) staging.push_back(facts.At(s));
  }
  const bool counts_between = between == BetweenRuns::kCounted;
  for (const IdlePart& part : facts.idle()) {
    if (counts_between && part.cause == IdleCause::kCaller) launches.push_back(part.at);
  }
  at_least(TimeSet(std::move(staging)).And(of.time).length(), "copying memory that is not pinned");
  at_least(TimeSet(std::move(launches)).And(of.time).length(),
           counts_between ? "the thread that launches" : "launches");
  for (size_t n = 0; n < of.nodes.size(); ++n) {
    if (plan.nodes[n].kind == "host")
      at_least(of.nodes[n].total_us, absl::StrCat("host node ", NodeText(plan.nodes[n])));
  }
  return bound;
}

int SlotsFor(const Facts& facts, int graph, const OverlapBound& bound) {
  const double time = facts.graphs()[static_cast<size_t>(graph)].time_us;
  return bound.us > 0 ? static_cast<int>(std::clamp(std::ceil(time / bound.us + 0.25), 2.0, 4.0)) : 2;
}

int TheGraph(const Facts& facts) {
  int only = -1;
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    if (!facts.graphs()[g].steady || facts.graphs()[g].is_body) continue;
    if (only >= 0) return -1;
    only = static_cast<int>(g);
  }
  return only;
}

OverlapBound PaceOfRuns(const Facts& facts) {
  const int graph = TheGraph(facts);
  if (graph < 0) {
    std::vector<Interval> launches;
    for (const int s : facts.working()) {
      const Span& span = facts.profile().spans[static_cast<size_t>(s)];
      if (span.kind == SpanKind::kSubmit && facts.GraphOf(s) >= 0) launches.push_back(facts.At(s));
    }
    const double us = facts.Clip(std::move(launches)).length();
    return us > facts.floor_us() || facts.busiest() == nullptr ? OverlapBound{us, "launches"}
                                                               : OverlapBound{facts.floor_us(), facts.busiest()->name};
  }
  OverlapBound pace = BoundOfOverlap(facts, graph, BetweenRuns::kLeftOut);
  const GraphFacts& of = facts.graphs()[static_cast<size_t>(graph)];
  const int slots = std::max(1, facts.profile().graphs[static_cast<size_t>(graph)].slots);
  const double in_slots_us = std::min(of.run_us * static_cast<double>(of.runs) / slots, of.time_us);
  if (in_slots_us > pace.us) pace = {in_slots_us, absl::StrCat("runs in ", slots, slots == 1 ? " slot" : " slots")};
  return pace;
}

}  // namespace penstock::analysis
