// Graph: what to do, declared once as buffers, parameters and nodes. Declaring runs nothing and touches no device.
//
// Declaring never fails half-way: the graph keeps each mistake with its source line, and Runtime::Compile returns all
// of them in one Status. Edges come from the accesses in declaration order (read after write, write after read, write
// after write), and from NodeRef::After. Compile copies the graph, which may then be changed, moved or destroyed.
// Names are unique in a graph: among its nodes, among its buffers, and among its parameters. Numbers make a name one of
// many (name.h), and Scope makes all of a part so.
//
// Ownership: the graph owns its callables; an executable compiled from it shares them. Unload a plugin that contains
//            such callables after both, and after Runtime::Shutdown (see docs/explanation/errors-and-process-life.md,
//            "Unloading a plugin"). Handles and NodeRefs stay valid when the graph is moved. Compile refuses a graph
//            that was moved from, and declarations on it are dropped.
// Threads:   single-threaded; different threads may declare different graphs concurrently.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <memory>
#include <utility>

#include "penstock/control.h"
#include "penstock/count_of.h"
#include "penstock/detail/declaration_sink.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_control.h"
#include "penstock/detail/declare_counted_reduce.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/explain_arguments.h"
#include "penstock/detail/model.h"
#include "penstock/detail/on_cuda.h"
#include "penstock/detail/parallel_for.h"
#include "penstock/detail/programmatic.h"
#include "penstock/export.h"
#include "penstock/launch_context.h"
#include "penstock/node.h"
#include "penstock/reduce.h"
#include "penstock/scope.h"
#include "penstock/sharding.h"
#include "penstock/source.h"
#include "penstock/state.h"
#include "penstock/task.h"

namespace penstock {

namespace runtime {
class GraphCacheCore;
}
template <class T>
class ShardedState;

// The largest value a parameter may be set to; makes it usable as a dimension.
struct AtMost {
  // Sets the maximum to `n`.
  explicit AtMost(int64_t n) : value(n) {}
  int64_t value;
};

// Options of Graph::KeyedState.
struct KeyedStateOptions {
  int max_keys = 16;  // 1 to 65536
};

// At least n threads, in whole blocks of 256 (or `block`): a kernel compares its index with n, since the last block may
// reach beyond it. None for n = 0: the kernel is not launched.
inline KernelShape Threads(Dim n, uint32_t block = 256, uint32_t shared_bytes = 0) {
  return {true, n, {Dim(1), Dim(1), Dim(1)}, {block, 1, 1}, shared_bytes};
}
// Lets Compile choose the size of the blocks.
struct ByOccupancy {};
PENSTOCK_HIDDEN inline constexpr ByOccupancy kOccupancy{};
// The same in blocks of the size with which most threads of the kernel run at once on the node's device, as CUDA
// calculates it (cuOccupancyMaxPotentialBlockSize) from the kernel's registers and its shared memory, of which
// `shared_bytes` must not depend on the size. Compile asks once for each kernel and device, and
// Executable::submission_report says what it was told. A kernel that works in blocks reads blockDim.x. 256 on host
// devices, where a fallback sees no blocks. More threads at once hide more latency, but the kernel need not be faster.
inline KernelShape Threads(Dim n, ByOccupancy, uint32_t shared_bytes = 0) {
  KernelShape shape = Threads(n, 256, shared_bytes);
  shape.by_occupancy = true;
  return shape;
}
// Exactly this grid of blocks, as {x, y, z} in CUDA's order.
inline KernelShape Blocks(std::array<Dim, 3> grid, std::array<uint32_t, 3> block, uint32_t shared_bytes = 0) {
  return {false, Dim(0), grid, block, shared_bytes};
}

class PENSTOCK_EXPORT Graph {
 public:
  // Creates an empty graph. The name appears in plans, errors and traces.
  explicit Graph(Name name);
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph other) noexcept {
    std::swap(model_, other.model_);
    std::swap(matcher_, other.matcher_);
    return *this;
  }

  // Puts `name` and a slash before the names of all that is declared on this graph (nodes, buffers and parameters)
  // while the result lives. Scopes nest, and end in the reverse order:
  //
  //   for (int t = 0; t < 8; ++t) {
  //     const auto step = graph.Scope(ps::Name("step", t));
  //     graph.ParallelFor("flow", ...);                                // "step 0/flow", "step 1/flow", ...
  //   }
  //
  // Plans, errors and traces show the full name, so a function that declares nodes may be called once for each part.
  [[nodiscard]] NameScope Scope(Name name);
  // Runs all nodes that are declared while the result lives on this device, as NodeRef::On does, which wins.
  [[nodiscard]] DeviceScope ScopeOn(int device) { return {model_, device}; }

  // Has Compile refuse each node that may give other bits for the same input in another run, or on another device of
  // the same model: one that says so (NodeRef::Nondeterministic), an algorithm that may combine values in any order
  // (CombineOrder::kAny) where the order matters, and, for several devices, one that writes a ReplicatedState. May be
  // said at any time before Compile. docs/howto/determinism.md tells what that costs, and what nobody checks.
  void Deterministic();

  // A value set at launch. T is trivially copyable; an integer with AtMost may be a dimension. Nodes take it by value,
  // or read it from their device's memory (OnDevice in access.h).
  template <class T>
  PENSTOCK_HIDDEN ParamHandle<T> Param(Name name) {
    return {serial(), AddParam(ParamOf<T>(std::move(name)))};
  }
  template <class T>
  PENSTOCK_HIDDEN ParamHandle<T> Param(Name name, AtMost max) {
    ParamDecl decl = ParamOf<T>(std::move(name));
    decl.has_max = true;
    decl.max = max.value;
    return {serial(), AddParam(std::move(decl))};
  }

  // Memory bound at each launch: read, written, or both. It must outlive the run, unless the binding keeps it alive.
  // `device` is for kDevice memory: the index of its device in the runtime's list, if that is not the device of the
  // first node that uses it; that node then gets a copy.
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> Input(Name name, Extent extent, Where where = kHost, int device = -1) {
    return {serial(), AddBuffer(BufferOf<T>(std::move(name), BufferRole::kInput, where, extent, 0, device))};
  }
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> Output(Name name, Extent extent, Where where = kHost, int device = -1) {
    return {serial(), AddBuffer(BufferOf<T>(std::move(name), BufferRole::kOutput, where, extent, 0, device))};
  }
  // An Output of which only the first elements count, as many as an integer says when the run has ended; Run::count
  // tells how many that were. The bound memory has room for the maximum. What lies behind the count is unspecified, as
  // in a Buffer: no contents are copied to a device for it.
  //   auto kept = graph.Output<float>("kept", ps::CountOf(count, n));
  //   ps::Select(graph, "hot", ps::Read(x), ps::Write(kept), ps::Write(count), IsHot{90});
  template <class T, class C>
  PENSTOCK_HIDDEN BufferHandle<T> Output(Name name, const CountedExtent<C>& extent, Where where = kHost,
                                         int device = -1) {
    BufferDecl decl = BufferOf<T>(std::move(name), BufferRole::kOutput, where, extent.max, 0, device);
    detail::DeclareCount(sink(), InScope(decl.name), extent.count, decl.count);
    return {serial(), AddBuffer(std::move(decl))};
  }
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> InOut(Name name, Extent extent, Where where = kHost, int device = -1) {
    return {serial(), AddBuffer(BufferOf<T>(std::move(name), BufferRole::kInOut, where, extent, 0, device))};
  }
  // Memory that exists only inside a run: kDevice or kPinned.
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> Buffer(Name name, Extent extent, Where where = kDevice) {
    return {serial(), AddBuffer(BufferOf<T>(std::move(name), BufferRole::kInternal, where, extent))};
  }

  // An array that exists only inside a run, cut into shards, one Buffer each, "name 0", "name 1" and so on. sharding.h
  // says how, and sharded.h what can be done with them. The extent is without the halo; what is cut is constant.
  //   auto u = graph.Sharded<float>("u", {height, width}, ps::Blocked(0, runtime.all_devices()), ps::Halo(1));
  template <class T>
  PENSTOCK_HIDDEN ShardedHandle<T> Sharded(const Name& name, const Extent& extent, const Sharding& sharding,
                                           Halo halo = Halo()) {
    const auto layout = detail::ShardDeclaration::LayOut(*this, name, extent, sharding, halo);
    std::vector<BufferHandle<T>> buffers;
    for (const Shard& shard : layout->shards) {
      buffers.push_back(Buffer<T>(detail::NumberedName(name, shard.index), detail::ExtentWithHalo(*layout, shard)));
    }
    return {layout, std::move(buffers)};
  }

  // The same with padded rows, in host and device memory:
  //   graph.Input<float>("image", ps::Pitched({h, w}, pitch));
  // The bound memory has the elements from the first to the last, pitch * (rows - 1) + w, or up to pitch * rows.
  // A View has the pitch, slices and aliases keep it, a plain pointer has no shape, and host callables take a
  // View, not a span.
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> Input(Name name, const PitchedExtent& extent, Where where = kHost) {
    return {serial(), AddBuffer(BufferOf<T>(std::move(name), BufferRole::kInput, where, extent.extent, extent.pitch))};
  }
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> Output(Name name, const PitchedExtent& extent, Where where = kHost) {
    return {serial(), AddBuffer(BufferOf<T>(std::move(name), BufferRole::kOutput, where, extent.extent, extent.pitch))};
  }
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> InOut(Name name, const PitchedExtent& extent, Where where = kHost) {
    return {serial(), AddBuffer(BufferOf<T>(std::move(name), BufferRole::kInOut, where, extent.extent, extent.pitch))};
  }
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> Buffer(Name name, const PitchedExtent& extent, Where where = kDevice) {
    return {serial(),
            AddBuffer(BufferOf<T>(std::move(name), BufferRole::kInternal, where, extent.extent, extent.pitch))};
  }

  // Another name for part of a buffer, or for all of it read as another element type. An alias has no memory: an access
  // through it is an access to the buffer and produces the same edges. It cannot be bound. A buffer read as another
  // type keeps all dimensions except the last, which holds as many elements as fit the row exactly; if that dimension
  // is a parameter, or the buffer is itself part of another, both types must have the same size.
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> Alias(Name name, BufferHandle<T> base, const Box& box) {
    return {serial(), AddAlias(BufferOf<T>(std::move(name), BufferRole::kInternal, kDevice, {}), base.graph(),
                               base.index(), box)};
  }
  template <class U, class T>
  PENSTOCK_HIDDEN BufferHandle<U> Alias(Name name, BufferHandle<T> base) {
    return {serial(), AddAlias(BufferOf<U>(std::move(name), BufferRole::kInternal, kDevice, {}), base.graph(),
                               base.index(), Box{})};
  }

  // One State (state.h) per key: a camera's background, a client's history. A launch uses the States of the key that
  // its bindings name. A key's States start as zeros on the device of the key's first launch, and stay there. Compile
  // makes all max_keys of them, spread over its devices; Executable::StateOf returns one, and Forget makes room for
  // another key. The extent is constant.
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> KeyedState(Name name, Extent extent, KeyedStateOptions options = {}) {
    BufferDecl decl = BufferOf<T>(std::move(name), BufferRole::kState, kDevice, extent);
    decl.keys = options.max_keys > 0 ? options.max_keys : -1;  // Compile reports it
    return {serial(), AddBuffer(std::move(decl))};
  }

  // A handle on a State in this graph, for calls that take handles (Copy, Fill, Alias); an access names
  // the State itself.
  template <class T>
  PENSTOCK_HIDDEN BufferHandle<T> Use(const State<T>& state) {
    return {serial(), AddState(state.record())};
  }
  // The same for a State in shards (sharded_state.h).
  template <class T>
  PENSTOCK_HIDDEN ShardedHandle<T> Use(const ShardedState<T>& state) {
    return state.In(*this);
  }

  // Copies one box to another of the same shape (apart from leading dimensions of 1), in host memory or on any device:
  //   graph.Copy("tile", ps::Read(image, ps::Slice({y, x}, {256, 256})), ps::Write(tile));
  // Boxes of one buffer must not overlap. The destination decides where the copy goes: to bound or pinned memory, or to
  // the node's device.
  template <class T>
  PENSTOCK_HIDDEN NodeRef Copy(Name name, AccessOf<T, AccessMode::kRead> from, AccessOf<T, AccessMode::kWrite> to) {
    return Declare(std::move(name), NodeKind::kCopy, [&](auto& node) {
      node.Access(from);
      node.Access(to);
    });
  }
  // Copies a whole buffer to another of the same extent.
  template <class T>
  PENSTOCK_HIDDEN NodeRef Copy(Name name, BufferHandle<T> from, BufferHandle<T> to) {
    return Copy(std::move(name), Read(from), Write(to));
  }

  // Sets every element of a buffer, or of a box of it, to `value`, on the node's device. T has at most 16 bytes.
  //   graph.Fill("border", ps::Write(image, ps::Slice({0, 0}, {1, w})), 0.f);
  template <class T>
  PENSTOCK_HIDDEN NodeRef Fill(Name name, AccessOf<T, AccessMode::kWrite> to, std::type_identity_t<T> value) {
    static_assert(sizeof(T) <= 16, "Fill takes elements of at most 16 bytes");
    return Declare(std::move(name), NodeKind::kFill, [&](auto& node) {
      node.Access(to);
      node.Pattern(value);
    });
  }
  template <class T>
  PENSTOCK_HIDDEN NodeRef Fill(Name name, BufferHandle<T> to, std::type_identity_t<T> value) {
    return Fill(std::move(name), Write(to), value);
  }

  // Calls f(index, args...) for every index of the extent, in any order and concurrently. f is a trivially copyable
  // functor with a const PENSTOCK_HOST_DEVICE operator(), or such a lambda, which nvcc takes with --extended-lambda.
  // The index is an int64_t, Index2 or Index3 by the extent's rank; f takes one or more of these. An access arrives as
  // View<T> (View<const T> if only read), All of some as Views<T>, a parameter as its value.
  //
  // A generic functor (`auto i`) is compiled for the rank of an extent that is written as a list or as one dimension.
  // The compiler does not know the rank of an Extent variable: f must then compile for all ranks, or be constrained to
  // those it takes.
  template <class F, class... A, size_t kRank, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN NodeRef ParallelFor(Name name, const Dim (&extent)[kRank], F f, A... args) {
    return AddParallelFor<kNvcc, static_cast<int>(kRank)>(std::move(name), detail::ExtentOf(extent), f, args...);
  }
  template <class E, class F, class... A, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
    requires std::is_convertible_v<E, Extent>
  PENSTOCK_HIDDEN NodeRef ParallelFor(Name name, E extent, F f, A... args) {
    constexpr int kRank = DimLike<E> ? 1 : detail::kAnyRank;
    return AddParallelFor<kNvcc, kRank>(std::move(name), Extent(extent), f, args...);
  }
  // The same for the indices below a count that only the device knows (count_of.h).
  template <class C, class F, class... A, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN NodeRef ParallelFor(Name name, CountedExtent<C> extent, F f, A... args) {
    return detail::CountedDeclaration::Declare<kNvcc>(*this, std::move(name), extent, f, args...);
  }

  // Calls f(block, args...) once, for work that threads do together in phases, such as on a tile: task.h says what a
  // Block has and what f may do with it. Arguments, lambdas and errors are those of a ParallelFor.
  //   graph.Task("transpose", {.shared_bytes = 4224}, Transpose{}, ps::Read(a, tile), ps::Write(b, across));
  template <class F, class... A, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN NodeRef Task(Name name, const TaskOptions& options, F f, A... args) {
    return AddTask<kNvcc>(std::move(name), options, f, args...);
  }
  // The same with the default options.
  template <class F, class... A, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
    requires(!std::is_same_v<F, TaskOptions>)
  PENSTOCK_HIDDEN NodeRef Task(Name name, F f, A... args) {
    return AddTask<kNvcc>(std::move(name), TaskOptions(), f, args...);
  }

  // Makes one value of the elements of a buffer or a box, in a fixed order: reduce.h says which, and what `op` may be.
  // `identity` is the result if there are none; Plus, Min and Max know theirs.
  //   graph.Reduce("norm", ps::Read(r), ps::Write(norms, ps::Slice({k}, {1})), ps::Max());
  template <class T, class V, class Op = Plus, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN ReduceNode Reduce(Name name, AccessOf<T, AccessMode::kRead> from, AccessOf<V, AccessMode::kWrite> to,
                                    Op op = {}) {
    return Reduce<T, V, Op, kNvcc>(std::move(name), from, to, op, detail::IdentityOf<Op, V>());
  }
  template <class T, class V, class Op, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN ReduceNode Reduce(Name name, AccessOf<T, AccessMode::kRead> from, AccessOf<V, AccessMode::kWrite> to,
                                    Op op, std::type_identity_t<V> identity) {
    return detail::ReduceDeclaration::OfElements<kNvcc>(*this, name, op, identity, from, to);
  }
  // The same of the first elements of one dimension, as many as a count says that only the device knows (count_of.h).
  template <class C, class T, class V, class Op = Plus, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN ReduceNode Reduce(Name name, const CountedExtent<C>& count, AccessOf<T, AccessMode::kRead> from,
                                    AccessOf<V, AccessMode::kWrite> to, Op op = {}) {
    return Reduce<C, T, V, Op, kNvcc>(std::move(name), count, from, to, op, detail::IdentityOf<Op, V>());
  }
  template <class C, class T, class V, class Op, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN ReduceNode Reduce(Name name, const CountedExtent<C>& count, AccessOf<T, AccessMode::kRead> from,
                                    AccessOf<V, AccessMode::kWrite> to, Op op, std::type_identity_t<V> identity) {
    return detail::CountedReduceDeclaration::OfElements<kNvcc>(*this, name, count, op, identity, from, to);
  }
  // The same of what f(index, args...) returns for each index of the extent. It is called once for each, as that of a
  // ParallelFor is, with all of the arguments but the last, where the result goes:
  //   graph.TransformReduce("dot", n, Product{}, ps::Plus(), 0.0, ps::Read(p), ps::Read(q), ps::Write(dot));
  template <class F, class Op, class... A, size_t kRank, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN ReduceNode TransformReduce(Name name, const Dim (&extent)[kRank], F f, Op op,
                                             typename detail::ResultOf<A...>::type identity, A... args) {
    return detail::ReduceDeclaration::Declare<kNvcc, static_cast<int>(kRank)>(*this, name, detail::ExtentOf(extent), f,
                                                                              op, identity, args...);
  }
  template <class E, class F, class Op, class... A, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
    requires std::is_convertible_v<E, Extent>
  PENSTOCK_HIDDEN ReduceNode TransformReduce(Name name, E extent, F f, Op op,
                                             typename detail::ResultOf<A...>::type identity, A... args) {
    constexpr int kRank = DimLike<E> ? 1 : detail::kAnyRank;
    return detail::ReduceDeclaration::Declare<kNvcc, kRank>(*this, name, Extent(extent), f, op, identity, args...);
  }
  template <class C, class F, class Op, class... A, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN ReduceNode TransformReduce(Name name, const CountedExtent<C>& extent, F f, Op op,
                                             typename detail::ResultOf<A...>::type identity, A... args) {
    return detail::CountedReduceDeclaration::Declare<kNvcc>(*this, name, extent, f, op, identity, args...);
  }

  // Launches a __global__ function. An access becomes a pointer (or a View, if the kernel takes one), All of some a
  // ViewTable (views.h); a parameter must have the type the kernel takes; OnDevice of one becomes a pointer to it; a
  // value is converted. Runs on host devices only through NodeRef::HostFallback.
  template <class... K, class... A>
  PENSTOCK_HIDDEN FallbackNode<K...> Kernel(Name name, void (*kernel)(K...), KernelShape shape, A... args) {
    static_assert(sizeof...(K) == sizeof...(A), "wrong number of kernel arguments");
    detail::KernelArguments<std::tuple<K...>, A...>::Check(std::index_sequence_for<A...>());
    NodeCode code;
    code.cuda_self = reinterpret_cast<const void*>(kernel);
#if defined(__CUDACC__)
    code.cuda_kernel = &detail::LoadCudaKernel;
#endif
    if (kernel == nullptr) RefuseNull(name, "kernel");
    return Declare(std::move(name), NodeKind::kKernel, [&](auto& node) {
      node.Code(code);
      node.Shape(shape);
      node.template Arguments<std::remove_cv_t<K>...>(args...);
    });
  }

  // Launches a kernel that Compile makes from a text (source.h). There is no signature to convert to, so the kernel
  // gets each argument as this type: a Read of T as const T*, any other access as T*, to its first element; a parameter
  // of T as T; OnDevice of one as const T*; a value as its own type, which for a literal is int (1), double (1.0) or
  // float (1.0f). Compile refuses a kernel whose parameters have other sizes. Runs on host devices only through
  // HostFallback, which gets the same types.
  template <class... A>
  PENSTOCK_HIDDEN FallbackNode<detail::PointerStoredT<A>...> Kernel(Name name, const Source& source, KernelShape shape,
                                                                    A... args) {
    static_assert((!detail::IsAll<A>::value && ...), "a kernel made from a Source takes no All; name each access");
    NodeCode code;
    code.source = source.shared_parts();
    code.cuda_self = code.source.get();
    return Declare(std::move(name), NodeKind::kKernel, [&](auto& node) {
      node.Code(code);
      node.Shape(shape);
      node.template Arguments<detail::PointerStoredT<A>...>(args...);
    });
  }

  // Library calls on a stream: f(LaunchContext&, args...) submits to native_stream() of its context and returns void or
  // Status. It must only submit, and be repeatable. It gets a parameter by value, which a capture keeps, so a new value
  // means another call; or, with OnDevice, a pointer to it. Runs on host devices only through HostFallback. With
  // PENSTOCK_ON_CUDA(f) the file also compiles where there is no CUDA (detail/on_cuda.h).
  template <class F, class... A>
  PENSTOCK_HIDDEN FallbackNode<detail::PointerStoredT<A>...> Launch(Name name, F f, A... args) {
    if constexpr (!std::is_invocable_v<F&, LaunchContext&, detail::PointerStoredT<A>...>) {
      detail::Explain<detail::AsLaunch<F>, A...>();
    }
    if (detail::IsNull(f)) RefuseNull(name, "callable");
    return Declare(std::move(name), NodeKind::kLaunch, [&](auto& node) {
      node.Code({.call = &detail::CallLaunch<F, detail::PointerStoredT<A>...>});
      node.template Arguments<detail::PointerStoredT<A>...>(args...);
      node.Callable(f);
    });
  }

  // Runs a C++ callable on a worker thread: f(args...), where an access arrives as a span of host memory, or as a View
  // if the callable takes one, as it must for slices whose rows are not adjacent. It may block, and may fail (return a
  // Status or throw). It must not launch runs or wait for them. Values and parameters may have any size. Workers block
  // nearly all signals, and child processes started here inherit that: reset the mask with sigprocmask before exec, or
  // with posix_spawnattr_setsigmask.
  template <class F, class... A>
  PENSTOCK_HIDDEN NodeRef Host(Name name, F f, A... args) {
    if constexpr (!detail::IsHostInvocable<F, detail::ViewStoredT<A>...>(std::index_sequence_for<A...>())) {
      detail::Explain<detail::AsHost<F>, A...>();
    }
    if (detail::IsNull(f)) RefuseNull(name, "callable");
    return Declare(std::move(name), NodeKind::kHost, [&](auto& node) {
      node.Code({.call = &detail::CallHost<F, detail::ViewStoredT<A>...>});
      node.template Arguments<detail::ViewStoredT<A>...>(args...);
      node.template Spans<F, detail::ViewStoredT<A>...>();
      node.Callable(f);
    });
  }

  // Constructs: control.h says what they do. One body of an If runs, the first if the condition holds; of a Switch the
  // one with the number that the condition gives. A While runs its body while the condition holds, and a Repeat `trips`
  // times: a number, a parameter, or what the one integer of a Read is when the Repeat begins (below 0 counts as 0, and
  // above 10^9 as 10^9). A body is a function of a Graph&, which is this one.
  template <class F, class... A, class Then, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN void If(Name name, const Condition<F, A...>& when, Then then) {
    const ControlId made = detail::ControlDeclaration::WithCondition<kNvcc, ControlKind::kIf>(*this, name, when);
    detail::ControlDeclaration::Body(*this, made, Name("then").In(name), then);
  }
  template <class F, class... A, class Then, class Else, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN void If(Name name, const Condition<F, A...>& when, Then then, Else otherwise) {
    const ControlId made = detail::ControlDeclaration::WithCondition<kNvcc, ControlKind::kIf>(*this, name, when);
    detail::ControlDeclaration::Body(*this, made, Name("then").In(name), then);
    detail::ControlDeclaration::Body(*this, made, Name("else").In(name), otherwise);
  }
  template <class F, class... A, class... Body, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN void Switch(Name name, const Condition<F, A...>& when, Body... bodies) {
    [[maybe_unused]] const ControlId made =
        detail::ControlDeclaration::WithCondition<kNvcc, ControlKind::kSwitch>(*this, name, when);
    int number = 0;
    (detail::ControlDeclaration::Body(*this, made, Name("case", number++).In(name), bodies), ...);
  }
  template <class F, class... A, class Body, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN void While(Name name, const Condition<F, A...>& when, WhileOptions options, Body body) {
    const ControlId made =
        detail::ControlDeclaration::WithCondition<kNvcc, ControlKind::kWhile>(*this, name, when, options);
    detail::ControlDeclaration::Body(*this, made, name, body);
  }
  template <class Body>
  PENSTOCK_HIDDEN void Repeat(Name name, Dim trips, Body body) {
    detail::ControlDeclaration::Body(*this, detail::ControlDeclaration::Repeated(*this, name, trips), name, body);
  }
  template <class T, class Body, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
  PENSTOCK_HIDDEN void Repeat(Name name, AccessOf<T, AccessMode::kRead> trips, Body body) {
    const ControlId made = detail::ControlDeclaration::Repeated<kNvcc>(*this, name, trips);
    detail::ControlDeclaration::Body(*this, made, name, body);
  }

  // Everything declared so far, for programs that inspect a graph.
  const Model& model() const& { return *model_; }
  const Model& model() const&& = delete;

 private:
  template <class T>
  PENSTOCK_HIDDEN static ParamDecl ParamOf(Name name) {
    static_assert(std::is_trivially_copyable_v<T>, "a parameter must be trivially copyable");
    return {std::move(name), detail::TypeOf<T>(), std::is_integral_v<T>, std::is_signed_v<T>, false, 0};
  }
  template <class T>
  PENSTOCK_HIDDEN static BufferDecl BufferOf(Name name, BufferRole role, Where where, const Extent& extent,
                                             int64_t pitch = 0, int device = -1) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    return {std::move(name), detail::TypeOf<T>(), role, where, extent, pitch, device};
  }
  template <class F>
  PENSTOCK_HIDDEN void CheckFunctor(const Name& name, const F& f) {
    static_assert(!detail::kIsDeviceLambda<F>, "a __device__ lambda has no host code; make it __host__ __device__");
    static_assert(
        std::is_trivially_copyable_v<F> || detail::kOwnsData<F>,
        "the functor goes to the device as bytes: it, and all that a lambda captures, must be trivially copyable");
    if (detail::IsNull(f)) RefuseNull(name, "functor");
  }
  template <bool kNvcc, int kExtentRank, class F, class... A>
  PENSTOCK_HIDDEN NodeRef AddParallelFor(Name name, const Extent& extent, F& f, A&... args) {
    CheckFunctor(name, f);
    constexpr auto kRankFor = &detail::FunctorRank<kExtentRank, F, detail::ViewStoredT<A>...>;
    if constexpr (kRankFor(kExtentRank) == 0) detail::Explain<detail::AsFunctor<F>, A...>();
    return Declare(std::move(name), NodeKind::kParallelFor, [&](auto& node) {
      const int rank = kRankFor(extent.rank);
      NodeCode code;
      const int64_t room = detail::RoomForViews<kNvcc, F>(args...);
      detail::FillParallelForCode<kNvcc, kExtentRank, F, A...>(code, rank, room);
      node.Code(code);
      node.Over(extent, detail::kTakesAnyExtent<F> ? extent.rank : rank);
      if constexpr (detail::kTakesLeaves<F>) node.Level(f.level, F::kByRows, f.later());
      if constexpr (detail::kTakesTiles<F>) node.Tiles(F::kLeavesOfBlock, F::kWorking);
      node.RoomForViews(room);
      node.template Arguments<detail::Range, F, detail::ViewStoredT<A>...>(detail::Range(), f, args...);
      if constexpr (detail::kOwnsData<F>) node.Functor(f);
    });
  }
  template <bool kNvcc, class F, class... A>
  PENSTOCK_HIDDEN NodeRef AddTask(Name name, const TaskOptions& options, F& f, A&... args) {
    CheckFunctor(name, f);
    constexpr bool kFits = detail::AsTask<F>::template kTakes<detail::ViewStoredT<A>...>;
    if constexpr (!kFits) detail::Explain<detail::AsTask<F>, A...>();
    return Declare(std::move(name), NodeKind::kParallelFor, [&](auto& node) {
      NodeCode code;
      const int64_t room = detail::RoomForViews<kNvcc, F>(args...);
      if constexpr (kFits) detail::FillCodeOfRank<kNvcc, detail::kTaskRank, F, A...>(code, room);
      node.Code(code);
      node.Over(1, 1);
      node.Shape(Blocks({1, 1, 1}, {options.threads, 1, 1}, options.shared_bytes));
      node.RoomForViews(room);
      node.template Arguments<detail::Range, F, detail::ViewStoredT<A>...>(detail::Range(), f, args...);
      if constexpr (detail::kOwnsData<F>) node.Functor(f);
    });
  }
  // Every kind of node is declared here. `describe(node)` names the node's parts, to be appended or compared.
  template <class Describe>
  PENSTOCK_HIDDEN NodeRef Declare(Name&& name, NodeKind kind, Describe describe) {
    PutInScope(name);
    NodeRef node(sink(), sink().Visit([&](auto& to) { return to.Node(std::move(name), kind, describe); }));
    return model_->scope_device == -1 ? node : node.On(model_->scope_device);
  }

  void PutInScope(Name& name) const {
    if (!model_->scope.view().empty()) name = name.In(model_->scope);
  }
  Name InScope(Name name) const {
    PutInScope(name);
    return name;
  }
  uint32_t serial() const { return model_->serial; }
  detail::DeclarationSink sink() const { return {model_.get(), matcher_}; }
  int32_t AddParam(ParamDecl decl);
  int32_t AddBuffer(BufferDecl decl);
  int32_t AddAlias(BufferDecl decl, uint32_t base_graph, int32_t base, const Box& box);
  int32_t AddState(const std::shared_ptr<const StateRecord>& state);
  void RefuseNull(Name name, const char* what);

  friend class detail::AlgorithmDeclaration;
  friend class detail::ControlDeclaration;
  friend class detail::ReduceDeclaration;
  friend class detail::ShardDeclaration;
  // Makes a graph that compares declarations on it with that model.
  friend class runtime::GraphCacheCore;
  Graph(std::shared_ptr<Model> model, detail::DeclarationMatcher* matcher)
      : model_(std::move(model)), matcher_(matcher) {}

  std::shared_ptr<Model> model_;  // never null
  detail::DeclarationMatcher* matcher_ = nullptr;  // null if declarations are appended to the model
};

}  // namespace penstock
