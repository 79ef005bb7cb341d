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
  explicit CopyFinder(Draft& draft) : d_(draft), written_(draft.buffers.size()), alias_(draft.buffers.size()) {}

  void Run() {
    for (const int32_t n : d_.sequence) Follow(n);
    needed_.resize(d_.buffers.size());
    for (size_t b = 0; b < needed_.size(); ++b) needed_[b] = d_.buffers[b].role != BufferRole::kInternal;
    for (size_t i = d_.sequence.size(); i > 0; --i) Judge(d_.sequence[i - 1]);
  }

 private:
  // The buffer whose contents this one has, if neither has been written since.
  struct Twin {
    int32_t of = -1;
    int32_t written = 0, of_written = 0;  // the write counts at that time
  };

  bool IsCopy(int32_t n) const { return d_.nodes[n].kind == NodeKind::kCopy; }
  Ends EndsOf(int32_t n) const {
    const std::span<const BoxRef> accesses = d_.boxes[n];
    const bool reads_first = accesses[0].mode == AccessMode::kRead;
    return {accesses[reads_first ? 0 : 1], accesses[reads_first ? 1 : 0]};
  }
  int32_t& written(int32_t b) { return written_[b]; }
  bool IsOnHost(int32_t b) const {
    const BufferFacts& facts = d_.buffers[b];
    return facts.where != Where::kDevice;
  }

  // Forward pass: what each Copy node may copy from.
  void Follow(int32_t n) {
    Twin fallback;
    int32_t target = -1;
    if (IsCopy(n)) {
      const auto [from, to] = EndsOf(n);
      const int32_t source = SourceOf(from.base);
      if (from.whole() && to.whole() && source != to.base) {
        if (source != from.base && !IsOnHost(from.base) && IsOnHost(to.base)) Redirect(n, source);
        fallback = {source, written(to.base) + 1, written(source)};
        target = to.base;
      }
    }
    for (const BoxRef& ref : d_.boxes[n]) {
      if (ref.mode != AccessMode::kRead) ++written(ref.base);
    }
    if (target >= 0) alias_[target] = fallback;
  }

  // A buffer in host memory with the same contents, or `b` itself.
  int32_t SourceOf(int32_t b) {
    const Twin& fallback = alias_[b];
    const bool holds =
        fallback.of >= 0 && fallback.written == written(b) && fallback.of_written == written(fallback.of);
    return holds && IsOnHost(fallback.of) ? fallback.of : b;
  }

  void Redirect(int32_t n, int32_t source) {
    if (d_.copy_from.empty()) d_.copy_from.resize(d_.nodes.size(), -1);
    d_.copy_from[n] = source;
    Note(source, "'" + NameOf(n) + "' copies it on the host; nobody writes it on the way through '" +
                     std::string(d_.buffer_names[EndsOf(n).from.base]) + "'");
  }

  // Backward pass: whether the result of a node's copy is needed.
  void Judge(int32_t n) {
    if (IsCopy(n) && !needed_[EndsOf(n).to.base]) return Drop(n);
    for (const BoxRef& ref : d_.boxes[n]) {
      if (ref.mode == AccessMode::kWrite && ref.whole()) needed_[ref.base] = false;
    }
    const int32_t other = d_.CopyFrom(n);
    for (const BoxRef& ref : d_.boxes[n]) {
      if (ref.mode != AccessMode::kWrite) needed_[other < 0 ? ref.base : other] = true;
    }
  }

  void Drop(int32_t n) {
    if (d_.dropped.empty()) d_.dropped.resize(d_.nodes.size());
    d_.dropped[n] = true;
    Note(EndsOf(n).to.base, "'" + NameOf(n) + "' is not made; nobody reads what it copies");
  }

  std::string NameOf(int32_t n) const { return std::string(d_.node_names[n]); }
  void Note(int32_t b, const std::string& text) { d_.notes.push_back(std::string(d_.buffer_names[b]) + ": " + text); }

  Draft& d_;
  std::vector<int32_t> written_;  // for each buffer: how often it has been written
  std::vector<Twin> alias_;  // for each buffer
  std::vector<bool> needed_;  // for each buffer: whether its contents are read later
};

}  // namespace

void EliminateCopies(Draft& draft) {
  const auto copies = [](const NodeFacts& node) { return node.kind == NodeKind::kCopy; };
  if (std::any_of(draft.nodes.begin(), draft.nodes.end(), copies)) CopyFinder(draft).Run();
}

}  // namespace penstock::graph
