// The part of Check about missing order: two nodes that touch common elements, one of them writing, without a
// path between them.
//
// Declared edges order all accesses except Unordered ones, so only the buffers of these are examined. For them the
// edges that would follow from all accesses, in an order of the declared edges, are found as in Hazards; if each of
// these has a path, so has every pair of conflicting nodes. Most are declared edges themselves. For the others a search
// goes back from the later node, no further than the earliest node it must find. So the cost is that of the edges, plus
// the searches where After orders distant nodes: at worst nodes times edges.
#include <algorithm>
#include <string>

#include "graph/common/message.h"
#include "graph/conflicts/hazards.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

class OrderCheck {
 public:
  explicit OrderCheck(const Records& records, const Checked& checked, Findings& findings)
      : records_(records),
        checked_(checked),
        findings_(findings),
        position_(records.model.nodes.size()),
        seen_(records.model.nodes.size(), -1) {
    int32_t position = 0;
    for (const DeclId n : checked_.sequence) position_[n] = position++;
  }

  void Run() {
    CsrRows needed;  // for each node of the sequence
    Hazards hazards(records_.model.buffers.size());
    const Table<BufferId, bool> loose = LooseBuffers();
    for (const DeclId n : checked_.sequence) {
      for (const BoxRef& ref : records_.boxes[n]) {
        if (ref.base < 0 || !loose[ref.base]) continue;
        hazards.Access(ref.base, records_.boxes.tree(ref.base), ref.box, ref.mode, n, needed);
      }
      needed.CloseAsSet();
      CheckNode(n, needed[needed.rows() - 1]);
    }
  }

 private:
  Table<BufferId, bool> LooseBuffers() const {
    Table<BufferId, bool> loose(records_.model.buffers.size());
    for (const DeclId n : records_.model.nodes.ids()) {
      for (const BoxRef& ref : records_.boxes[n]) {
        if (ref.base >= 0 && ref.unordered) loose[ref.base] = true;
      }
    }
    return loose;
  }

  void CheckNode(DeclId n, std::span<const int32_t> needed) {
    std::vector<int32_t> declared(checked_.declared[n].begin(), checked_.declared[n].end()), far;
    std::sort(declared.begin(), declared.end());
    std::set_difference(needed.begin(), needed.end(), declared.begin(), declared.end(), std::back_inserter(far));
    if (far.empty()) return;
    MarkAncestors(n, far);
    for (const DeclId p : far) {
      if (seen_[p] != n) Report(p, n);
    }
  }

  // Sets seen_ to `n` for the predecessors of `n`, transitively, as far back as the first of `wanted`.
  void MarkAncestors(DeclId n, const std::vector<int32_t>& wanted) {
    int32_t first = position_[n];
    for (const int32_t p : wanted) first = std::min(first, position_[p]);
    open_.assign(1, n);
    while (!open_.empty()) {
      const DeclId at = open_.back();
      open_.pop_back();
      for (const DeclId p : checked_.declared[at]) {
        if (seen_[p] == n || position_[p] < first) continue;
        seen_[p] = n;
        open_.push_back(p);
      }
    }
  }

  // Reports the first conflict of the two nodes that involves an Unordered access.
  void Report(DeclId earlier, DeclId later) {
    const NodeDecl& a = records_.model.nodes[earlier];
    const NodeDecl& b = records_.model.nodes[later];
    for (const BoxRef& y : records_.boxes[later]) {
      for (const BoxRef& x : records_.boxes[earlier]) {
        const bool conflict = x.mode != AccessMode::kRead || y.mode != AccessMode::kRead;
        if (!conflict || !Meet(x, y) || !(x.unordered || y.unordered)) continue;
        const char* verb = y.mode == AccessMode::kRead ? "reads" : Reads(y.mode) ? "changes" : "writes";
        findings_.AddMistake(
            absl::StatusCode::kInvalidArgument,
            Prefix(records_.model, "node", b.name) + ": " + verb + " " + Text(y) + " while node " + Quoted(a.name) +
                " may " + Infinitive(x.mode) + " " + Text(x) +
                "; an Unordered access leaves the order of the two to After, and no path orders them; let one "
                "come After the other, or drop Unordered");
        return;
      }
    }
  }

  static const char* Infinitive(AccessMode mode) {
    return mode == AccessMode::kRead ? "read" : Reads(mode) ? "change" : "write";
  }
  bool Meet(const BoxRef& x, const BoxRef& y) const {
    if (x.base < 0 || x.base != y.base || x.box < 0 || y.box < 0) return false;
    const BoxTree* tree = records_.boxes.tree(x.base);
    return tree == nullptr || Overlap(tree->box(x.box), tree->box(y.box));
  }
  std::string Text(const BoxRef& ref) const {
    const BufferDecl& buffer = records_.model.buffers[ref.base];
    if (ref.box == 0) return Quoted(buffer.name);
    return SliceText(buffer, records_.boxes.tree(ref.base)->box(ref.box)) + " of " + Quoted(buffer.name);
  }

  const Records& records_;
  const Checked& checked_;
  Findings& findings_;
  Table<DeclId, int32_t> position_;  // of each node in the sequence
  Table<DeclId, DeclId> seen_;  // for each node: the last search that reached it
  std::vector<DeclId> open_;
};

}  // namespace

void CheckUnordered(const Records& records, const Checked& checked, Findings& findings) {
  if (checked.sequence.size() < records.model.nodes.size()) return;  // a cycle has been reported
  if (records.boxes.any_unordered()) OrderCheck(records, checked, findings).Run();
}

}  // namespace penstock::graph
