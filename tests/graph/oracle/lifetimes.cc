#include "tests/graph/oracle/lifetimes.h"

#include "tests/graph/oracle/plan_uses.h"

namespace penstock::graph {

std::vector<std::pair<int32_t, int32_t>> LivedAtOnce(const Plan& plan, const std::vector<Moment>& schedule) {
  struct Life {
    int64_t first = -1, last = -1;
  };
  std::vector<Life> lives(plan.instances.size());
  for (size_t t = 0; t < schedule.size(); ++t) {
    for (const Use& use : UsesOf(plan.nodes[schedule[t].node])) {
      Life& life = lives[use.instance];
      if (life.first < 0) life.first = static_cast<int64_t>(t);
      life.last = static_cast<int64_t>(t);
    }
  }
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (size_t b = 0; b < lives.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (lives[a].first < 0 || lives[b].first < 0) continue;
      if (lives[a].first < lives[b].last && lives[b].first < lives[a].last) {
        pairs.push_back({static_cast<int32_t>(a), static_cast<int32_t>(b)});
      }
    }
  }
  return pairs;
}

}  // namespace penstock::graph
