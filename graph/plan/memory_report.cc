#include "graph/plan/memory_report.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::graph {
namespace {

constexpr size_t kShown = 8;  // buffers

template <class F>
void ForEachInstance(const PlanNode& node, F&& f) {
  for (const Use& use : node.uses) f(use.instance);
  if (node.decl < 0) f(node.src), f(node.dst);
}

struct Life {
  NodeId first{}, last{};  // none: unused
};

// The bytes that `node` writes in place of what it reads: they are handed over, not freed.
int64_t Handed(const Plan& plan, const Table<InstanceId, Life>& lives, NodeId node, DeviceId device) {
  int64_t bytes = 0;
  ForEachInstance(plan.nodes[node], [&](InstanceId to) {
    const Instance& y = plan.instances[to];
    if (!InArena(y.space) || y.device != device || lives[to].first != node) return;
    ForEachInstance(plan.nodes[node], [&](InstanceId from) {
      const Instance& x = plan.instances[from];
      if (from == to || !InArena(x.space) || x.device != device || lives[from].last != node) return;
      bytes += std::max<int64_t>(0, std::min(x.offset + x.bytes, y.offset + y.bytes) - std::max(x.offset, y.offset));
    });
  });
  return bytes;
}

// For each arena, the most bytes in use at one time, with the nodes one after another.
std::vector<int64_t> Peaks(const Plan& plan) {
  Table<InstanceId, Life> lives(plan.instances.size());
  for (const NodeId n : plan.nodes.ids()) {
    ForEachInstance(plan.nodes[n], [&](InstanceId i) {
      if (lives[i].first < 0) lives[i].first = n;
      lives[i].last = n;
    });
  }
  std::vector<int64_t> peaks;
  for (const Arena& arena : plan.arenas) {
    Table<NodeId, int64_t> comes(plan.nodes.size()), goes(plan.nodes.size());  // with each node, and after it
    for (const InstanceId i : lives.ids()) {
      const Instance& instance = plan.instances[i];
      if (lives[i].first < 0 || !InArena(instance.space) || instance.device != arena.device) continue;
      comes[lives[i].first] += instance.bytes;
      goes[lives[i].last] += instance.bytes;
    }
    int64_t live = 0, most = 0;
    for (const NodeId n : plan.nodes.ids()) {
      live += comes[n] - Handed(plan, lives, n, arena.device);
      most = std::max(most, live);
      live -= goes[n] - Handed(plan, lives, n, arena.device);
    }
    peaks.push_back(most);
  }
  return peaks;
}

std::vector<MemoryReport::Piece> Largest(const Plan& plan, const Model& model, const std::vector<std::string>& where) {
  std::vector<const Instance*> found;
  for (const Instance& instance : plan.instances) {
    if (InArena(instance.space) && instance.bytes > 0) found.push_back(&instance);
  }
  const auto name = [&](const Instance* i) { return model.buffers[i->buffer].name.view(); };
  std::sort(found.begin(), found.end(), [&](const Instance* a, const Instance* b) {
    if (a->bytes != b->bytes) return a->bytes > b->bytes;
    return name(a) != name(b) ? name(a) < name(b) : a->device < b->device;
  });
  const auto same = [](const Instance* a, const Instance* b) {
    return a->buffer == b->buffer && a->device == b->device;
  };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());  // of scratch, one stands for all
  const size_t shown = std::min(kShown, found.size());
  std::vector<MemoryReport::Piece> pieces;
  for (size_t i = 0; i < shown; ++i) {
    pieces.push_back({std::string(name(found[i])), where[found[i]->device + 1], found[i]->bytes});
  }
  return pieces;
}

// Rows of cells, the first column left-aligned and all others right-aligned.
std::string TextTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += "  " + row[0] + std::string(widths[0] - row[0].size(), ' ');
    for (size_t c = 1; c < row.size(); ++c) text += std::string(widths[c] - row[c].size() + 2, ' ') + row[c];
    text += "\n";
  }
  return text;
}

}  // namespace

MemoryReport ReportMemory(const Plan& plan, const Model& model, const std::vector<std::string>& devices, int slots) {
  std::vector<std::string> where = {"pinned"};
  where.insert(where.end(), devices.begin(), devices.end());
  const std::vector<int64_t> peaks = Peaks(plan);
  MemoryReport report{.graph = plan.graph, .slots = slots, .arenas = {}, .largest = Largest(plan, model, where)};
  for (size_t a = 0; a < plan.arenas.size(); ++a) {
    const Arena& arena = plan.arenas[a];
    const int64_t arenas = arena.shared ? 1 : slots;
    report.arenas.push_back({where[arena.device + 1], arena.bytes, arenas * arena.bytes, peaks[a]});
  }
  return report;
}

}  // namespace penstock::graph

namespace penstock {

std::string MemoryReport::Text() const {
  std::string text = "memory of graph '" + graph + "', " + std::to_string(slots) + (slots == 1 ? " slot" : " slots") +
                     (arenas.empty() ? ": none\n" : ", in bytes\n");
  if (arenas.empty()) return text;
  std::vector<std::vector<std::string>> rows = {{"where", "a slot", "all slots", "most at once"}};
  for (const Arena& a : arenas) {
    rows.push_back({a.where, std::to_string(a.slot_bytes), std::to_string(a.all_bytes), std::to_string(a.peak_bytes)});
  }
  text += graph::TextTable(rows);
  if (largest.empty()) return text;
  rows = {{"largest", "bytes", "where"}};
  for (const Piece& p : largest) rows.push_back({p.name, std::to_string(p.bytes), p.where});
  return text + graph::TextTable(rows);
}

}  // namespace penstock
