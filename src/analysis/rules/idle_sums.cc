#include "src/analysis/rules/idle_sums.h"

#include <map>
#include <utility>

namespace penstock::analysis {

std::vector<IdleSum> SumIdle(const Facts& facts, IdleCause cause) {
  std::map<std::pair<int, int>, IdleSum> sums;
  for (const IdlePart& part : facts.idle()) {
    if (part.cause != cause) continue;
    const int graph = part.span < 0 ? -1 : facts.GraphOf(part.span),
              node = part.span < 0 ? -1 : facts.NodeOf(part.span);
    IdleSum& sum = sums[{graph, node}];
    sum.graph = graph;
    sum.node = node;
    sum.us += part.at.length();
    if (part.absorbed) sum.absorbed_us += part.at.length();
    ++sum.parts;
    if (part.at.length() > sum.longest.at.length()) sum.longest = part;
  }
  std::vector<IdleSum> all;
  for (const auto& [of, sum] : sums) all.push_back(sum);
  return all;
}

TimeSet IdleTimes(const Facts& facts, IdleCause cause) {
  std::vector<Interval> times;
  for (const IdlePart& part : facts.idle()) {
    if (part.cause == cause) times.push_back(part.at);
  }
  return TimeSet(std::move(times));
}

}  // namespace penstock::analysis
