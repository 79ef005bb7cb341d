// The part of Check about data: reads of unwritten data, writes that are not allowed, and spans of accesses that are
// not contiguous.
//
// Missing data is decided exactly, on boxes, if they do not depend on parameters. If they do, the check errs on
// the side of the graph: a write counts with everything it may touch, and a read is refused only if none of
// that is written.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

// The regions of one buffer, accessed in parts, that nodes have written so far.
class Written {
 public:
  explicit Written(const BoxTree& tree) : tree_(tree), live_(tree.NoneLive()), has_(static_cast<size_t>(tree.size())) {}

  void Add(int32_t box) {
    if (!has_[box]) tree_.SetLive(live_, box, true);
    has_[box] = true;
  }
  bool FirstLastUses(int32_t box) {
    found_.clear();
    tree_.Find(live_, tree_.box(box), found_);
    return !found_.empty();
  }
  // An unwritten part of the box; empty if all is written, which is then remembered.
  Region Missing(int32_t box) {
    if (has_[box]) return {};
    std::vector<Region> boxes;
    FirstLastUses(box);
    for (const int32_t f : found_) boxes.push_back(tree_.box(f));
    const Region missing = Uncovered(tree_.box(box), std::move(boxes));
    if (IsEmpty(missing)) Add(box);
    return missing;
  }

 private:
  const BoxTree& tree_;
  BoxTree::Live live_;
  std::vector<bool> has_;
  std::vector<int32_t> found_;
};

class DataCheck {
 public:
  explicit DataCheck(Draft& draft) : d_(draft), seen_(draft.buffers.size()), part_of_(seen_.size(), -1) {
    for (size_t b = 0; b < seen_.size(); ++b) {
      const BufferRole role = d_.buffers[b].role;
      if (role != BufferRole::kOutput && role != BufferRole::kInternal) seen_[b] = kWritten;
      const BoxTree* tree = d_.boxes.tree(static_cast<int32_t>(b));
      if (tree == nullptr || seen_[b] != 0) continue;
      part_of_[b] = static_cast<int32_t>(parts_.size());
      parts_.emplace_back(*tree);
    }
  }

  // Data edges agree with the order of the sequence, so data appears in that order.
  void Run() {
    std::vector<int32_t> order = d_.sequence;
    if (order.size() < d_.nodes.size()) {  // there is a cycle
      order.resize(d_.nodes.size());
      std::iota(order.begin(), order.end(), 0);
    }
    for (const int32_t n : order) {
      const std::span<const BoxRef> accesses = d_.boxes[n];
      for (const BoxRef& ref : accesses) {
        if (ref.mode == AccessMode::kWrite || !TouchesAny(ref)) continue;
        if ((seen_[ref.base] & (kWritten | kReported)) == 0) CheckRead(n, ref);
      }
      for (const BoxRef& ref : accesses) {
        if (ref.mode != AccessMode::kRead && TouchesAny(ref)) AddWrite(ref);
      }
    }
    CheckOutputs();
  }

 private:
  static bool TouchesAny(const BoxRef& ref) { return ref.base >= 0 && ref.box >= 0; }
  Written* parts(int32_t b) {
    const int32_t index = part_of_[b];
    return index < 0 ? nullptr : &parts_[index];
  }

  void CheckRead(int32_t n, const BoxRef& ref) {
    const auto b = static_cast<size_t>(ref.base);
    const BufferDecl& buffer = d_.model.buffers[b];
    std::string what = Quoted(buffer.name), missing = "it";
    if (Written* parts = this->parts(ref.base)) {
      const Region& read = d_.boxes.tree(ref.base)->box(ref.box);
      const Region gap = ref.exact ? parts->Missing(ref.box) : parts->FirstLastUses(ref.box) ? Region{} : read;
      if (IsEmpty(gap)) return;
      if (ref.box != 0) what = SliceText(buffer, read) + " of " + what;
      if (gap != read) missing = SliceText(buffer, gap) + " of it";
    }
    seen_[b] |= kReported;
    d_.AddMistake(kInvalid, Prefix(d_.model, "node", d_.model.nodes[n].name) + ": reads " + what +
                                " before any node has written " + missing +
                                "; its contents would be undefined; write it first, say Write where this node writes "
                                "all of it, or declare it with Input or InOut");
  }

  void AddWrite(const BoxRef& ref) {
    const auto b = static_cast<size_t>(ref.base);
    if (ref.whole()) seen_[b] |= kWholly;
    if (Written* parts = this->parts(ref.base)) {
      parts->Add(ref.box);
    } else {
      seen_[b] |= kWritten;
    }
  }

  void CheckOutputs() {
    d_.partial_output.assign(seen_.size(), false);
    for (size_t b = 0; b < seen_.size(); ++b) {
      if (d_.buffers[b].role != BufferRole::kOutput || (seen_[b] & kReported) != 0) continue;
      Written* parts = this->parts(static_cast<int32_t>(b));
      if (parts != nullptr ? parts->FirstLastUses(0) : (seen_[b] & kWritten) != 0) {
        d_.partial_output[b] = (seen_[b] & kWholly) == 0;
        partial_ = partial_ || d_.partial_output[b];
        continue;
      }
      d_.AddMistake(kInvalid, Prefix(d_.model, "buffer", d_.model.buffers[b].name) +
                                  ": an Output that no node writes; its memory would come back untouched; write it or "
                                  "remove it");
    }
    if (partial_) CheckTiles();
  }

  // Outputs written in parts may still be written completely.
  void CheckTiles() {
    std::vector<std::vector<Region>> tiles(seen_.size());
    for (int32_t n = 0; n < static_cast<int32_t>(d_.model.nodes.size()); ++n) {
      for (const BoxRef& ref : d_.boxes[n]) {
        const auto b = static_cast<size_t>(ref.base);
        if (!TouchesAny(ref) || !d_.partial_output[b] || ref.mode == AccessMode::kRead || !ref.exact) continue;
        tiles[b].push_back(d_.boxes.tree(ref.base)->box(ref.box));
      }
    }
    for (size_t b = 0; b < tiles.size(); ++b) {
      if (!d_.partial_output[b] || tiles[b].empty()) continue;
      const Region& all = d_.boxes.tree(static_cast<int32_t>(b))->box(0);
      d_.partial_output[b] = !IsEmpty(Uncovered(all, std::move(tiles[b])));
    }
  }

  enum Seen : uint8_t { kWritten = 1, kWholly = 2, kReported = 4 };

  Draft& d_;
  std::vector<uint8_t> seen_;     // for each buffer
  std::vector<int32_t> part_of_;  // index in parts_, for buffers accessed in parts
  std::vector<Written> parts_;
  bool partial_ = false;
};

void CheckInputsAreOnlyRead(Draft& draft) {
  for (size_t n = 0; n < draft.model.nodes.size(); ++n) {
    for (const BoxRef& ref : draft.boxes[static_cast<int32_t>(n)]) {
      if (ref.mode == AccessMode::kRead || ref.base < 0) continue;
      const BufferRole role = draft.buffers[ref.base].role;
      if (role != BufferRole::kInput && role != BufferRole::kParam) continue;
      draft.AddMistake(
          kInvalid,
          Prefix(draft.model, "node", draft.model.nodes[n].name) + ": writes " + Quoted(draft.buffer_name(ref.base)) +
              (role == BufferRole::kInput ? ", which is an Input; bound Inputs are never changed; declare it with InOut"
                                          : ", the value of a parameter; launches set it; write a Buffer"));
    }
  }
}

bool IsConstant(const Extent& extent) {
  return std::all_of(extent.dims.begin(), extent.dims.begin() + extent.rank,
                     [](const Dim& dim) { return dim.is_constant(); });
}

// Whether the elements of a part of `all` are contiguous; `apart`: rows have a pitch.
bool IsContiguous(const Region& part, const Region& all, bool apart) {
  const auto length = [](const Region& r, size_t d) { return r.hi[d] - r.lo[d]; };
  const bool whole_rows = length(part, 2) == length(all, 2) && !apart, whole_slices = length(part, 1) == length(all, 1);
  if (length(part, 0) == 1) return length(part, 1) == 1 || whole_rows;
  return whole_rows && whole_slices;
}

class SpanCheck {
 public:
  SpanCheck(Draft& draft, const NodeDecl& node, std::span<const BoxRef> accesses)
      : d_(draft), node_(node), accesses_(accesses) {}

  // Launch checks those that depend on parameters.
  void Run() {
    for (size_t a = 0; a < node_.args.size(); ++a) {
      if (node_.args[a].form != ArgDecl::Form::kSpan) continue;
      const BoxRef& ref = accesses_[node_.args[a].index];
      if (ref.base < 0 || ref.box < 0 || !ref.exact) continue;
      const BufferDecl& buffer = d_.model.buffers[ref.base];
      const bool pitched = buffer.pitch != 0 && d_.buffer_bytes[ref.base] > 0;
      if ((ref.box == 0 && !pitched) || !IsConstant(buffer.extent)) continue;
      const Region all = AllOf(buffer);
      const Region part = ref.box == 0 ? all : d_.boxes.tree(ref.base)->box(ref.box);
      if (IsEmpty(part) || IsContiguous(part, all, pitched && buffer.pitch > Width(buffer))) continue;
      Tell(a, buffer, part);
    }
  }

 private:
  static int64_t Width(const BufferDecl& buffer) {
    return buffer.extent.dims[static_cast<size_t>(buffer.extent.rank) - 1].value;
  }
  // In bytes in the last dimension, as the regions of trees are.
  static Region AllOf(const BufferDecl& buffer) {
    Region all{{0, 0, 0}, {1, 1, 1}};
    const auto rank = static_cast<size_t>(buffer.extent.rank);
    for (size_t i = 0; i < rank; ++i) all.hi[kMaxRank - rank + i] = buffer.extent.dims[i].value;
    all.hi[kMaxRank - 1] *= buffer.type.size;
    return all;
  }

  void Tell(size_t arg, const BufferDecl& buffer, const Region& part) {
    d_.AddMistake(kInvalid, Prefix(d_.model, "node", node_.name) + ": argument " + std::to_string(arg) +
                                " is a span of " + SliceText(buffer, part) + " of " + Quoted(buffer.name) +
                                ", whose rows do not lie side by side; a span has no pitch; take a View, or slice "
                                "whole rows");
  }

  Draft& d_;
  const NodeDecl& node_;
  const std::span<const BoxRef> accesses_;
};

void CheckSpans(Draft& draft) {
  if (!draft.boxes.any_tree() && !draft.any_pitch) return;
  for (size_t n = 0; n < draft.model.nodes.size(); ++n) {
    const NodeDecl& node = draft.model.nodes[n];
    if (node.kind == NodeKind::kHost) SpanCheck(draft, node, draft.boxes[static_cast<int32_t>(n)]).Run();
  }
}

}  // namespace

// Checks Copy nodes within one buffer, whose source and destination may overlap.
void CheckCopies(Draft& draft) {
  for (size_t n = 0; n < draft.nodes.size(); ++n) {
    if (draft.nodes[n].kind != NodeKind::kCopy) continue;
    const std::span<const BoxRef> accesses = draft.boxes[static_cast<int32_t>(n)];
    if (accesses.size() != 2) continue;
    const BoxRef &a = accesses[0], &b = accesses[1];
    if (a.mode == b.mode || a.base < 0 || a.base != b.base || a.box < 0 || b.box < 0) continue;
    if (a.buffer == b.buffer && !a.part && !b.part) continue;  // reported by Validate
    const BoxTree* tree = draft.boxes.tree(a.base);
    if (tree != nullptr && !Overlap(tree->box(a.box), tree->box(b.box))) continue;
    const bool known = a.exact && b.exact;
    draft.AddMistake(kInvalid, Prefix(draft.model, "node", draft.model.nodes[n].name) + ": copies " +
                                   Quoted(draft.buffer_name(a.base)) + " to itself, " +
                                   (known ? "and both boxes hold the same elements; "
                                          : "and parameters may make both boxes hold the same elements; ") +
                                   "copy to another buffer, or between boxes that cannot meet");
  }
}

void CheckData(Draft& draft) {
  CheckCopies(draft);
  CheckInputsAreOnlyRead(draft);
  DataCheck(draft).Run();
  CheckSpans(draft);
}

}  // namespace penstock::graph
