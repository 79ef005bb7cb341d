#include "tests/graph/random_graph.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace penstock::graph {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, int nodes) : random_(seed), nodes_(nodes) {}

  RandomGraph Make() {
    const int devices = 1 + Below(3);
    out_.options = Devices(devices);
    out_.options.default_device = Below(devices);
    out_.options.max_lanes = 1 + Below(Chance(2) ? 2 : 6);
    host_share_ = Below(5);
    pins_ = Chance(2);
    priorities_ = Chance(4);
    const int buffers = 2 + Below(8);
    for (int b = 0; b < buffers; ++b) AddBuffer(b);
    const int nodes = 1 + Below(nodes_);
    for (int n = 0; n < nodes; ++n) AddNode(n);
    for (size_t b = 0; b < written_.size(); ++b) {
      if (role(b) == BufferRole::kOutput && !written_[b]) Finish(g().For("finish" + std::to_string(b), Out{Int(b)}));
    }
    AddAfters();
    if (Chance(3)) {
      for (size_t n = 0; n < g().model.nodes.size(); ++n) out_.options.costs.push_back(Below(100) - 10);
    }
    return std::move(out_);
  }

 private:
  static int32_t Int(size_t i) { return static_cast<int32_t>(i); }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int one_in) { return Below(one_in) == 0; }
  ModelBuilder& g() { return out_.builder; }
  BufferRole role(size_t b) { return g().model.buffers[b].role; }

  void AddBuffer(int b) {
    static constexpr int64_t kElements[] = {64, 64, 100, 100, 256, 700, 0};
    const Extent extent(kElements[Below(7)]);
    const std::string name = "b" + std::to_string(b);
    const Where bound = Chance(3) ? kPinned : kHost;
    switch (Below(5)) {
      case 0: g().Input(name, extent, bound); break;
      case 1: g().Output(name, extent, bound); break;
      case 2: g().InOut(name, extent, bound); break;
      default: g().Scratch(name, extent, Chance(4) ? kPinned : kDevice); break;
    }
    written_.push_back(role(static_cast<size_t>(b)) == BufferRole::kInput ||
                       role(static_cast<size_t>(b)) == BufferRole::kInOut);
  }

  void AddNode(int n) {
    const std::string name = "n" + std::to_string(n);
    if (Chance(5) && AddCopy(name)) return;
    if (Chance(8) && AddFill(name)) return;
    std::vector<AccessDecl> accesses;
    const int count = Below(4);
    for (int i = 0; i < count; ++i) AddAccess(accesses);
    const bool host = Below(8) < host_share_;
    const int32_t node = host        ? g().Host(name)
                         : Chance(3) ? g().Kernel(name)
                         : Chance(3) ? g().Launch(name)
                                     : g().For(name);
    for (const AccessDecl& a : accesses) {
      if (a.mode != AccessMode::kRead) written_[static_cast<size_t>(a.buffer)] = true;
    }
    g().node(node).accesses = std::move(accesses);
    Finish(node);
  }

  void AddAccess(std::vector<AccessDecl>& accesses) {
    const auto b = static_cast<size_t>(Below(static_cast<int>(written_.size())));
    for (const AccessDecl& a : accesses) {
      // Twice in one node: only to read and write, or to read twice, what has been written before.
      if (a.buffer == Int(b) && (!written_[b] || a.mode != AccessMode::kRead)) return;
    }
    AccessMode mode = static_cast<AccessMode>(1 + Below(3));
    if (role(b) == BufferRole::kInput) mode = AccessMode::kRead;
    if (!written_[b]) mode = AccessMode::kWrite;
    accesses.push_back({Int(b), ModelBuilder::kSerial, mode, {}});
  }

  bool AddCopy(const std::string& name) {
    const auto from = static_cast<size_t>(Below(Int(written_.size()))),
               to = static_cast<size_t>(Below(Int(written_.size())));
    if (from == to || !written_[from] || role(to) == BufferRole::kInput) return false;
    if (!(g().model.buffers[from].extent == g().model.buffers[to].extent)) return false;
    Finish(g().Copy(name, Int(from), Int(to)));
    written_[to] = true;
    return true;
  }

  bool AddFill(const std::string& name) {
    const auto to = static_cast<size_t>(Below(Int(written_.size())));
    if (role(to) == BufferRole::kInput) return false;
    Finish(g().Fill(name, Int(to)));
    written_[to] = true;
    return true;
  }

  void Finish(int32_t node) {
    if (pins_ && !Chance(3)) g().node(node).device = Below(Int(out_.options.devices.size()));
    if (priorities_) g().node(node).priority = Below(3) - 1;
  }

  // After in both directions, but only where the later node does not come before the earlier one already.
  void AddAfters() {
    const int count = Int(g().model.nodes.size());
    for (int tries = Below(4); tries > 0 && count > 1; --tries) {
      const int a = Below(count), b = Below(count);
      if (a != b && !ComesBefore(a, b)) g().After(a, b);
    }
  }
  bool ComesBefore(int a, int b) {
    std::vector<int> open = {b};
    std::vector<bool> seen(g().model.nodes.size());
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      if (v == a) return true;
      if (seen[static_cast<size_t>(v)]) continue;
      seen[static_cast<size_t>(v)] = true;
      for (const int32_t p : g().node(v).after) open.push_back(p);
      for (int u = 0; u < v; ++u) {
        for (const AccessDecl& x : g().node(u).accesses) {
          for (const AccessDecl& y : g().node(v).accesses) {
            if (x.buffer == y.buffer && (x.mode != AccessMode::kRead || y.mode != AccessMode::kRead)) open.push_back(u);
          }
        }
      }
    }
    return false;
  }

  std::mt19937_64 random_;
  const int nodes_;
  RandomGraph out_;
  std::vector<bool> written_;
  int host_share_ = 0;  // in eighths
  bool pins_ = false, priorities_ = false;
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed, int nodes) { return Generator(seed, nodes).Make(); }

}  // namespace penstock::graph
