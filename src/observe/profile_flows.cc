#include "src/observe/profile_flows.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace penstock::observe {
namespace {

// Of the nodes that follow a copy, these first ones in the plan are looked for in each of its runs.
constexpr size_t kMostFollowers = 64;

bool IsCopyToDevice(const ProfileSlice& slice) {
  if (slice.node == nullptr) return false;
  const std::string& kind = slice.node->kind;
  return kind == "upload" || kind == "device copy" || kind == "peer copy";
}

// The nodes that directly follow each copy to a device.
using Followers = std::map<const Profile::Node*, std::vector<int>>;

void AddFollowers(const Profile::Graph& graph, Followers& to) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int before : graph.nodes[n].after) {
      if (before < 0 || static_cast<size_t>(before) >= graph.nodes.size()) continue;
      const auto copy = to.find(&graph.nodes[static_cast<size_t>(before)]);
      if (copy != to.end() && copy->second.size() < kMostFollowers) copy->second.push_back(static_cast<int>(n));
    }
  }
}

Followers FollowersOf(const std::vector<ProfileSlice>& slices) {
  Followers followers;
  std::set<const Profile::Graph*> graphs;
  for (const ProfileSlice& slice : slices) {
    if (!IsCopyToDevice(slice)) continue;
    followers[slice.node];
    graphs.insert(slice.graph);
  }
  for (const Profile::Graph* graph : graphs) AddFollowers(*graph, followers);
  return followers;
}

class Arrows {
 public:
  explicit Arrows(ChromeWriter& to) : to_(to) {}

  // To the time `at` in `to`. Both ends lie inside their slices, where no neighbour that touches them is.
  void Draw(const char* name, const ProfileSlice& from, const ProfileSlice& to, int64_t at) {
    const int64_t begin = std::max(from.begin, std::min(from.end - 1, at));
    const int64_t end = std::max(begin, at);
    if (end >= to.end && end != to.begin) return;
    ++id_;
    to_.Flow('s', from.pid, from.tid, name, id_, begin);
    to_.Flow('f', to.pid, to.tid, name, id_, end);
  }

 private:
  ChromeWriter& to_;
  int64_t id_ = 0;
};

// What happened in a run, in the order in which it began.
using RunSlices = std::span<const ProfileSlice* const>;

// The slices of nodes, by node, the first one first.
using NodeSlices = std::vector<std::pair<int, const ProfileSlice*>>;

NodeSlices NodesOf(RunSlices run) {
  NodeSlices nodes;
  for (const ProfileSlice* slice : run) {
    if (slice->node != nullptr && !slice->is_iteration) nodes.emplace_back(slice->span->node, slice);
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->begin, a.second) < std::tie(b.first, b.second->begin, b.second);
  });
  return nodes;
}

const ProfileSlice* FirstOf(const std::vector<int>& followers, const NodeSlices& nodes) {
  const ProfileSlice* first = nullptr;
  for (const int node : followers) {
    const auto at =
        std::lower_bound(nodes.begin(), nodes.end(), node, [](const auto& a, int b) { return a.first < b; });
    if (at == nodes.end() || at->first != node) continue;
    if (first == nullptr || at->second->begin < first->begin) first = at->second;
  }
  return first;
}

void DrawData(RunSlices run, const Followers& followers, Arrows& arrows) {
  const NodeSlices nodes = NodesOf(run);
  for (const auto& [n, slice] : nodes) {
    const auto of = followers.find(slice->node);
    if (of == followers.end()) continue;
    if (const ProfileSlice* const reader = FirstOf(of->second, nodes))
      arrows.Draw("data", *slice, *reader, reader->begin);
  }
}

void DrawRun(RunSlices run, const Followers& followers, Arrows& arrows) {
  const ProfileSlice *launch = nullptr, *whole = nullptr, *first = nullptr, *last = nullptr;
  for (const ProfileSlice* slice : run) {
    if (slice->span->kind == SpanKind::kSubmit) launch = slice;
    if (slice->span->kind == SpanKind::kRun) whole = slice;
    if (slice->span->node < 0) continue;
    if (first == nullptr) first = slice;
    if (last == nullptr || slice->end > last->end) last = slice;
  }
  if (first == nullptr) return;
  if (launch != nullptr) arrows.Draw("launch", *launch, *first, first->begin);
  DrawData(run, followers, arrows);
  if (whole != nullptr) arrows.Draw("end", *last, *whole, std::max(whole->begin, whole->end - 1));
}

}  // namespace

void WriteFlows(const ProfileTracks& tracks, ChromeWriter& to) {
  std::vector<const ProfileSlice*> slices;
  for (const ProfileSlice& slice : tracks.slices()) {
    if (slice.span->executable >= 0 && slice.span->run >= 0) slices.push_back(&slice);
  }
  const auto run_of = [](const ProfileSlice* slice) { return std::tie(slice->span->executable, slice->span->run); };
  std::sort(slices.begin(), slices.end(), [&](const ProfileSlice* a, const ProfileSlice* b) {
    if (run_of(a) != run_of(b)) return run_of(a) < run_of(b);
    return std::tie(a->begin, a) < std::tie(b->begin, b);
  });
  const Followers followers = FollowersOf(tracks.slices());
  Arrows arrows(to);
  for (auto run = slices.begin(); run != slices.end();) {
    const auto next = std::find_if(run, slices.end(), [&](const ProfileSlice* s) { return run_of(s) != run_of(*run); });
    DrawRun({run, next}, followers, arrows);
    run = next;
  }
}

}  // namespace penstock::observe
