// EliminateCopies drops Copy nodes whose absence does not affect any result.
//
//   dropped    its target lives inside the run, and no later node reads it before it is written as a whole
//   copy_from  it copies from a device to host memory what came from host memory, and neither has been written since:
//              it copies from there, and the way up and down is dropped if nothing else needs it
//
// This works on whole buffers: if a part is read, all copies to its buffer stay. A dropped node still connects its
// predecessors and successors in the declared order (InstanceEdges).
#include <algorithm>
#include <string>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

// The accesses of a Copy node, in whichever order they were declared.
struct Ends {
  const BoxRef &from, &to;
};

class CopyFinder {
 public:
  explicit CopyFinder(const Records& records, const Checked& checked, Placed& placed, Findings& findings)
      : records_(records),
        checked_(checked),
        placed_(placed),
        findings_(findings),
        written_(records.buffers.size()),
        twin_(records.buffers.size()) {}

  void Run() {
    for (const DeclId n : checked_.sequence) Follow(n);
    needed_.resize(records_.buffers.size());
    for (const BufferId b : needed_.ids()) needed_[b] = records_.buffers[b].role != BufferRole::kInternal;
    for (size_t i = checked_.sequence.size(); i > 0; --i) DropIfUnread(checked_.sequence[i - 1]);
  }

 private:
  // The buffer whose contents this one has, if neither has been written since.
  struct Twin {
    BufferId of{};
    int32_t written = 0, of_written = 0;  // the write counts at that time
  };

  bool IsCopy(DeclId n) const { return records_.nodes[n].kind == NodeKind::kCopy; }
  Ends EndsOf(DeclId n) const {
    const std::span<const BoxRef> accesses = records_.boxes[n];
    const bool reads_first = accesses[0].mode == AccessMode::kRead;
    return {accesses[reads_first ? 0 : 1], accesses[reads_first ? 1 : 0]};
  }
  int32_t& written(BufferId b) { return written_[b]; }
  bool IsOnHost(BufferId b) const {
    const BufferFacts& facts = records_.buffers[b];
    return facts.where != Where::kDevice;
  }

  // Forward pass: what each Copy node may copy from.
  void Follow(DeclId n) {
    Twin twin;
    BufferId target;
    if (IsCopy(n)) {
      const auto [from, to] = EndsOf(n);
      const BufferId source = SourceOf(from.base);
      if (from.whole() && to.whole() && source != to.base) {
        if (source != from.base && !IsOnHost(from.base) && IsOnHost(to.base)) Redirect(n, source);
        twin = {source, written(to.base) + 1, written(source)};
        target = to.base;
      }
    }
    for (const BoxRef& ref : records_.boxes[n]) {
      if (ref.mode != AccessMode::kRead) ++written(ref.base);
    }
    if (target >= 0) twin_[target] = twin;
  }

  // A buffer in host memory with the same contents, or `b` itself.
  BufferId SourceOf(BufferId b) {
    const Twin& twin = twin_[b];
    const bool holds = twin.of >= 0 && twin.written == written(b) && twin.of_written == written(twin.of);
    return holds && IsOnHost(twin.of) ? twin.of : b;
  }

  void Redirect(DeclId n, BufferId source) {
    if (placed_.copy_from.empty()) placed_.copy_from.resize(records_.nodes.size());
    placed_.copy_from[n] = source;
    Remark(source, "'" + NameOf(n) + "' copies it on the host; no node writes it on the way through '" +
                       std::string(records_.buffer_names[EndsOf(n).from.base]) + "'");
  }

  // Backward pass: whether the result of a node's copy is needed.
  void DropIfUnread(DeclId n) {
    if (IsCopy(n) && !needed_[EndsOf(n).to.base]) return Drop(n);
    for (const BoxRef& ref : records_.boxes[n]) {
      if (ref.mode == AccessMode::kWrite && ref.whole()) needed_[ref.base] = false;
    }
    const BufferId other = placed_.CopyFrom(n);
    for (const BoxRef& ref : records_.boxes[n]) {
      if (Reads(ref.mode)) needed_[other < 0 ? BufferId(ref.base) : other] = true;
    }
  }

  void Drop(DeclId n) {
    if (placed_.dropped.empty()) placed_.dropped.resize(records_.nodes.size());
    placed_.dropped[n] = true;
    Remark(EndsOf(n).to.base, "'" + NameOf(n) + "' is not made; no node reads what it copies");
  }

  std::string NameOf(DeclId n) const { return std::string(records_.node_names[n]); }
  void Remark(BufferId b, const std::string& text) {
    findings_.remarks.push_back(std::string(records_.buffer_names[b]) + ": " + text);
  }

  const Records& records_;
  const Checked& checked_;
  Placed& placed_;
  Findings& findings_;
  Table<BufferId, int32_t> written_;  // for each buffer: how often it has been written
  Table<BufferId, Twin> twin_;  // for each buffer
  Table<BufferId, bool> needed_;  // for each buffer: whether its contents are read later
};

}  // namespace

void EliminateCopies(const Records& records, const Checked& checked, Placed& placed, Findings& findings) {
  const auto copies = [](const NodeFacts& node) { return node.kind == NodeKind::kCopy; };
  if (std::any_of(records.nodes.begin(), records.nodes.end(), copies))
    CopyFinder(records, checked, placed, findings).Run();
}

}  // namespace penstock::graph
