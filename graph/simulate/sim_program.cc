// Prepares a SimGraph for Simulate.
//
// A node's segment is the largest number of transitions from a host step to a node on a device on a path to it, as the
// planner has it (graph/passes/segments.cc).
#include "graph/simulate/sim_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace penstock::graph {
namespace {

class SimProgramBuilder {
 public:
  SimProgramBuilder(const SimGraph& graph, const SimOptions& options)
      : graph_(graph), options_(options), segment_(graph.nodes.size()) {
    program_.nodes = static_cast<int32_t>(graph.nodes.size());
  }

  SimProgram Build() {
    FindSegments();
    FindGraphs();
    AddPools();
    AddNodes();
    for (int32_t n = 0; n < program_.nodes; ++n) AddEdgesTo(n);
    options_.as_graphs ? AddGraphEnds() : AddLanes();
    AddSubmissions();
    AddOrderOfEvents();
    SortEdges();
    AddTouches();
    return std::move(program_);
  }

 private:
  struct FullEdge {
    int32_t from;
    SimEdge edge;
  };

  const SimNode& Node(int32_t n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  int32_t& SegmentOf(int32_t n) { return segment_[static_cast<size_t>(n)]; }

  void FindSegments() {
    int32_t last = 0;
    for (int32_t n = 0; n < program_.nodes; ++n) {
      for (const int32_t p : Node(n).after) {
        const int32_t up = Node(p).on_host && !Node(n).on_host ? 1 : 0;
        SegmentOf(n) = std::max(SegmentOf(n), SegmentOf(p) + up);
      }
      last = std::max(last, SegmentOf(n));
    }
    members_.resize(static_cast<size_t>(last) + 1);
    for (int32_t n = 0; n < program_.nodes; ++n) {
      if (!Node(n).on_host) members_[static_cast<size_t>(SegmentOf(n))].push_back(n);
    }
  }

  // Each graph has the nodes of a segment with the same SimNode::graph. Graphs have numbers in the order of submission.
  void FindGraphs() {
    std::map<std::pair<size_t, int32_t>, int32_t> numbers;
    graph_of_.assign(graph_.nodes.size(), -1);
    for (size_t s = 0; s < members_.size(); ++s) {
      for (const int32_t n : members_[s]) numbers.try_emplace({s, Node(n).graph}, 0);
    }
    for (auto& [key, number] : numbers) number = graphs_++;
    for (size_t s = 0; s < members_.size(); ++s) {
      for (const int32_t n : members_[s]) graph_of_[static_cast<size_t>(n)] = numbers[{s, Node(n).graph}];
    }
  }
  int32_t GraphOf(int32_t n) const { return graph_of_[static_cast<size_t>(n)]; }

  void AddPools() {
    program_.pools.push_back({.resource = SimResource::kLaunch, .places = options_.threads});
    program_.pools.push_back({.resource = SimResource::kWorker, .places = options_.workers});
    for (int32_t d = 0; d < static_cast<int32_t>(graph_.devices.size()); ++d) {
      AddPoolsOf(graph_.devices[static_cast<size_t>(d)], d, program_.pools);
    }
  }

  int32_t PoolOf(const SimNode& node) {
    const int32_t kernels = 2 + 3 * node.device;
    switch (node.resource) {
      case SimResource::kKernel: return kernels;
      case SimResource::kUpload: return kernels + 1;
      case SimResource::kDownload: return kernels + 2;
      case SimResource::kWorker: return SimProgram::kWorkers;
      case SimResource::kPeer: break;
      case SimResource::kNothing:
      case SimResource::kLaunch: return -1;
    }
    const auto [link, is_new] =
        links_.try_emplace({node.from, node.device}, static_cast<int32_t>(program_.pools.size()));
    if (is_new) {
      program_.pools.push_back({.resource = SimResource::kPeer, .device = node.device, .from = node.from});
    }
    return link->second;
  }

  void AddNodes() {
    const double latency = options_.as_graphs ? options_.graph_latency_us : options_.stream_latency_us;
    for (int32_t n = 0; n < program_.nodes; ++n) {
      const SimNode& node = Node(n);
      const bool is_plain = node.on_host || node.resource == SimResource::kNothing;
      program_.cost.push_back(InTicks(node.Cost() + (is_plain ? 0 : latency)));
      program_.on_host.push_back(node.on_host);
      program_.device.push_back(node.device);
      program_.pool.push_back(PoolOf(node));
      program_.waits.push_back(0);
    }
  }

  void Add(int32_t from, int32_t to, SimWait wait, double latency_us) {
    edges_.push_back({from, {to, wait, InTicks(latency_us)}});
    ++program_.waits[static_cast<size_t>(to)];
  }

  // From a host step to a node on a device there is none: the submission of the node waits for it. In graphs, host
  // steps and later graphs wait for the ends of graphs.
  void AddEdgesTo(int32_t n) {
    const SimNode& node = Node(n);
    for (const int32_t p : node.after) {
      const SimNode& before = Node(p);
      if (before.on_host && !node.on_host) continue;
      if (!before.on_host && options_.as_graphs && (node.on_host || GraphOf(p) != GraphOf(n))) continue;
      const bool crosses = !before.on_host && !node.on_host && before.device != node.device;
      const bool reports = !before.on_host && node.on_host;
      Add(p, n, SimWait::kPredecessor, crosses ? options_.crossing_us : reports ? options_.completion_us : 0);
    }
  }

  void AddLanes() {
    std::map<int32_t, int32_t> ends;
    for (const std::vector<int32_t>& members : members_) {
      for (const int32_t n : members) {
        const int32_t lane = Node(n).lane;
        if (lane < 0) continue;
        const auto [end, is_first] = ends.try_emplace(lane, n);
        if (!is_first) Add(std::exchange(end->second, n), n, SimWait::kLane, 0);
      }
    }
  }

  // The graphs of a run follow each other on one lane.
  void AddGraphEnds() {
    std::vector<std::vector<int32_t>> nodes_of(static_cast<size_t>(graphs_));
    for (const std::vector<int32_t>& members : members_) {
      for (const int32_t n : members) nodes_of[static_cast<size_t>(GraphOf(n))].push_back(n);
    }
    int32_t last = -1;
    for (const std::vector<int32_t>& nodes : nodes_of) {
      const auto end = static_cast<int32_t>(program_.cost.size());
      program_.cost.push_back(0);
      program_.pool.push_back(-1);
      program_.waits.push_back(0);
      for (const int32_t n : nodes) {
        Add(n, end, SimWait::kPredecessor, 0);
        if (last >= 0) Add(last, n, SimWait::kLane, 0);
      }
      last = end;
    }
    for (int32_t n = 0; n < program_.nodes; ++n) {
      if (!Node(n).on_host) continue;
      int32_t graph = -1;
      for (const int32_t p : Node(n).after) graph = std::max(graph, GraphOf(p));
      if (graph >= 0) Add(program_.nodes + graph, n, SimWait::kPredecessor, options_.completion_us);
    }
  }

  // What one submission submits: a node, or a graph. Numbers are in the order of submission.
  void FindUnits() {
    unit_ = graph_of_;
    int32_t next = 0;
    for (const std::vector<int32_t>& members : members_) {
      for (const int32_t n : members) {
        if (!options_.as_graphs) unit_[static_cast<size_t>(n)] = next++;
      }
    }
    crossings_.resize(static_cast<size_t>(options_.as_graphs ? graphs_ : next));
    for (int32_t n = 0; n < program_.nodes; ++n) {
      if (!Node(n).on_host) crossings_[static_cast<size_t>(unit_[static_cast<size_t>(n)])] += CrossingsOf(n);
    }
    for (size_t s = 0; s < graph_.states.size(); ++s) {
      int32_t first = -1, last = -1;
      for (const int32_t n : graph_.states[s]) {
        if (Node(n).on_host) continue;
        const int32_t unit = unit_[static_cast<size_t>(n)];
        first = first < 0 ? unit : std::min(first, unit);
        last = std::max(last, unit);
      }
      if (first < 0) continue;
      first_of_[first].push_back(static_cast<int32_t>(s));
      last_of_[last].push_back(static_cast<int32_t>(s));
    }
  }

  void AddSubmissions() {
    FindUnits();
    std::vector<std::vector<int32_t>> after(graph_.nodes.size());
    for (size_t s = 0; s < members_.size(); ++s) {
      const auto first = static_cast<int32_t>(program_.segments.size());
      OpenSegment(/*goes_on=*/false, s == 0 ? options_.launch_us : 0);
      int32_t unit = -1;
      for (const int32_t n : members_[s]) {
        if (unit_[static_cast<size_t>(n)] != unit) BeginUnit(unit = unit_[static_cast<size_t>(n)]);
        program_.segments.back().nodes.push_back({n, InTicks(submitted_us_ + options_.start_us)});
        ++program_.waits[static_cast<size_t>(n)];
        for (const int32_t p : Node(n).after) {
          if (Node(p).on_host) after[static_cast<size_t>(p)].push_back(first);
        }
      }
    }
    AddLastParts();
    for (int32_t n = 0; n < program_.nodes; ++n) {
      if (Node(n).on_host && Node(n).after.empty()) {
        program_.segments[0].nodes.push_back({n, program_.segments[0].cost});
        ++program_.waits[static_cast<size_t>(n)];
      }
      std::vector<int32_t>& segments = after[static_cast<size_t>(n)];
      segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
      for (const int32_t s : segments) {
        ++program_.segments[static_cast<size_t>(s)].host_steps;
        program_.after_host.push_back(s);
      }
      program_.after_host_end.push_back(static_cast<int32_t>(program_.after_host.size()));
    }
  }

  void AddLastParts() {
    std::vector<int32_t> last(members_.size());
    int32_t segment = -1;
    for (size_t part = 0; part < program_.segments.size(); ++part) {
      segment += program_.segments[part].goes_on ? 0 : 1;
      last[static_cast<size_t>(segment)] = static_cast<int32_t>(part);
    }
    for (int32_t n = 0; n < program_.nodes; ++n) {
      int32_t part = Node(n).on_host ? -1 : last[static_cast<size_t>(SegmentOf(n))];
      for (const int32_t p : Node(n).after) {
        if (Node(n).on_host && !Node(p).on_host) part = std::max(part, last[static_cast<size_t>(SegmentOf(p))]);
      }
      program_.last_part.push_back(part);
    }
  }

  void OpenSegment(bool goes_on, double us) {
    program_.segments.push_back({.cost = InTicks(us), .goes_on = goes_on});
    submitted_us_ = us;
  }

  void BeginUnit(int32_t unit) {
    const auto first = first_of_.find(unit), last = last_of_.find(unit);
    if (first != first_of_.end() || !program_.segments.back().last_of.empty()) OpenSegment(/*goes_on=*/true, 0);
    submitted_us_ += options_.as_graphs ? options_.graph_us : options_.node_us;
    submitted_us_ += static_cast<double>(crossings_[static_cast<size_t>(unit)]) * options_.crossing_submit_us;
    SimSegment& segment = program_.segments.back();
    segment.cost = InTicks(submitted_us_);
    if (first != first_of_.end()) segment.first_of = first->second;
    if (last != last_of_.end()) segment.last_of = last->second;
  }

  // A graph is launched as a whole: all of its crossings count before any of its nodes may begin.
  int64_t CrossingsOf(int32_t n) const {
    const SimNode& node = Node(n);
    if (node.crossings >= 0) return node.crossings;
    return std::count_if(node.after.begin(), node.after.end(), [&](int32_t p) {
      const bool is_edge = !Node(p).on_host && Node(p).device != node.device;
      return is_edge && (!options_.as_graphs || GraphOf(p) == GraphOf(n));
    });
  }

  // Events are looked at lane by lane, and in each in the order in which they are recorded. A graph's are on one lane.
  void AddOrderOfEvents() {
    std::vector<int32_t> order(graph_.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int32_t n) { return std::pair(options_.as_graphs ? 0 : Node(n).lane, n); };
    std::sort(order.begin(), order.end(), [&](int32_t x, int32_t y) { return key(x) < key(y); });
    program_.seen.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) program_.seen[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
    for (int32_t n = 0; options_.as_graphs && n < program_.nodes; ++n) {
      if (!Node(n).on_host) continue;
      int32_t last = -1;
      for (const int32_t p : Node(n).after) last = Node(p).on_host ? last : std::max(last, p);
      program_.seen[static_cast<size_t>(n)] = last;
    }
  }

  void SortEdges() {
    std::vector<int32_t>& end = program_.edge_end;
    end.assign(program_.cost.size(), 0);
    for (const FullEdge& e : edges_) ++end[static_cast<size_t>(e.from)];
    int32_t begin = 0;
    for (int32_t& e : end) begin += std::exchange(e, begin);
    program_.edges.resize(edges_.size());
    for (const FullEdge& e : edges_) {
      program_.edges[static_cast<size_t>(end[static_cast<size_t>(e.from)]++)] = e.edge;
    }
  }

  void AddTouches() {
    std::vector<std::vector<int32_t>> touched(graph_.nodes.size());
    for (size_t s = 0; s < graph_.states.size(); ++s) {
      for (const int32_t n : graph_.states[s]) touched[static_cast<size_t>(n)].push_back(static_cast<int32_t>(s));
    }
    for (const std::vector<int32_t>& states : touched) {
      program_.touched.insert(program_.touched.end(), states.begin(), states.end());
      program_.touched_end.push_back(static_cast<int32_t>(program_.touched.size()));
    }
  }

  const SimGraph& graph_;
  const SimOptions& options_;
  SimProgram program_;
  std::vector<int32_t> segment_;  // of each node
  std::vector<std::vector<int32_t>> members_;  // of each segment: its nodes on devices
  std::vector<int32_t> graph_of_;  // of each node: its graph; -1: a host step
  int32_t graphs_ = 0;
  std::vector<int32_t> unit_;  // of each node
  std::vector<int64_t> crossings_;  // of each unit
  std::map<int32_t, std::vector<int32_t>> first_of_,
      last_of_;  // of a unit: the States that it is the first or last to touch
  double submitted_us_ = 0;  // since the submission of the open segment began
  std::map<std::pair<int32_t, int32_t>, int32_t> links_;  // from one device to another: the pool
  std::vector<FullEdge> edges_;
};

}  // namespace

void AddPoolsOf(const SimDevice& device, int32_t number, std::vector<SimPool>& pools) {
  const auto upload = static_cast<int32_t>(pools.size()) + 1;
  pools.push_back({.resource = SimResource::kKernel, .device = number, .places = device.kernels});
  pools.push_back(
      {.resource = SimResource::kUpload, .device = number, .opposite = upload + 1, .slowdown = device.upload_slowdown});
  pools.push_back(
      {.resource = SimResource::kDownload, .device = number, .opposite = upload, .slowdown = device.download_slowdown});
}

SimProgram MakeSimProgram(const SimGraph& graph, const SimOptions& options) {
  return SimProgramBuilder(graph, options).Build();
}

}  // namespace penstock::graph
