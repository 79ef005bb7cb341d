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
  explicit Written(const BoxTree& tree) : tree_(tree), live_(tree.NoneLive()), has_(tree.size()) {}

  void Add(int32_t box) {
    if (!has_[box]) tree_.SetLive(live_, box, true);
    has_[box] = true;
  }
  // What the box held is gone.
  void Remove(int32_t box) {
    const Region& gone = tree_.box(box);
    std::vector<Region> left;
    for (const Region& rest : rests_) Keep(rest, gone, left);
    FindOverlaps(box);
    for (const int32_t f : found_) {
      tree_.SetLive(live_, f, false);
      has_[f] = false;
      Keep(tree_.box(f), gone, left);
    }
    rests_ = std::move(left);
  }
  bool AnyOverlaps(int32_t box) {
    FindOverlaps(box);
    return !found_.empty() ||
           std::any_of(rests_.begin(), rests_.end(), [&](const Region& rest) { return Overlap(rest, tree_.box(box)); });
  }
  // An unwritten part of the box; empty if all is written, which is then remembered.
  Region Missing(int32_t box) {
    if (has_[box]) return {};
    std::vector<Region> boxes = rests_;
    FindOverlaps(box);
    for (const int32_t f : found_) boxes.push_back(tree_.box(f));
    const Region missing = Uncovered(tree_.box(box), std::move(boxes));
    if (IsEmpty(missing)) Add(box);
    return missing;
  }

 private:
  void FindOverlaps(int32_t box) {
    found_.clear();
    tree_.Find(live_, tree_.box(box), found_);
  }
  static void Keep(const Region& written, const Region& gone, std::vector<Region>& left) {
    if (Overlap(written, gone)) return Subtract(written, gone, left);
    left.push_back(written);
  }

  const BoxTree& tree_;
  BoxTree::Live live_;
  std::vector<bool> has_;
  std::vector<Region> rests_;  // of boxes of which a part is gone
  std::vector<int32_t> found_;
};

using PartsId = Id<struct PartsTag>;

class DataCheck {
 public:
  explicit DataCheck(const Records& records, Checked& checked, Findings& findings)
      : records_(records),
        checked_(checked),
        findings_(findings),
        seen_(records.buffers.size()),
        preserved_(seen_.size()),
        part_of_(seen_.size()) {
    for (const BufferId b : records_.buffers.ids()) {
      const BufferRole role = records_.buffers[b].role;
      if (role != BufferRole::kOutput && role != BufferRole::kInternal) seen_[b] = kWritten;
      const BoxTree* tree = records_.boxes.tree(b);
      if (tree == nullptr || seen_[b] != 0) continue;
      part_of_[b] = parts_.next();
      parts_.emplace_back(*tree);
    }
  }

  // Data edges agree with the order of the sequence, so data appears in that order.
  void Run() {
    std::vector<DeclId> order = checked_.sequence;
    if (order.size() < records_.nodes.size()) {  // there is a cycle
      order.resize(records_.nodes.size());
      std::iota(order.begin(), order.end(), 0);
    }
    for (const DeclId n : order) {
      const std::span<const BoxRef> accesses = records_.boxes[n];
      for (const BoxRef& ref : accesses) {
        if (!Reads(ref.mode) || !TouchesAny(ref)) continue;
        if ((seen_[ref.base] & (kWritten | kReported)) == 0) CheckRead(n, ref);
      }
      for (const BoxRef& ref : accesses) {
        if (ref.mode == AccessMode::kRead || !TouchesAny(ref)) continue;
        if (ref.mode == AccessMode::kScratch) {
          Forget(ref);
        } else {
          AddWrite(ref);
        }
      }
    }
    CheckOutputs();
  }

 private:
  static bool TouchesAny(const BoxRef& ref) { return ref.base >= 0 && ref.box >= 0; }
  Written* parts(BufferId b) {
    const PartsId index = part_of_[b];
    return index < 0 ? nullptr : &parts_[index];
  }

  void CheckRead(DeclId n, const BoxRef& ref) {
    Written* const parts = this->parts(ref.base);
    if (parts == nullptr) return ReportRead(n, ref, {}, {});
    const Region& read = records_.boxes.tree(ref.base)->box(ref.box);
    const Region gap = ref.exact ? parts->Missing(ref.box) : parts->AnyOverlaps(ref.box) ? Region{} : read;
    if (!IsEmpty(gap)) ReportRead(n, ref, read, gap);
  }

  // Nothing has written the part `gap` of what is read.
  void ReportRead(DeclId n, const BoxRef& ref, const Region& read, const Region& gap) {
    const BufferDecl& buffer = records_.model.buffers[ref.base];
    const std::string what = (ref.box != 0 ? SliceText(buffer, read) + " of " : "") + Quoted(buffer.name);
    const std::string missing = gap != read ? SliceText(buffer, gap) + " of it" : "it";
    seen_[ref.base] |= kReported;
    findings_.AddMistake(kInvalid,
                         Prefix(records_.model, "node", records_.model.nodes[n].name) + ": reads " + what +
                             " before any node has written " + missing +
                             "; its contents would be undefined; write it first, say Write where this node writes "
                             "all of it or WriteSome where it only writes some of it, or declare it with Input or "
                             "InOut");
  }

  // A box that depends on parameters may be elsewhere in a run, so what was written may still be there.
  void Forget(const BoxRef& ref) {
    if (!ref.exact) return;
    if (Written* parts = this->parts(ref.base)) {
      parts->Remove(ref.box);
    } else {
      seen_[ref.base] &= ~kWritten;
    }
  }

  void AddWrite(const BoxRef& ref) {
    const BufferId b = ref.base;
    if (!ref.exact) seen_[b] |= kPerhaps;
    if (ref.mode == AccessMode::kWriteSome) {
      preserved_[b] = preserved_[b] || !IsWritten(ref);
    } else if (ref.whole()) {
      seen_[b] |= kWholly;
    }
    if (Written* parts = this->parts(ref.base)) {
      parts->Add(ref.box);
    } else {
      seen_[b] |= kWritten;
    }
  }

  // Whether nodes before this one have surely written all of the box.
  bool IsWritten(const BoxRef& ref) {
    if ((seen_[ref.base] & kPerhaps) != 0) return false;
    Written* parts = this->parts(ref.base);
    return parts == nullptr ? (seen_[ref.base] & kWritten) != 0 : IsEmpty(parts->Missing(ref.box));
  }

  void CheckOutputs() {
    checked_.partial_output.assign(seen_.size(), false);
    for (const BufferId b : records_.buffers.ids()) {
      if (records_.buffers[b].role != BufferRole::kOutput || (seen_[b] & kReported) != 0) continue;
      Written* parts = this->parts(b);
      if (parts != nullptr ? parts->AnyOverlaps(0) : (seen_[b] & kWritten) != 0) {
        if (records_.buffers[b].is_counted) continue;  // what is not written is unspecified
        checked_.partial_output[b] = preserved_[b] || (seen_[b] & kWholly) == 0;
        partial_ = partial_ || checked_.partial_output[b];
        continue;
      }
      findings_.AddMistake(kInvalid,
                           Prefix(records_.model, "buffer", records_.model.buffers[b].name) +
                               ": an Output that no node writes; its memory would come back untouched; write it or "
                               "remove it");
    }
    if (partial_) CheckTiles();
  }

  // Outputs written in parts may still be written completely.
  void CheckTiles() {
    Table<BufferId, std::vector<Region>> tiles(seen_.size());
    for (const DeclId n : records_.nodes.ids()) {
      for (const BoxRef& ref : records_.boxes[n]) {
        const BufferId b = ref.base;
        if (!TouchesAny(ref) || !checked_.partial_output[b] || preserved_[b] || !ref.exact) continue;
        if (ref.mode == AccessMode::kRead || ref.mode == AccessMode::kWriteSome) continue;
        tiles[b].push_back(records_.boxes.tree(ref.base)->box(ref.box));
      }
    }
    for (const BufferId b : tiles.ids()) {
      if (!checked_.partial_output[b] || tiles[b].empty()) continue;
      const Region& all = records_.boxes.tree(b)->box(0);
      checked_.partial_output[b] = !IsEmpty(Uncovered(all, std::move(tiles[b])));
    }
  }

  // kPerhaps: some of what counts as written depends on parameters.
  enum Seen : uint8_t { kWritten = 1, kWholly = 2, kReported = 4, kPerhaps = 8 };

  const Records& records_;
  Checked& checked_;
  Findings& findings_;
  Table<BufferId, uint8_t> seen_;     // for each buffer
  // For each buffer: whether a node that writes some elements may be the first to write them. What it leaves keeps the
  // contents of an Output.
  Table<BufferId, bool> preserved_;
  Table<BufferId, PartsId> part_of_;  // for buffers accessed in parts
  Table<PartsId, Written> parts_;
  bool partial_ = false;
};

// Whether two accesses of one node have an element in common.
bool Meet(const Records& records, const BoxRef& a, const BoxRef& b) {
  if (a.base < 0 || a.base != b.base || a.box < 0 || b.box < 0) return false;
  const BoxTree* tree = records.boxes.tree(a.base);
  return tree == nullptr || Overlap(tree->box(a.box), tree->box(b.box));
}

class ScratchCheck {
 public:
  ScratchCheck(const Records& records, Findings& findings) : records_(records), findings_(findings) {}

  void Run() {
    for (const DeclId n : records_.model.nodes.ids()) {
      for (const BoxRef& ref : records_.boxes[n]) {
        if (ref.mode == AccessMode::kScratch && ref.base >= 0) Check(n, ref);
      }
    }
  }

 private:
  void Check(DeclId n, const BoxRef& ref) {
    const BufferRole role = records_.buffers[ref.base].role;
    if (role == BufferRole::kInput || role == BufferRole::kParam) return;  // reported as written
    if (role != BufferRole::kInternal) {
      return Add(n, ref, "whose contents outlive the run; scratch leaves none; name a Buffer");
    }
    for (const BoxRef& other : records_.boxes[n]) {
      if (other.mode == AccessMode::kScratch || !Meet(records_, ref, other)) continue;
      return Add(n, ref,
                 "and accesses the same elements otherwise; scratch has no contents before or after the node; "
                 "name another Buffer, or say ReadWrite");
    }
  }

  void Add(DeclId n, const BoxRef& ref, const std::string& why) {
    findings_.AddMistake(kInvalid, Prefix(records_.model, "node", records_.model.nodes[n].name) + ": uses " +
                                       Quoted(records_.buffer_name(ref.base)) + " as scratch, " + why);
  }

  const Records& records_;
  Findings& findings_;
};

void CheckInputsAreOnlyRead(const Records& records, Findings& findings) {
  for (const DeclId n : records.model.nodes.ids()) {
    for (const BoxRef& ref : records.boxes[n]) {
      if (ref.mode == AccessMode::kRead || ref.base < 0) continue;
      const BufferRole role = records.buffers[ref.base].role;
      if (role != BufferRole::kInput && role != BufferRole::kParam) continue;
      findings.AddMistake(
          kInvalid,
          Prefix(records.model, "node", records.model.nodes[n].name) + ": writes " +
              Quoted(records.buffer_name(ref.base)) +
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
  SpanCheck(const Records& records, Findings& findings, const NodeDecl& node, std::span<const BoxRef> accesses)
      : records_(records), findings_(findings), node_(node), accesses_(accesses) {}

  // Launch checks those that depend on parameters.
  void Run() {
    for (size_t a = 0; a < node_.args.size(); ++a) {
      if (node_.args[a].form != ArgDecl::Form::kSpan) continue;
      const BoxRef& ref = accesses_[node_.args[a].index];
      if (ref.base < 0 || ref.box < 0 || !ref.exact) continue;
      const BufferDecl& buffer = records_.model.buffers[ref.base];
      const bool pitched = buffer.pitch != 0 && records_.buffer_bytes[ref.base] > 0;
      if ((ref.box == 0 && !pitched) || !IsConstant(buffer.extent)) continue;
      const Region all = AllOf(buffer);
      const Region part = ref.box == 0 ? all : records_.boxes.tree(ref.base)->box(ref.box);
      if (IsEmpty(part) || IsContiguous(part, all, pitched && buffer.pitch > Width(buffer))) continue;
      Report(a, buffer, part);
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

  void Report(size_t arg, const BufferDecl& buffer, const Region& part) {
    findings_.AddMistake(kInvalid, Prefix(records_.model, "node", node_.name) + ": argument " + std::to_string(arg) +
                                       " is a span of " + SliceText(buffer, part) + " of " + Quoted(buffer.name) +
                                       ", whose rows are not contiguous; a span has no pitch; take a View, or slice "
                                       "whole rows");
  }

  const Records& records_;
  Findings& findings_;
  const NodeDecl& node_;
  const std::span<const BoxRef> accesses_;
};

void CheckSpans(const Records& records, Findings& findings) {
  if (!records.boxes.any_tree() && !records.any_pitch) return;
  for (const DeclId n : records.model.nodes.ids()) {
    const NodeDecl& node = records.model.nodes[n];
    if (node.kind == NodeKind::kHost) SpanCheck(records, findings, node, records.boxes[n]).Run();
  }
}

}  // namespace

// Checks Copy nodes within one buffer, whose source and destination may overlap.
void CheckCopies(const Records& records, Findings& findings) {
  for (const DeclId n : records.nodes.ids()) {
    if (records.nodes[n].kind != NodeKind::kCopy) continue;
    const std::span<const BoxRef> accesses = records.boxes[n];
    if (accesses.size() != 2) continue;
    const BoxRef &a = accesses[0], &b = accesses[1];
    if (a.mode == b.mode || a.base < 0 || a.base != b.base || a.box < 0 || b.box < 0) continue;
    if (a.buffer == b.buffer && !a.part && !b.part) continue;  // reported by Validate
    if (!Meet(records, a, b)) continue;
    const bool known = a.exact && b.exact;
    findings.AddMistake(kInvalid, Prefix(records.model, "node", records.model.nodes[n].name) + ": copies " +
                                      Quoted(records.buffer_name(a.base)) + " to itself, " +
                                      (known ? "and both boxes hold the same elements; "
                                             : "and parameters may make both boxes hold the same elements; ") +
                                      "copy to another buffer, or between boxes that cannot overlap");
  }
}

void CheckData(const Records& records, Checked& checked, Findings& findings) {
  CheckCopies(records, findings);
  CheckInputsAreOnlyRead(records, findings);
  ScratchCheck(records, findings).Run();
  DataCheck(records, checked, findings).Run();
  CheckSpans(records, findings);
}

}  // namespace penstock::graph
