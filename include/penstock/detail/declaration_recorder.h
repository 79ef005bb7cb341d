// DeclarationRecorder: appends what is declared to a model.
//
// DeclarationMatcher has the same calls, and DeclarationSink (declaration_sink.h) chooses between the two. A kind of
// node is described by one function over RecordedNode and DeclarationMatcher::MatchedNode, which have the same calls
// too.
//
// Ownership: borrows the model.
// Threads:   single-threaded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/detail/arguments.h"
#include "penstock/detail/formula.h"
#include "penstock/detail/model.h"
#include "penstock/export.h"

namespace penstock::detail {

// A node that is being declared for the first time.
class PENSTOCK_EXPORT RecordedNode {
 public:
  RecordedNode(Model& model, Name name, NodeKind kind) : model_(model), decl_(std::move(name), kind) {}

  // The code. It comes first, since types follow from it.
  void Code(const NodeCode& code) { decl_.code = code; }
  // Where a ParallelFor runs, and the rank of its functor's index.
  void Over(const Extent& extent, int functor_rank) {
    decl_.extent = extent;
    decl_.functor_rank = functor_rank;
  }
  // The level of a Reduce or a Scan, and what NodeDecl says of it.
  void Level(int level, bool by_rows, bool later) {
    decl_.level = level;
    decl_.by_rows = by_rows;
    decl_.later = later;
  }
  // How many leaves a block takes, and which access the host code uses in another way than the device's; -1: none.
  void Tiles(int leaves, int working) { decl_.tiles = {leaves, working}; }
  // How many Views a table has room for whose type does not say; 0: as many as it has.
  void RoomForViews(int64_t room) { views_room_ = room; }
  // How a kernel is launched, or the block of a Task.
  void Shape(const KernelShape& shape) {
    decl_.shape = shape;
    decl_.is_task = decl_.kind == NodeKind::kParallelFor;
  }

  // An access that is no argument.
  template <class T, AccessMode M>
  PENSTOCK_HIDDEN void Access(const AccessOf<T, M>& access) {
    AccessDecl decl{access.buffer.index(), access.buffer.graph(), M, access.unordered, access.box, access.uncopied};
    if (access.state != nullptr) Resolve(decl, access.state);
    decl_.accesses.push_back(decl);
  }
  // What a Fill sets each element to.
  template <class T>
  PENSTOCK_HIDDEN void Pattern(const T& value) {
    decl_.pattern.resize(sizeof(T));
    std::memcpy(decl_.pattern.data(), &value, sizeof(T));
  }
  // All arguments, each in the block as `Stored`. Vectors that need not grow leave no gaps, so a graph's records lie
  // close together; reading them is much of the cost of planning.
  template <class... Stored, class... A>
  PENSTOCK_HIDDEN void Arguments(const A&... args) {
    const size_t refs = decl_.kind == NodeKind::kParallelFor ? kParams<A...> : 0;
    const size_t views = (size_t{0} + ... + ViewsIn(args));
    decl_.accesses.reserve(kAccesses<A...> + views);
    decl_.args.reserve(sizeof...(Stored) + views);
    decl_.arg_block.reserve((refs * 2 * sizeof(void*)) + (size_t{0} + ... + (sizeof(Stored) + alignof(Stored))));
    (Argument<Stored>(args), ...);
    decl_.args.insert(decl_.args.end(), in_tables_.begin(), in_tables_.end());
  }
  // Marks the arguments that the host callable F gets as spans.
  template <class F, class... Stored>
  PENSTOCK_HIDDEN void Spans() {
    MarkSpans<F, Stored...>(std::index_sequence_for<Stored...>());
  }
  // Keeps the data of a functor that owns some (kOwnsData). It comes after the arguments, and moves `f`.
  template <class F>
  PENSTOCK_HIDDEN void Functor(F& f) {
    Callable(f);
  }
  // The callable that the code calls. It comes last, and moves `f`.
  template <class F>
  PENSTOCK_HIDDEN void Callable(F& f) {
    decl_.code.callable = ShareCallable(f);
  }

  // All of a Map.
  void Map(const FlatMap& map);

  // The record, complete.
  NodeDecl& decl() { return decl_; }

 private:
  template <class Stored, class A>
  PENSTOCK_HIDDEN void Argument(const A& arg) {
    ArgDecl decl;
    if constexpr (!IsAll<A>::value) decl = Place<Stored>();
    if constexpr (std::is_same_v<Stored, Range>) {
      decl.form = ArgDecl::Form::kRange;
    } else if constexpr (IsAccess<A>::value) {
      static_assert(std::is_trivially_copyable_v<typename A::value_type>);
      ByAddress<Stored, typename A::value_type>(decl);
      Access(arg);
      NameBuffer<Stored>(decl.offset);
    } else if constexpr (IsAll<A>::value) {
      return Table<typename TableOf<Stored>::element>(arg, TableOf<Stored>::kRoom);
    } else if constexpr (IsOnDevice<A>::value) {
      using T = typename A::value_type;
      ByAddress<Stored, T>(decl);
      decl_.accesses.push_back({OnDevice(arg.param.graph(), arg.param.index(), TypeOf<T>()), model_.serial});
    } else if constexpr (IsParam<A>::value) {
      decl.form = ArgDecl::Form::kParam;
      decl.index = arg.index();
      decl.graph = arg.graph();
      decl.type = TypeOf<Stored>();
      if (decl_.kind == NodeKind::kParallelFor) decl.ref = Reserve(decl_, sizeof(void*), alignof(void*));
    } else if constexpr (kOwnsData<Stored>) {  // a copy would have other data
      std::memcpy(decl_.arg_block.data() + decl.offset, static_cast<const void*>(&arg), sizeof(Stored));
      decl.type = TypeOf<Stored>();
    } else {
      const Stored value = static_cast<Stored>(arg);
      std::memcpy(decl_.arg_block.data() + decl.offset, &value, sizeof(Stored));
      decl.type = TypeOf<Stored>();
    }
    decl_.args.push_back(decl);
  }
  // An argument with memory of its own in the block.
  template <class Stored>
  PENSTOCK_HIDDEN ArgDecl Place() {
    ArgDecl decl;
    decl.offset = Reserve(decl_, sizeof(Stored), alignof(Stored));
    decl.size = sizeof(Stored);
    return decl;
  }
  // A table of Views of element type E. `room` is 0 if its type does not say.
  template <class E, class T, AccessMode M>
  PENSTOCK_HIDDEN void Table(const AllOf<T, M>& all, int64_t room) {
    const auto count = static_cast<int64_t>(all.accesses.size());
    if (room == 0) room = views_room_;
    if (room > 0 && count > room) RefuseViews(count, room);
    ArgDecl table;
    table.form = ArgDecl::Form::kTable;
    table.index = static_cast<int32_t>(count);
    table.size = kFirstView + static_cast<uint32_t>(std::max(count, room) * int64_t{sizeof(View<E>)});
    table.offset = Reserve(decl_, table.size, alignof(View<E>));
    std::memcpy(decl_.arg_block.data() + table.offset, &count, sizeof(count));
    decl_.args.push_back(table);
    uint32_t at = table.offset + kFirstView;
    for (const AccessOf<T, M>& access : all.accesses) {
      ArgDecl view;
      view.offset = std::exchange(at, at + uint32_t{sizeof(View<E>)});
      view.size = sizeof(View<E>);
      ByAddress<View<E>, T>(view);
      in_tables_.push_back(view);
      Access(access);
      NameBuffer<View<E>>(view.offset);
    }
  }
  // Gives the View at `offset` the name of the buffer accessed last, if it keeps one. The model owns the name.
  template <class Stored>
  PENSTOCK_HIDDEN void NameBuffer([[maybe_unused]] uint32_t offset) {
    if constexpr (requires(Stored view) { view.buffer; }) {
      const char* const name = NameOf(decl_.accesses.back());
      std::memcpy(decl_.arg_block.data() + offset + offsetof(Stored, buffer), &name, sizeof(name));
    }
  }
  // An argument with the address of the next access.
  template <class Stored, class T>
  PENSTOCK_HIDDEN void ByAddress(ArgDecl& decl) const {
    decl.form = std::is_pointer_v<Stored> ? ArgDecl::Form::kPointer : ArgDecl::Form::kView;
    decl.index = static_cast<int32_t>(decl_.accesses.size());
    decl.type = TypeOf<T>();
  }
  template <class F, class... Stored, size_t... I>
  PENSTOCK_HIDDEN void MarkSpans(std::index_sequence<I...>) {
    [[maybe_unused]] const auto mark = [](ArgDecl& arg, bool takes_span) {
      if (takes_span && arg.form == ArgDecl::Form::kView) arg.form = ArgDecl::Form::kSpan;
    };
    (mark(decl_.args[I], TakesSpan<F, I, Stored...>(std::index_sequence_for<Stored...>())), ...);
  }

  // Makes it an access to the buffer that stands for the State in this graph.
  void Resolve(AccessDecl& access, const std::shared_ptr<const StateRecord>& state);
  // The buffer with the parameter's value.
  int32_t OnDevice(uint32_t graph, int32_t param, TypeInfo type);
  // The name of the accessed buffer, which moves with no table; null if there is none.
  const char* NameOf(const AccessDecl& access) const;
  // Reports that the next argument is All of more accesses than its callable can have.
  void RefuseViews(int64_t count, int64_t most);

  Model& model_;
  NodeDecl decl_;
  std::vector<ArgDecl> in_tables_;  // Views, which come after all that the callable takes
  int64_t views_room_ = 0;
};

class PENSTOCK_EXPORT DeclarationRecorder {
 public:
  explicit DeclarationRecorder(Model& model) : model_(model) {}

  // The index of the declared object.
  int32_t Param(ParamDecl decl);
  int32_t Buffer(BufferDecl decl);
  int32_t State(const std::shared_ptr<const StateRecord>& state);
  template <class Describe>
  PENSTOCK_HIDDEN int32_t Node(Name&& name, NodeKind kind, Describe& describe) {
    RecordedNode node(model_, std::move(name), kind);
    describe(node);
    return Append(std::move(node.decl()));
  }

  // Options of node `node`: sets one, or appends to a list of them.
  template <class T>
  PENSTOCK_HIDDEN void Set(int32_t node, T NodeOptions::* option, T value) {
    Of(node).*option = value;
  }
  template <class T>
  PENSTOCK_HIDDEN void Add(int32_t node, std::vector<T> NodeDecl::* list, const T& item) {
    (Of(node).*list).push_back(item);
  }
  template <class F>
  PENSTOCK_HIDDEN void HostFallback(int32_t node, F& f, absl::Status (*call)(void*, void* const*)) {
    Of(node).code.fallback = ShareCallable(f);
    Of(node).code.call_fallback = call;
  }
  // The graph is.
  void Deterministic() { model_.deterministic = true; }
  // Keeps a mistake for Compile; `text` returns what it is.
  template <class Text>
  PENSTOCK_HIDDEN void Refuse(Text text) {
    model_.mistakes.push_back({absl::StatusCode::kInvalidArgument, text()});
  }

 private:
  int32_t Append(NodeDecl&& node);
  NodeDecl& Of(int32_t node) { return model_.nodes[node]; }

  Model& model_;
};

}  // namespace penstock::detail
