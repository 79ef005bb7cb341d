#include "tests/graph/oracle/peak.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/graph/oracle/plan_uses.h"

namespace penstock::graph {

int64_t PeakOf(const Plan& plan, int32_t device) {
  std::vector<std::vector<size_t>> users(plan.instances.size());
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    for (const Use& use : UsesOf(plan.nodes[n])) users[use.instance].push_back(n);
  }
  int64_t most = 0;
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (size_t i = 0; i < users.size(); ++i) {
      const Instance& instance = plan.instances[i];
      if (instance.device != device || !InArena(instance.space) || users[i].empty()) continue;
      if (users[i].front() <= n && n <= users[i].back()) {
        ranges.push_back({instance.offset, instance.offset + instance.bytes});
      }
    }
    std::sort(ranges.begin(), ranges.end());
    int64_t bytes = 0, end = 0;
    for (const auto& [first, last] : ranges) {
      bytes += std::max<int64_t>(0, last - std::max(end, first));
      end = std::max(end, last);
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace penstock::graph
