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
  explicit OrderCheck(Draft& draft)
      : d_(draft), position_(draft.model.nodes.size()), seen_(draft.model.nodes.size(), -1) {
    for (size_t i = 0; i < d_.sequence.size(); ++i) {
      position_[d_.sequence[i]] = static_cast<int32_t>(i);
    }
  }

  void Run() {
    CsrRows needed;  // for each node of the sequence
    Hazards hazards(d_.model.buffers.size());
    const std::vector<bool> loose = LooseBuffers();
    for (const int32_t n : d_.sequence) {
      for (const BoxRef& ref : d_.boxes[n]) {
        if (ref.base < 0 || !loose[ref.base]) continue;
        hazards.Access(ref.base, d_.boxes.tree(ref.base), ref.box, ref.mode, n, needed);
      }
      needed.CloseAsSet();
      CheckNode(n, needed[needed.rows() - 1]);
    }
  }

 private:
  std::vector<bool> LooseBuffers() const {
    std::vector<bool> loose(d_.model.buffers.size());
    for (size_t n = 0; n < d_.model.nodes.size(); ++n) {
      for (const BoxRef& ref : d_.boxes[static_cast<int32_t>(n)]) {
        if (ref.base >= 0 && ref.unordered) loose[ref.base] = true;
      }
    }
    return loose;
  }

  void CheckNode(int32_t n, std::span<const int32_t> needed) {
    std::vector<int32_t> declared(d_.declared[n].begin(), d_.declared[n].end()), far;
    std::sort(declared.begin(), declared.end());
    std::set_difference(needed.begin(), needed.end(), declared.begin(), declared.end(), std::back_inserter(far));
    if (far.empty()) return;
    MarkAncestors(n, far);
    for (const int32_t p : far) {
      if (seen_[p] != n) Report(p, n);
    }
  }

  // Sets seen_ to `n` for the predecessors of `n`, transitively, as far back as the first of `wanted`.
  void MarkAncestors(int32_t n, const std::vector<int32_t>& wanted) {
    int32_t first = position_[n];
    for (const int32_t p : wanted) first = std::min(first, position_[p]);
    open_.assign(1, n);
    while (!open_.empty()) {
      const int32_t at = open_.back();
      open_.pop_back();
      for (const int32_t p : d_.declared[at]) {
        if (seen_[p] == n || position_[p] < first) continue;
        seen_[p] = n;
        open_.push_back(p);
      }
    }
  }

  // Reports the first conflict of the two nodes that involves an Unordered access.
  void Report(int32_t earlier, int32_t later) {
    const NodeDecl& a = d_.model.nodes[earlier];
    const NodeDecl& b = d_.model.nodes[later];
    for (const BoxRef& y : d_.boxes[later]) {
      for (const BoxRef& x : d_.boxes[earlier]) {
        const bool conflict = x.mode != AccessMode::kRead || y.mode != AccessMode::kRead;
        if (!conflict || !Meet(x, y) || !(x.unordered || y.unordered)) continue;
        const char* verb = y.mode == AccessMode::kRead ? "reads" : y.mode == AccessMode::kWrite ? "writes" : "changes";
        d_.AddMistake(absl::StatusCode::kInvalidArgument,
                      Prefix(d_.model, "node", b.name) + ": " + verb + " " + Text(y) + " while node " + Quoted(a.name) +
                          " may " + Infinitive(x.mode) + " " + Text(x) +
                          "; an Unordered access leaves the order of the two to After, and no path joins them; let one "
                          "come After the other, or drop Unordered");
        return;
      }
    }
  }

  static const char* Infinitive(AccessMode mode) {
    return mode == AccessMode::kRead ? "read" : mode == AccessMode::kWrite ? "write" : "change";
  }
  bool Meet(const BoxRef& x, const BoxRef& y) const {
    if (x.base < 0 || x.base != y.base || x.box < 0 || y.box < 0) return false;
    const BoxTree* tree = d_.boxes.tree(x.base);
    return tree == nullptr || Overlap(tree->box(x.box), tree->box(y.box));
  }
  std::string Text(const BoxRef& ref) const {
    const BufferDecl& buffer = d_.model.buffers[ref.base];
    if (ref.box == 0) return Quoted(buffer.name);
    return SliceText(buffer, d_.boxes.tree(ref.base)->box(ref.box)) + " of " + Quoted(buffer.name);
  }

  Draft& d_;
  std::vector<int32_t> position_;  // of each node in the sequence
  std::vector<int32_t> seen_;  // for each node: the last search that reached it
  std::vector<int32_t> open_;
};

}  // namespace

void CheckUnordered(Draft& draft) {
  if (draft.sequence.size() < draft.model.nodes.size()) return;  // a cycle has been reported
  if (draft.boxes.any_unordered()) OrderCheck(draft).Run();
}

}  // namespace penstock::graph
