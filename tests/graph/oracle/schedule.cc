#include "tests/graph/oracle/schedule.h"

#include <utility>

namespace penstock::graph {
namespace {

int32_t Take(std::vector<int32_t>& from, size_t index) {
  std::swap(from[index], from.back());
  const int32_t value = from.back();
  from.pop_back();
  return value;
}

}  // namespace

std::vector<Moment> RandomSchedule(const Execution& run, std::mt19937_64& random) {
  const auto count = static_cast<size_t>(run.operations());
  std::vector<size_t> missing(count);
  std::vector<std::vector<int32_t>> succs(count);
  std::vector<int32_t> ready, running;
  for (int32_t op = 0; op < run.operations(); ++op) {
    missing[op] = run.preds(op).size();
    for (const int32_t p : run.preds(op)) succs[p].push_back(op);
    if (run.preds(op).empty()) ready.push_back(op);
  }
  std::vector<Moment> schedule;
  while (!ready.empty() || !running.empty()) {
    const size_t choice = random() % (ready.size() + running.size());
    const bool ends = choice >= ready.size();
    const int32_t op = ends ? Take(running, choice - ready.size()) : Take(ready, choice);
    if (run.node_of(op) >= 0) schedule.push_back({run.node_of(op), ends});
    if (!ends) running.push_back(op);
    if (!ends) continue;
    for (const int32_t s : succs[op]) {
      if (--missing[s] == 0) ready.push_back(s);
    }
  }
  return schedule;
}

}  // namespace penstock::graph
