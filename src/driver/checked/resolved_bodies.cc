#include "src/driver/checked/resolved_bodies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::driver::checked {
namespace {

// Adds the operations of one body, which has those of its own bodies already, to its conditional node.
BodyPlace AddBody(GraphNode& node, size_t number, Graph body, const GraphState& of) {
  BodyPlace place{.body = body, .node = number, .nodes = of.nodes};
  const GraphNode added = ChildOf(of);
  const size_t others = node.ops.size();
  size_t first = others;
  for (const GraphNode& inner : of.nodes) {
    place.first.push_back(first);
    first += inner.ops.size();
    node.loops = node.loops || inner.loops;
    for (size_t i = 0; i < inner.ops.size(); ++i) node.off.push_back(!inner.off.empty() && inner.off[i]);
  }
  for (const std::vector<bool>& before : added.inside) {
    std::vector<bool>& row = node.inside.emplace_back(others, true);
    row.insert(row.end(), before.begin(), before.end());
  }
  node.ops.insert(node.ops.end(), added.ops.begin(), added.ops.end());
  return place;
}

void CheckLoops(const GraphState& graph, std::string& at_once) {
  for (size_t later = 0; later < graph.nodes.size(); ++later) {
    for (size_t node = 0; node < later && graph.nodes[later].loops; ++node) {
      if (!graph.nodes[node].loops || graph.order[later][node]) continue;
      at_once = absl::StrCat("nodes ", node, " and ", later, graph.of ? " of a body in" : " of");
    }
  }
}

}  // namespace

std::vector<BodyPlace> ResolveBodies(GraphState& graph, GraphBook& book, std::string& at_once) {
  std::vector<BodyPlace> places;
  for (size_t number = 0; number < graph.nodes.size(); ++number) {
    GraphNode& node = graph.nodes[number];
    if (node.bodies.empty()) continue;
    node.is_child = true;
    node.loops = node.kind == ConditionalKind::kWhile;
    for (const Graph body : node.bodies) {
      GraphState of = *book.Find(body);
      std::vector<BodyPlace> nested = ResolveBodies(of, book, at_once);
      const BodyPlace place = AddBody(node, number, body, of);
      for (BodyPlace& deeper : nested) {
        for (size_t& first : deeper.first) first += place.first[deeper.node];
        deeper.node = number;
        places.push_back(std::move(deeper));
      }
      places.push_back(place);
    }
  }
  CheckLoops(graph, at_once);
  return places;
}

void SetInBody(ExecState& whole, const ExecState& body, int32_t node) {
  const BodyPlace& place = whole.bodies[body.place];
  const std::vector<PlacedOp>& ops = body.nodes[static_cast<size_t>(node)].ops;
  std::copy(ops.begin(), ops.end(),
            whole.nodes[place.node].ops.begin() + static_cast<ptrdiff_t>(place.first[static_cast<size_t>(node)]));
}

void EnableInBody(ExecState& whole, const ExecState& body, int32_t node, bool enabled) {
  const BodyPlace& place = whole.bodies[body.place];
  const size_t first = place.first[static_cast<size_t>(node)];
  for (size_t i = 0; i < body.nodes[static_cast<size_t>(node)].ops.size(); ++i) {
    whole.nodes[place.node].off[first + i] = !enabled;
  }
}

}  // namespace penstock::driver::checked
