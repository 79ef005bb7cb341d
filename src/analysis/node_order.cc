// Takes away, again and again, the nodes that follow no other node that is left (Kahn 1962).
#include "src/analysis/node_order.h"

#include <cstddef>

namespace penstock::analysis {

std::vector<int> NodeOrder(const Profile::Graph& graph) {
  const size_t count = graph.nodes.size();
  std::vector<size_t> begin_of(count + 1, 0);  // where a node's successors begin in `successors`
  for (const Profile::Node& node : graph.nodes) {
    for (const int before : node.after) ++begin_of[static_cast<size_t>(before) + 1];
  }
  for (size_t n = 0; n < count; ++n) begin_of[n + 1] += begin_of[n];
  std::vector<size_t> next(begin_of.begin(), begin_of.end() - 1), left(count);
  std::vector<int> successors(begin_of[count]), order;
  order.reserve(count);
  for (size_t n = 0; n < count; ++n) {
    left[n] = graph.nodes[n].after.size();
    if (left[n] == 0) order.push_back(static_cast<int>(n));
    for (const int before : graph.nodes[n].after) successors[next[static_cast<size_t>(before)]++] = static_cast<int>(n);
  }
  for (size_t o = 0; o < order.size(); ++o) {
    const auto node = static_cast<size_t>(order[o]);
    for (size_t s = begin_of[node]; s < begin_of[node + 1]; ++s) {
      if (--left[static_cast<size_t>(successors[s])] == 0) order.push_back(successors[s]);
    }
  }
  return order;
}

}  // namespace penstock::analysis
