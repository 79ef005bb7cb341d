#include "graph/simulate/simulate.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "graph/simulate/sim_program.h"
#include "graph/simulate/simulator.h"

namespace penstock::graph {
namespace {

void FillSpans(const Simulator& simulator, const SimProgram& program, SimResult& result) {
  result.spans.reserve(simulator.work().size());
  for (const Simulator::Work& work : simulator.work()) {
    SimSpan& span = result.spans.emplace_back(SimSpan{.node = work.node,
                                                      .run = work.run,
                                                      .slot = work.slot,
                                                      .place = work.place,
                                                      .wait = work.wait,
                                                      .waited_for = work.waited_for,
                                                      .ready_us = InMicros(work.ready),
                                                      .begin_us = InMicros(work.begin),
                                                      .end_us = InMicros(work.end)});
    if (work.pool < 0) continue;
    const SimPool& pool = program.pools[static_cast<size_t>(work.pool)];
    span.resource = pool.resource;
    span.device = pool.device;
    span.from = pool.from;
  }
}

void FillUses(const Simulator& simulator, const SimProgram& program, SimResult& result) {
  std::vector<SimTicks> busy(program.pools.size());
  std::vector<bool> is_used(program.pools.size());
  for (const Simulator::Work& work : simulator.work()) {
    if (work.pool < 0) continue;
    busy[static_cast<size_t>(work.pool)] += work.end - work.begin;
    is_used[static_cast<size_t>(work.pool)] = true;
  }
  for (size_t p = 0; p < busy.size(); ++p) {
    const SimPool& pool = program.pools[p];
    if (!is_used[p]) continue;
    result.uses.push_back({.resource = pool.resource,
                           .device = pool.device,
                           .from = pool.from,
                           .places = pool.places,
                           .busy_us = InMicros(busy[p])});
  }
}

void FillCriticalPath(SimResult& result) {
  int32_t at = -1;
  for (int32_t s = 0; s < static_cast<int32_t>(result.spans.size()); ++s) {
    const auto end = [&](int32_t span) { return result.spans[static_cast<size_t>(span)].end_us; };
    if (at < 0 || end(s) >= end(at)) at = s;
  }
  for (; at >= 0; at = result.spans[static_cast<size_t>(at)].waited_for) result.critical_path.push_back(at);
  std::reverse(result.critical_path.begin(), result.critical_path.end());
}

// Memory that comes, or goes if `bytes` is negative. At one time what goes is counted first.
struct MemoryChange {
  int32_t device;
  double us;
  int64_t bytes;
  auto Key() const { return std::tuple(device, us, bytes); }
};

void AddHolds(const SimGraph& graph, const SimResult& result, std::vector<MemoryChange>& to) {
  const auto runs = result.ended_us.size();
  std::vector<const SimSpan*> span_of(graph.nodes.size() * runs);
  for (const SimSpan& span : result.spans) {
    if (span.node < 0) continue;
    span_of[static_cast<size_t>(span.run) * graph.nodes.size() + static_cast<size_t>(span.node)] = &span;
  }
  for (const SimMemory& memory : graph.memory) {
    for (size_t run = 0; run < runs; ++run) {
      double begin = memory.users.empty() ? result.launched_us[run] : std::numeric_limits<double>::infinity();
      double end = memory.users.empty() ? result.ended_us[run] : 0;
      for (const int32_t n : memory.users) {
        const SimSpan& span = *span_of[run * graph.nodes.size() + static_cast<size_t>(n)];
        begin = std::min(begin, span.begin_us);
        end = std::max(end, span.end_us);
      }
      to.push_back({memory.device, begin, memory.bytes});
      to.push_back({memory.device, end, -memory.bytes});
    }
  }
}

void FillPeaks(const SimGraph& graph, SimResult& result) {
  if (graph.memory.empty()) return;
  std::vector<MemoryChange> changes;
  AddHolds(graph, result, changes);
  std::sort(changes.begin(), changes.end(), [](const auto& x, const auto& y) { return x.Key() < y.Key(); });
  int64_t held = 0;
  for (const MemoryChange& change : changes) {
    if (result.peaks.empty() || result.peaks.back().device != change.device) {
      result.peaks.push_back({.device = change.device});
      held = 0;
    }
    held += change.bytes;
    result.peaks.back().bytes = std::max(result.peaks.back().bytes, held);
  }
}

}  // namespace

absl::StatusOr<SimResult> Simulate(const SimGraph& graph, const SimOptions& options) {
  if (absl::Status status = CheckSimulation(graph, options); !status.ok()) return status;
  const SimProgram program = MakeSimProgram(graph, options);
  Simulator simulator(program, graph.states, options);
  simulator.Run();
  SimResult result;
  for (const SimTicks t : simulator.launched()) result.launched_us.push_back(InMicros(t));
  for (const SimTicks t : simulator.ended()) result.ended_us.push_back(InMicros(t));
  result.makespan_us = *std::max_element(result.ended_us.begin(), result.ended_us.end());
  result.run_us = SteadyRunMicros(result.ended_us, options.slots);
  result.events = simulator.events();
  FillSpans(simulator, program, result);
  FillUses(simulator, program, result);
  FillCriticalPath(result);
  FillPeaks(graph, result);
  return result;
}

double SteadyRunMicros(std::vector<double> ended_us, int32_t slots) {
  if (ended_us.empty()) return 0;
  std::sort(ended_us.begin(), ended_us.end());
  const size_t after_first = ended_us.size() - 1;
  if (after_first == 0) return ended_us[0];
  size_t counted = std::max<size_t>(1, after_first * 3 / 4);
  const auto round = static_cast<size_t>(std::max(slots, 1));
  if (counted > round) counted -= counted % round;
  return (ended_us[after_first] - ended_us[after_first - counted]) / static_cast<double>(counted);
}

}  // namespace penstock::graph
