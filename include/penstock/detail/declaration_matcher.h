// DeclarationMatcher: compares a graph that is declared again with an earlier declaration, record by
// record and in place.
//
// Graph and NodeRef call it, instead of a DeclarationRecorder, when a GraphCache (graph_cache.h) calls the declaring
// function. Nothing is built or allocated: each declaration is compared with the next record, and after the first
// difference the rest is ignored. Values are not part of the structure: plain arguments, functors, fill patterns and
// callables are stored where the next run finds them.
//
// Ownership: borrows the model and the places.
// Threads:   single-threaded.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/detail/arguments.h"
#include "penstock/detail/formula.h"
#include "penstock/detail/model.h"
#include "penstock/detail/replaceable.h"
#include "penstock/export.h"

namespace penstock::detail {

class PENSTOCK_EXPORT DeclarationMatcher {
 public:
  // Where to store a node's values; null: do not store them.
  struct Place {
    std::byte* values = nullptr;  // its argument block, or a fill's pattern
    Replaceable* callable = nullptr;
    Replaceable* fallback = nullptr;
  };
  // A node whose values changed; `callable`: a callable has been replaced, because its bytes differ or
  // cannot be compared.
  struct Change {
    int32_t node;
    bool callable;
  };

  explicit DeclarationMatcher(const Model& model);

  // Starts over. `places`: one per node, or none to compare without storing anything.
  void Begin(std::span<const Place> places);
  // Whether everything declared before has been declared again, and nothing else.
  bool Matches() const;
  // The changes since Begin, whatever the result of the comparison.
  std::span<const Change> changes() const { return changes_; }

  // The index of the declared object; -1 if it differs.
  int32_t Param(const ParamDecl& decl);
  int32_t Buffer(const BufferDecl& decl);
  int32_t State(const std::shared_ptr<const StateRecord>& state);
  template <class Describe>
  PENSTOCK_HIDDEN int32_t Node(const Name& name, NodeKind kind, Describe& describe);

  // Options of node `node`: one that is set, or the next of a list.
  template <class T>
  PENSTOCK_HIDDEN void Set(int32_t node, T NodeOptions::* option, T value) {
    if (!Has(node)) return;
    const NodeOptions& declared = Of(node);
    NodeOptions& said = SaidOf(node).options;
    const bool was = said == declared;
    said.*option = value;
    missing_ += static_cast<int64_t>(was) - static_cast<int64_t>(said == declared);
  }
  template <class T>
  PENSTOCK_HIDDEN void Add(int32_t node, std::vector<T> NodeDecl::* list, const T& item) {
    if (!Has(node)) return;
    const std::vector<T>& declared = Of(node).*list;
    const size_t at = CountOf(SaidOf(node), item)++;
    if (Match(at < declared.size() && declared[at] == item)) --missing_;
  }
  template <class F>
  PENSTOCK_HIDDEN void HostFallback(int32_t node, F& f, absl::Status (*call)(void*, void* const*)) {
    if (!Has(node)) return;
    const auto i = static_cast<size_t>(node);
    const auto declared = model_.nodes[i].code.call_fallback;
    auto& said = SaidOf(node).call_fallback;
    const bool was = said == declared, is = call == declared;
    said = call;
    missing_ += static_cast<int64_t>(was) - static_cast<int64_t>(is);
    if (!is || places_.empty() || places_[i].fallback == nullptr) return;
    if (places_[i].fallback->Replace(f)) Changed(node, true);
  }
  // The graph is, which must have been declared as well.
  void Deterministic() { deterministic_ = true; }
  // A mistake equals nothing that was declared.
  template <class Text>
  PENSTOCK_HIDDEN void Refuse(const Text&) {
    same_ = false;
  }

  class MatchedNode;

 private:
  // The code pointer that identifies the types a node was instantiated for; null for a Copy, Fill or Kernel.
  static const void* CodeOf(const NodeCode& code) {
    return code.range != nullptr ? reinterpret_cast<const void*>(code.range) : reinterpret_cast<const void*>(code.call);
  }

  // The compared parts of a node, its accesses and its arguments, kept compact: a program that does much work between
  // steps finds none of this in its near caches. Rarely needed data stays in the model.
  struct NodeRecord {
    const char* name;
    const void *code, *kernel;  // CodeOf, and NodeCode::cuda_self
    int64_t width;  // an extent of one constant dimension, else -1; of a fill: its pattern's bytes
    uint32_t name_size, first_access, first_arg;
    uint16_t accesses, args;
    NodeKind kind;
  };
  struct AccessRecord {
    int32_t buffer;
    AccessMode mode;
    bool unordered, uncopied, whole;
  };
  struct ArgRecord {
    uint32_t offset, size;
    int32_t index;
    ArgDecl::Form form;
  };
  // What has been said about a node since it was declared in the step with this number.
  struct Said {
    uint64_t step = 0;
    NodeOptions options{};
    uint32_t after = 0, in_place = 0;  // counts
    absl::Status (*call_fallback)(void*, void* const*) = nullptr;
  };

  const NodeRecord* Next(const Name& name, NodeKind kind) {
    if (!same_ || node_ == nodes_.size()) return Other();
    const NodeRecord& node = nodes_[node_];
    const std::string_view text = name.view();
    const bool is = node.kind == kind && node.name_size == text.size() &&
                    (node.name == text.data() || std::memcmp(node.name, text.data(), text.size()) == 0);
    if (!is) return Other();
    ++node_;
    return &node;
  }
  const NodeRecord* Other() {
    same_ = false;
    return nullptr;
  }
  bool Match(bool same) { return same_ = same_ && same; }
  int32_t Last() const { return same_ ? static_cast<int32_t>(node_) - 1 : -1; }
  bool Has(int32_t node) const { return same_ && node >= 0; }
  const NodeDecl& Of(int32_t node) const { return model_.nodes[node]; }
  Said& SaidOf(int32_t node) {
    Said& said = said_[node];
    if (said.step != step_) said = {.step = step_};
    return said;
  }
  static uint32_t& CountOf(Said& said, DeclId) { return said.after; }
  static uint32_t& CountOf(Said& said, const InPlaceDecl&) { return said.in_place; }
  void Changed(int32_t node, bool callable) {
    if (!changes_.empty() && changes_.back().node == node) changes_.back().callable |= callable;
    else changes_.push_back({node, callable});
  }

  // The first use of a State declares the buffer that stands for it.
  bool IsState(int32_t buffer, const StateRecord* state) {
    const auto b = static_cast<size_t>(buffer);
    if (b > buffer_ || b >= model_.buffers.size() || model_.buffers[b].state.get() != state) return false;
    if (b == buffer_) ++buffer_;
    return true;
  }
  // The first use of a parameter on the device does the same.
  bool IsValueOf(int32_t buffer, uint32_t graph, int32_t param) {
    const auto b = static_cast<size_t>(buffer);
    if (b > buffer_ || b >= model_.buffers.size() || graph != model_.serial) return false;
    if (model_.buffers[b].role != BufferRole::kParam || model_.buffers[b].param != param) return false;
    if (b == buffer_) ++buffer_;
    return true;
  }
  const Model& model_;
  std::vector<NodeRecord> nodes_;
  std::vector<AccessRecord> accesses_;
  std::vector<ArgRecord> args_;
  Table<DeclId, Said> said_;
  std::vector<Change> changes_;

  std::span<const Place> places_;
  size_t param_ = 0, buffer_ = 0, node_ = 0;  // the next index of each kind
  int64_t all_ = 0;  // options that the nodes have
  int64_t missing_ = 0;  // those of them that have not been said as they were
  uint64_t step_ = 0;
  bool same_ = false;
  bool deterministic_ = false;  // that has been said
};

// A node that is being declared again: each call compares a part of it, in the order in which they are made.
class PENSTOCK_EXPORT DeclarationMatcher::MatchedNode {
 public:
  MatchedNode(DeclarationMatcher& matcher, const NodeRecord& was)
      : matcher_(matcher),
        was_(was),
        index_(matcher.node_ - 1),
        access_(was.first_access),
        values_(matcher.places_.empty() ? nullptr : matcher.places_[index_].values) {}

  void Code(const NodeCode& code) {
    Match(was_.code == CodeOf(code) && (was_.kernel == code.cuda_self || IsSameSource(code)));
  }
  void Over(const Extent& extent, int) { Match(IsSameExtent(extent)); }
  void Level(int, bool, bool) {}  // it follows from the name and the extent
  void Tiles(int, int) {}  // it follows from the code
  void RoomForViews(int64_t) {}  // it follows from the number of Views
  void Shape(const KernelShape& shape) { Match(decl().shape == shape); }
  template <class T, AccessMode M>
  PENSTOCK_HIDDEN void Access(const AccessOf<T, M>& access) {
    MatchAccess(access.buffer.index(), access.buffer.graph(), access, M);
  }
  template <class T>
  PENSTOCK_HIDDEN void Pattern(const T& value) {
    if (Match(was_.width == int64_t{sizeof(T)})) SetValue(0, value);
  }
  template <class... Stored, class... A>
  PENSTOCK_HIDDEN void Arguments(const A&... args) {
    const size_t views = (size_t{0} + ... + ViewsIn(args));
    if (!Match(was_.accesses == kAccesses<A...> + views && was_.args == sizeof...(A) + views)) return;
    const ArgRecord* was = matcher_.args_.data() + was_.first_arg;
    (Argument<Stored>(*was++, args), ...);
  }
  template <class F, class... Stored>
  PENSTOCK_HIDDEN void Spans() {}  // they follow from the code
  // All of a Map; numbers of its formula are not values of a run, but code.
  void Map(const FlatMap& map);
  // Takes over a functor unless the slot has one that captured the same.
  template <class F>
  PENSTOCK_HIDDEN void Functor(F& f) {
    if (!matcher_.same_ || values_ == nullptr) return;
    std::byte* const at = values_ + matcher_.args_[was_.first_arg + 1].offset;
    Replaceable& kept = *matcher_.places_[index_].callable;
    if (kept.object() != nullptr && IsSameApartFromData(at, f)) return;
    std::memcpy(at, static_cast<const void*>(&f), sizeof(F));
    kept.Replace(f);
    Changed(false);
  }
  template <class F>
  PENSTOCK_HIDDEN void Callable(F& f) {
    if (!matcher_.same_ || matcher_.places_.empty()) return;
    Replaceable* const callable = matcher_.places_[index_].callable;
    if (callable != nullptr && callable->Replace(f)) Changed(true);
  }

 private:
  bool Match(bool same) { return matcher_.Match(same); }
  // `access`: its box, State and marks.
  template <class A>
  PENSTOCK_HIDDEN void MatchAccess(int32_t buffer, uint32_t graph, const A& access, AccessMode mode) {
    const AccessRecord& was = matcher_.accesses_[access_++];
    const bool is = access.state != nullptr ? matcher_.IsState(was.buffer, access.state.get())
                                            : was.buffer == buffer && matcher_.model_.serial == graph;
    Match(is && was.mode == mode && was.unordered == access.unordered && was.uncopied == access.uncopied &&
          was.whole == access.box.whole && (was.whole || IsSameBox(access.box)));
  }
  void Changed(bool callable) { matcher_.Changed(static_cast<int32_t>(index_), callable); }
  const NodeDecl& decl() const { return matcher_.model_.nodes[index_]; }
  template <class Stored, class A>
  PENSTOCK_HIDDEN void Argument(const ArgRecord& was, const A& arg) {
    if constexpr (std::is_same_v<Stored, Range>) return;  // it is the extent
    if (!matcher_.same_) return;
    if constexpr (IsAccess<A>::value) {
      if (Match(was.form != ArgDecl::Form::kValue && was.form != ArgDecl::Form::kParam)) Access(arg);
    } else if constexpr (IsAll<A>::value) {
      if (!Match(was.form == ArgDecl::Form::kTable && was.index == static_cast<int32_t>(arg.accesses.size()))) return;
      for (const auto& access : arg.accesses) Access(access);
    } else if constexpr (IsOnDevice<A>::value) {
      Match(was.form == ArgDecl::Form::kPointer &&
            matcher_.IsValueOf(matcher_.accesses_[access_++].buffer, arg.param.graph(), arg.param.index()));
    } else if constexpr (IsParam<A>::value) {
      Match(was.form == ArgDecl::Form::kParam && was.index == arg.index() && matcher_.model_.serial == arg.graph());
    } else if (Match(was.form == ArgDecl::Form::kValue && was.size == sizeof(Stored))) {
      if constexpr (!kOwnsData<Stored>) SetValue(was.offset, static_cast<Stored>(arg));
    }
  }
  template <class T>
  PENSTOCK_HIDDEN void SetValue(uint32_t offset, const T& value) {
    if (values_ != nullptr && SetBytes(values_ + offset, value)) Changed(false);
  }
  // Whether both have sources, of equal parts.
  bool IsSameSource(const NodeCode& code) const {
    const auto& declared = decl().code.source;
    return declared != nullptr && code.source != nullptr && *declared == *code.source;
  }
  // Whether the box equals that of the access compared last.
  bool IsSameBox(const Box& box) const;
  bool IsSameExtent(const Extent& extent) const {
    if (was_.width < 0) return decl().extent == extent;
    return extent.rank == 1 && extent.dims[0].is_constant() && extent.dims[0].value == was_.width;
  }

  DeclarationMatcher& matcher_;
  const NodeRecord& was_;
  const size_t index_;
  size_t access_;  // the next one
  std::byte* const values_;  // null: do not store them
};

template <class Describe>
int32_t DeclarationMatcher::Node(const Name& name, NodeKind kind, Describe& describe) {
  if (const NodeRecord* const was = Next(name, kind)) {
    MatchedNode node(*this, *was);
    describe(node);
  }
  return Last();
}

}  // namespace penstock::detail
