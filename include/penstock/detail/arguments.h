// How a node's arguments are typed, laid out in its argument block, and unpacked for a call.
//
// A declared argument is an access (Read, Write, ReadWrite), All of some, a parameter handle, or a plain value. Each
// maps to the type `Stored` in the block: View<T> or T* for an access, T for a parameter, the value's own type for a
// value. All of accesses maps to Views<T>, which stands for a ViewTable<T, n> in the block, where n is known only at
// run time.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/detail/model.h"
#include "penstock/detail/type_of.h"
#include "penstock/export.h"
#include "penstock/views.h"

namespace penstock::detail {

// The extent of a ParallelFor in one run; unused dimensions are 1. Of a Task the width is its shared memory, in bytes.
struct Range {
  int64_t depth, height, width;
};
// Stands in templates for the rank of an index where the functor takes a Block (task.h) in place of one.
PENSTOCK_HIDDEN inline constexpr int kTaskRank = -1;

template <class A>
struct IsAccess : std::false_type {};
template <class T, AccessMode M>
struct IsAccess<AccessOf<T, M>> : std::true_type {};
template <class A>
struct IsParam : std::false_type {};
template <class T>
struct IsParam<ParamHandle<T>> : std::true_type {};

template <class A>
struct IsOnDevice : std::false_type {};
template <class T>
struct IsOnDevice<OnDeviceOf<T>> : std::true_type {};
template <class A>
struct IsAll : std::false_type {};
template <class T, AccessMode M>
struct IsAll<AllOf<T, M>> : std::true_type {};
// How many Views a declared argument has in a table.
template <class A>
PENSTOCK_HIDDEN size_t ViewsIn([[maybe_unused]] const A& arg) {
  if constexpr (IsAll<A>::value) return arg.accesses.size();
  else return 0;
}
// How many of the declared arguments A are single accesses; OnDevice counts, since it reads a buffer of the graph.
template <class... A>
inline constexpr size_t kAccesses = (size_t{0} + ... + size_t{IsAccess<A>::value || IsOnDevice<A>::value});

// The element type that a callable sees: const if the access only reads.
template <class A>
struct ElementOf;
template <class T, AccessMode M>
struct ElementOf<AccessOf<T, M>> {
  using type = std::conditional_t<M == AccessMode::kRead, const T, T>;
};

// Argument types in the block, for each kind of callable.
template <class A>
struct PlainStored {
  using type = std::decay_t<A>;
  static_assert(std::is_trivially_copyable_v<type>, "an argument by value must be trivially copyable");
};
template <class T>
struct PlainStored<ParamHandle<T>> {
  using type = T;
};
template <class A>
struct ViewStored : PlainStored<A> {};
template <class T, AccessMode M>
struct ViewStored<AccessOf<T, M>> {
  using type = View<typename ElementOf<AccessOf<T, M>>::type>;
};
template <class T, AccessMode M>
struct ViewStored<AllOf<T, M>> {
  using type = Views<typename ElementOf<AccessOf<T, M>>::type>;
};
template <class T>
inline constexpr bool kHasNoOnDevice = false;
template <class T>
struct ViewStored<OnDeviceOf<T>> {
  static_assert(kHasNoOnDevice<T>, "OnDevice is for Launch and Kernel nodes; here name the parameter itself");
  using type = T;
};
template <class A>
struct PointerStored : PlainStored<A> {};
template <class T, AccessMode M>
struct PointerStored<AccessOf<T, M>> {
  using type = typename ElementOf<AccessOf<T, M>>::type*;
};
template <class T, AccessMode M>
struct PointerStored<AllOf<T, M>> : ViewStored<AllOf<T, M>> {};
template <class T>
struct PointerStored<OnDeviceOf<T>> {
  using type = const T*;
};
template <class A>
using ViewStoredT = typename ViewStored<std::decay_t<A>>::type;
template <class A>
using PointerStoredT = typename PointerStored<std::decay_t<A>>::type;

template <class S>
inline constexpr bool kIsViews = false;
template <class T>
inline constexpr bool kIsViews<Views<T>> = true;
// The element type and the room of a ViewTable; 0 for any other type, a Views among them.
template <class S>
struct TableOf {
  using element = void;
  static constexpr int64_t kRoom = 0;
};
template <class T>
struct TableOf<Views<T>> {
  using element = T;
  static constexpr int64_t kRoom = 0;
};
template <class T, size_t kMost>
struct TableOf<ViewTable<T, kMost>> {
  using element = T;
  static constexpr auto kRoom = static_cast<int64_t>(kMost);
};
// Where the Views of a ViewTable<T, n> begin, whatever T and n are.
inline constexpr uint32_t kFirstView = sizeof(int64_t);
static_assert(sizeof(ViewTable<char, 1>) == kFirstView + sizeof(View<char>));
// What a callable sees of the table at `at`, which need not have room for more than its count.
template <class T>
PENSTOCK_HIDDEN Views<T> ViewsAt(const void* at) {
  return {reinterpret_cast<const View<T>*>(static_cast<const std::byte*>(at) + kFirstView),
          *static_cast<const int64_t*>(at)};
}

// A parameter whose value is read when the code runs.
template <class T>
struct Ref {
  const T* at;
};
template <class T>
inline constexpr bool kIsRef = false;
template <class T>
inline constexpr bool kIsRef<Ref<T>> = true;
// How the by-reference code of a ParallelFor gets a declared argument.
template <class A>
struct RefStored : ViewStored<A> {};
template <class T>
struct RefStored<ParamHandle<T>> {
  using type = Ref<T>;
};
template <class A>
using RefStoredT = typename RefStored<std::decay_t<A>>::type;
template <class... A>
inline constexpr size_t kParams = (size_t{0} + ... + size_t{IsParam<std::decay_t<A>>::value});

// How a stored argument is passed on: unchanged, or a View as a span.
template <class Stored>
struct PassStored {
  using type = Stored;
  static type From(void* p) { return *static_cast<Stored*>(p); }
};
template <class T>
struct PassStored<Views<T>> {
  using type = Views<T>;
  static type From(void* p) { return ViewsAt<T>(p); }
};
template <class Stored>
struct PassSpan : PassStored<Stored> {};
template <class T>
struct PassSpan<View<T>> {
  using type = std::span<T>;
  static type From(void* p) {
    const auto& view = *static_cast<const View<T>*>(p);
    return {view.data, static_cast<size_t>(view.depth * view.height * view.width)};
  }
};

// Converts to everything that a host callable may take for an access, to detect which it takes; never
// instantiated at run time.
template <class Stored>
struct SpanOrView {
  using type = Stored;
};
template <class T>
struct SpanOrView<View<T>> {
  struct type {
    template <class U>
      requires std::is_same_v<U, T> || std::is_same_v<U, const T>
    operator std::span<U>() const;
    operator View<T>() const;
  };
};

// Whether a host callable takes argument I as a span. A callable that accepts spans for all is not examined further,
// since it may be generic.
template <class F, size_t I, class... Stored, size_t... J>
PENSTOCK_HIDDEN constexpr bool TakesSpan(std::index_sequence<J...>) {
  if constexpr (std::is_invocable_v<F&, typename PassSpan<Stored>::type...>) {
    return true;
  } else {
    return std::is_invocable_v<F&, typename std::conditional_t<I == J, PassSpan<Stored>, SpanOrView<Stored>>::type...>;
  }
}
// How a host callable gets argument I, which is stored as S.
template <class F, size_t I, class S, class... Stored>
using HostPass =
    std::conditional_t<TakesSpan<F, I, Stored...>(std::index_sequence_for<Stored...>()), PassSpan<S>, PassStored<S>>;

template <class F, class... Stored, size_t... I>
PENSTOCK_HIDDEN constexpr bool IsHostInvocable(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, typename HostPass<F, I, Stored, Stored...>::type...>;
}

// Calls the functor of a ParallelFor for one element, with an index of rank kRank.
template <int kRank, class F, class... Stored>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void CallAt(const F& f, int64_t z, int64_t y, int64_t x,
                                                        const Stored&... args) {
  if constexpr (kRank == 1) f(x, args...);
  else if constexpr (kRank == 2) f(Index2{y, x}, args...);
  else f(Index3{z, y, x}, args...);
}

// Reserves bytes at the end of a node's argument block.
inline uint32_t Reserve(NodeDecl& node, uint32_t size, uint32_t align) {
  const size_t offset = (node.arg_block.size() + align - 1) / align * align;
  node.arg_block.resize(offset + size);
  return static_cast<uint32_t>(offset);
}

// Whether the bytes of a functor are good only as long as the object lives. So it is, in host code, with a __host__
// __device__ lambda that captures: nvcc adds `data`, which points to what the host calls, to what was captured. Device
// code has the lambda itself, so compiling it finds captures that cannot be copied as bytes.
template <class F>
inline constexpr bool kOwnsData = false;
// Whether a functor is a lambda without code for host devices.
template <class F>
inline constexpr bool kIsDeviceLambda = false;
#if defined(__CUDACC_EXTENDED_LAMBDA__)
#if !defined(__CUDA_ARCH__)
template <class F>
  requires(__nv_is_extended_host_device_lambda_closure_type(F) && !std::is_trivially_copyable_v<F>)
inline constexpr bool kOwnsData<F> = true;
#endif
template <class F>
  requires(__nv_is_extended_device_lambda_closure_type(F))
inline constexpr bool kIsDeviceLambda<F> = true;
#endif

// Whether there is nothing to call: a null pointer, or an empty wrapper such as std::function or absl::AnyInvocable.
// Wrappers have an explicit operator bool or compare with nullptr; a type that converts to bool implicitly, as a lambda
// does through a function pointer, is not one.
template <class F>
constexpr bool IsNull([[maybe_unused]] const F& f) {
  if constexpr (std::is_pointer_v<F> || std::is_member_pointer_v<F>) {
    return f == nullptr;
  } else if constexpr (!std::is_class_v<F> || std::is_convertible_v<const F&, bool>) {
    return false;
  } else if constexpr (std::is_constructible_v<bool, const F&>) {
    return !static_cast<bool>(f);
  } else if constexpr (requires { static_cast<bool>(f == nullptr); }) {
    return static_cast<bool>(f == nullptr);
  } else {
    return false;
  }
}

// Calls `f` with the stored arguments unpacked from argv as Pass says; a void result counts as OK.
template <class... Pass, class F, size_t... I, class... Lead>
PENSTOCK_HIDDEN absl::Status CallUnpacked(F& f, void* const* argv, std::index_sequence<I...>, Lead&&... lead) {
  using Result = decltype(f(std::forward<Lead>(lead)..., Pass::From(argv[I])...));
  if constexpr (std::is_void_v<Result>) {
    f(std::forward<Lead>(lead)..., Pass::From(argv[I])...);
    return absl::OkStatus();
  } else {
    return f(std::forward<Lead>(lead)..., Pass::From(argv[I])...);
  }
}

template <class F, class... Stored, size_t... I>
PENSTOCK_HIDDEN absl::Status CallHostUnpacked(F& f, void* const* argv, std::index_sequence<I...> all) {
  return CallUnpacked<HostPass<F, I, Stored, Stored...>...>(f, argv, all);
}
template <class F, class... Stored>
PENSTOCK_HIDDEN absl::Status CallHost(void* f, LaunchContext*, void* const* argv) {
  return CallHostUnpacked<F, Stored...>(*static_cast<F*>(f), argv, std::index_sequence_for<Stored...>());
}
template <class F, class... Stored>
PENSTOCK_HIDDEN absl::Status CallLaunch(void* f, LaunchContext* launch, void* const* argv) {
  return CallUnpacked<PassStored<Stored>...>(*static_cast<F*>(f), argv, std::index_sequence_for<Stored...>(), *launch);
}
template <class F, class... Stored>
PENSTOCK_HIDDEN absl::Status CallFallback(void* f, void* const* argv) {
  return CallUnpacked<PassStored<Stored>...>(*static_cast<F*>(f), argv, std::index_sequence_for<Stored...>());
}

// Moves the callable to the heap, to be destroyed by code of this shared object.
template <class F>
PENSTOCK_HIDDEN void DestroyCallable(void* f) {
  delete static_cast<F*>(f);
}
template <class F>
PENSTOCK_HIDDEN std::shared_ptr<void> ShareCallable(F& f) {
  return {static_cast<void*>(new F(std::move(f))), &DestroyCallable<F>};
}

// The code of a condition (declare_control.h): a functor of one element that a kernel runs by all threads of its only
// block, RunByBlock(functor, arguments...), and a resident region by Evaluate.
template <class F>
inline constexpr bool kTakesBlock = false;

}  // namespace penstock::detail
