#include "src/observe/run_counts.h"

#include <algorithm>

#include "src/observe/shown_name.h"

namespace penstock::observe {

// What comes later in the life of a run is read first.
Metrics::Graph RunCounts::Read() const {
  const auto read = [](const std::atomic<int64_t>& count) { return count.load(std::memory_order_relaxed); };
  Metrics::Graph graph;
  graph.succeeded = read(succeeded_);
  graph.failed = read(failed_);
  graph.cancelled = read(cancelled_);
  const int64_t drained = read(drained_);
  graph.launches = std::max(read(began_), drained);
  graph.in_flight = graph.launches - drained;
  graph.abandoned = std::clamp<int64_t>(graph.succeeded + graph.failed + graph.cancelled - drained, 0, graph.in_flight);
  const int64_t waits_ended = read(waits_ended_);
  graph.slot_waits = std::max(read(waits_), waits_ended);
  graph.waiting = graph.slot_waits - waits_ended;
  graph.slot_wait_seconds = static_cast<double>(read(waited_ns_)) / 1e9;
  graph.compiled = read(made_);
  graph.executables = read(executables_);
  return graph;
}

RunCounts& GraphCounts::Of(std::string_view name) {
  std::string shown = ShownName(name);
  base::MutexLock lock(mu_);
  const auto known = by_name_.find(shown);
  if (known != by_name_.end()) return known->second;
  return by_name_[by_name_.size() < kMostNames ? std::move(shown) : std::string()];
}

std::vector<Metrics::Graph> GraphCounts::Read() const {
  std::vector<Metrics::Graph> graphs;
  base::MutexLock lock(mu_);
  for (const auto& [name, counts] : by_name_) {
    graphs.push_back(counts.Read());
    graphs.back().name = name;
  }
  return graphs;
}

}  // namespace penstock::observe
