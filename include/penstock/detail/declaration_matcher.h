// DeclarationMatcher: compares a graph that is declared again with an earlier declaration, record by
// record and in place.
//
// Graph and NodeRef call it, instead of appending to a model, when a GraphCache (graph_cache.h) calls the declaring
// function. Nothing is built or allocated: each declaration is compared with the next record, and after the first
// difference the rest is ignored. Values are not part of the structure: plain arguments, functors, fill patterns and
// callables are stored where the next run finds them.
//
// Ownership: borrows the model and the places.
// Threads:   single-threaded.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/detail/model.h"
#include "penstock/detail/parallel_for.h"
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
  int32_t State(const StateRecord* state);
  template <class From, class To>
  PENSTOCK_HIDDEN int32_t Copy(const Name& name, const From& from, const To& to);
  template <class To, class T>
  PENSTOCK_HIDDEN int32_t Fill(const Name& name, const To& to, const T& value);
  template <bool kNvcc, int kExtentRank, class F, class... A>
  PENSTOCK_HIDDEN int32_t ParallelFor(const Name& name, const Extent& extent, const F& f, const A&... args);
  template <class... K, class... A>
  PENSTOCK_HIDDEN int32_t Kernel(const Name& name, const void* kernel, const KernelShape& shape, const A&... args);
  template <class F, class... A>
  PENSTOCK_HIDDEN int32_t Launch(const Name& name, F& f, const A&... args);
  template <class F, class... A>
  PENSTOCK_HIDDEN int32_t Host(const Name& name, F& f, const A&... args);

  // Options of node `node`.
  void After(int32_t node, int32_t other);
  void On(int32_t node, int device);
  void Priority(int32_t node, int priority);
  void Concurrency(int32_t node, int k);
  void Asked(int32_t node, HostWay way);
  void InPlace(int32_t node, const InPlaceDecl& pair);
  template <class F>
  PENSTOCK_HIDDEN void HostFallback(int32_t node, F& f, absl::Status (*call)(void*, void* const*));
  // Reports the use of a handle that does not belong to this graph.
  void Mismatch() { same_ = false; }

 private:
  using CallOf = absl::Status (*)(void*, LaunchContext*, void* const*);

  // The compared parts of a node, its accesses and its arguments, kept compact: a program that does much work between
  // steps finds none of this in its near caches. Rarely needed data stays in the model.
  struct NodeRecord {
    const char* name;
    const void *code, *kernel;  // code pointers, which identify the types it was instantiated for
    int64_t width;  // an extent of one constant dimension, else -1; of a fill: its pattern's bytes
    uint32_t name_size, first_access, first_arg;
    uint16_t accesses, args;
    NodeKind kind;
    bool plain;  // it has no options
  };
  struct AccessRecord {
    int32_t buffer;
    AccessMode mode;
    bool unordered, whole;
  };
  struct ArgRecord {
    uint32_t offset, size;
    int32_t index;
    ArgDecl::Form form;
  };
  // A node's options so far, beside its declaration.
  struct NodeOptions {
    uint32_t after = 0, in_place = 0;  // counts
    bool device = true, priority = true, concurrency = true, host_way = true, fallback = true;  // each as recorded
    uint32_t missing = 0;  // options missing just after the declaration
  };

  const NodeRecord* Next(const Name& name, NodeKind kind, size_t accesses, size_t args) {
    if (!same_ || node_ == nodes_.size()) return Other();
    const NodeRecord& node = nodes_[node_];
    const std::string_view text = name.view();
    const bool is = node.kind == kind && node.accesses == accesses && node.args == args &&
                    node.name_size == text.size() &&
                    (node.name == text.data() || std::memcmp(node.name, text.data(), text.size()) == 0);
    if (!is) return Other();
    said_[node_] = node.plain ? NodeOptions() : declared_[node_];
    missing_ += said_[node_].missing;
    values_ = places_.empty() ? nullptr : places_[node_].values;
    access_ = node.first_access;
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
  // Records that an option now equals the recorded one, or no longer does.
  void Say(bool& said, bool is) {
    missing_ += static_cast<int64_t>(said) - static_cast<int64_t>(is);
    said = is;
  }
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
  // Compares the node's next access.
  template <class T, AccessMode M>
  PENSTOCK_HIDDEN void Access(const AccessOf<T, M>& access) {
    const AccessRecord& was = accesses_[access_++];
    const bool is = access.state != nullptr
                        ? IsState(was.buffer, access.state.get())
                        : was.buffer == access.buffer.index() && model_.serial == access.buffer.graph();
    Match(is && was.mode == M && was.unordered == access.unordered && was.whole == access.box.whole &&
          (was.whole || IsSameBox(access.box)));
  }
  template <class Stored, class A>
  PENSTOCK_HIDDEN void Argument(const ArgRecord& was, const A& arg) {
    if (!same_) return;
    if constexpr (IsAccess<A>::value) {
      if (Match(was.form != ArgDecl::Form::kValue && was.form != ArgDecl::Form::kParam)) Access(arg);
    } else if constexpr (IsOnDevice<A>::value) {
      Match(was.form == ArgDecl::Form::kPointer &&
            IsValueOf(accesses_[access_++].buffer, arg.param.graph(), arg.param.index()));
    } else if constexpr (IsParam<A>::value) {
      Match(was.form == ArgDecl::Form::kParam && was.index == arg.index() && model_.serial == arg.graph());
    } else if (Match(was.form == ArgDecl::Form::kValue && was.size == sizeof(Stored))) {
      SetValue(was.offset, static_cast<Stored>(arg));
    }
  }
  template <class T>
  PENSTOCK_HIDDEN void SetValue(uint32_t offset, const T& value) {
    if (values_ != nullptr && SetBytes(values_ + offset, value)) Changed(Last(), false);
  }
  template <class... Stored, class... A>
  PENSTOCK_HIDDEN void Arguments(const NodeRecord& node, size_t first, const A&... args) {
    const ArgRecord* was = args_.data() + node.first_arg + first;
    (Argument<Stored>(*was++, args), ...);
  }
  template <class F>
  PENSTOCK_HIDDEN void SetCallable(F& f, Replaceable* callable) {
    if (callable != nullptr && callable->Replace(f)) Changed(Last(), true);
  }
  template <class... Stored, class F, class... A>
  PENSTOCK_HIDDEN int32_t Callable(const NodeRecord* node, F& f, CallOf call, const A&... args) {
    if (node == nullptr || !Match(node->code == reinterpret_cast<const void*>(call))) return -1;
    Arguments<Stored...>(*node, 0, args...);
    if (same_ && !places_.empty()) SetCallable(f, places_[node_ - 1].callable);
    return Last();
  }
  // Whether the box equals that of the access compared last.
  bool IsSameBox(const Box& box) const;
  bool IsSameExtent(const NodeRecord& node, const Extent& extent) const {
    if (node.width >= 0) return extent.rank == 1 && extent.dims[0].is_constant() && extent.dims[0].value == node.width;
    return model_.nodes[node_ - 1].extent == extent;
  }

  const Model& model_;
  std::vector<NodeRecord> nodes_;
  std::vector<AccessRecord> accesses_;
  std::vector<ArgRecord> args_;
  std::vector<NodeOptions> declared_, said_;  // per node: just after its declaration, and now
  std::vector<Change> changes_;

  std::span<const Place> places_;
  std::byte* values_ = nullptr;  // of the node that is being declared
  size_t param_ = 0, buffer_ = 0, node_ = 0, access_ = 0;  // the next index of each kind
  int64_t missing_ = 0;  // options not yet set on the nodes declared so far
  bool same_ = false;
};

template <class From, class To>
int32_t DeclarationMatcher::Copy(const Name& name, const From& from, const To& to) {
  const NodeRecord* const node = Next(name, NodeKind::kCopy, 2, 0);
  if (node == nullptr) return -1;
  Access(from);
  Access(to);
  return Last();
}

template <class To, class T>
int32_t DeclarationMatcher::Fill(const Name& name, const To& to, const T& value) {
  const NodeRecord* const node = Next(name, NodeKind::kFill, 1, 0);
  if (node == nullptr || !Match(node->width == int64_t{sizeof(T)})) return -1;
  Access(to);
  if (same_) SetValue(0, value);
  return Last();
}

template <bool kNvcc, int kExtentRank, class F, class... A>
int32_t DeclarationMatcher::ParallelFor(const Name& name, const Extent& extent, const F& f, const A&... args) {
  const NodeRecord* const node = Next(name, NodeKind::kParallelFor, kAccesses<A...>, sizeof...(A) + 2);
  if (node == nullptr) return -1;
  NodeCode code;
  FillParallelForCode<kNvcc, kExtentRank, F, A...>(code, FunctorRank<kExtentRank, F, ViewStoredT<A>...>(extent.rank));
  const bool is = node->code == reinterpret_cast<const void*>(code.range) && node->kernel == code.cuda_self;
  if (!Match(is && IsSameExtent(*node, extent))) return -1;
  Arguments<F, ViewStoredT<A>...>(*node, 1, f, args...);
  return Last();
}

template <class... K, class... A>
int32_t DeclarationMatcher::Kernel(const Name& name, const void* kernel, const KernelShape& shape, const A&... args) {
  const NodeRecord* const node = Next(name, NodeKind::kKernel, kAccesses<A...>, sizeof...(A));
  if (node == nullptr || !Match(node->kernel == kernel && model_.nodes[node_ - 1].shape == shape)) return -1;
  Arguments<std::remove_cv_t<K>...>(*node, 0, args...);
  return Last();
}

template <class F, class... A>
int32_t DeclarationMatcher::Launch(const Name& name, F& f, const A&... args) {
  return Callable<PointerStoredT<A>...>(Next(name, NodeKind::kLaunch, kAccesses<A...>, sizeof...(A)), f,
                                        &CallLaunch<F, PointerStoredT<A>...>, args...);
}

template <class F, class... A>
int32_t DeclarationMatcher::Host(const Name& name, F& f, const A&... args) {
  return Callable<ViewStoredT<A>...>(Next(name, NodeKind::kHost, kAccesses<A...>, sizeof...(A)), f,
                                     &CallHost<F, ViewStoredT<A>...>, args...);
}

template <class F>
void DeclarationMatcher::HostFallback(int32_t node, F& f, absl::Status (*call)(void*, void* const*)) {
  if (!Has(node)) return;
  const auto i = static_cast<size_t>(node);
  const bool is = model_.nodes[i].code.call_fallback == call;
  Say(said_[i].fallback, is);
  if (!is || places_.empty() || places_[i].fallback == nullptr) return;
  if (places_[i].fallback->Replace(f)) Changed(node, true);
}

}  // namespace penstock::detail
