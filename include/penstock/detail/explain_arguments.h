// Says at compile time which argument of a node does not fit its callable, and what the callable gets for it.
//
// Messages count the arguments after the callable from 1. A compiler's note on the same error shows how the argument is
// declared, and with which element type, as the `A` of ArgumentFits or CheckKernelArg. Nothing but CheckKernelArg is
// instantiated for a callable that fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/detail/arguments.h"
#include "penstock/export.h"
#include "penstock/task.h"

namespace penstock::detail {

// Names the argument that does not fit.
template <size_t kNumber, bool kFits>
PENSTOCK_HIDDEN constexpr void CheckNumber() {
  static_assert(kFits || kNumber != 1, "penstock: argument 1 of those for the callable does not fit");
  static_assert(kFits || kNumber != 2, "penstock: argument 2 of those for the callable does not fit");
  static_assert(kFits || kNumber != 3, "penstock: argument 3 of those for the callable does not fit");
  static_assert(kFits || kNumber != 4, "penstock: argument 4 of those for the callable does not fit");
  static_assert(kFits || kNumber != 5, "penstock: argument 5 of those for the callable does not fit");
  static_assert(kFits || kNumber != 6, "penstock: argument 6 of those for the callable does not fit");
  static_assert(kFits || kNumber <= 6, "penstock: argument kNumber of those for the callable does not fit");
}

// Refuses an argument A for a kernel's argument of type K.
template <size_t kNumber, class K, class A>
PENSTOCK_HIDDEN constexpr void CheckKernelArg() {
  if constexpr (IsAccess<A>::value) {
    constexpr bool kFits = std::is_convertible_v<PointerStoredT<A>, K> || std::is_same_v<ViewStoredT<A>, K>;
    CheckNumber<kNumber, kFits>();
    static_assert(kFits,
                  "the kernel takes another element type, or writes what the access only reads: a Read of T gives "
                  "const T* or View<const T>, a Write or ReadWrite T* or View<T>");
  } else if constexpr (IsAll<A>::value) {
    using Table = TableOf<std::remove_cv_t<K>>;
    constexpr bool kFits =
        Table::kRoom > 0 && std::is_same_v<typename Table::element, typename TableOf<ViewStoredT<A>>::element>;
    CheckNumber<kNumber, kFits>();
    static_assert(kFits, "a kernel takes All of accesses to T as a ps::ViewTable<T, n>, of const T if they only read");
  } else if constexpr (IsOnDevice<A>::value) {
    constexpr bool kFits = std::is_pointer_v<K> && std::is_convertible_v<PointerStoredT<A>, K>;
    CheckNumber<kNumber, kFits>();
    static_assert(kFits, "OnDevice gives the kernel a const pointer to the parameter's type");
  } else if constexpr (IsParam<A>::value) {
    constexpr bool kFits = std::is_same_v<typename A::value_type, std::remove_cv_t<K>>;
    CheckNumber<kNumber, kFits>();
    static_assert(kFits, "the kernel takes K, and the parameter has another type, that of A, a ParamHandle");
  } else {
    constexpr bool kFits = std::is_convertible_v<A, K>;
    CheckNumber<kNumber, kFits>();
    static_assert(kFits, "the value, an A, does not convert to the K that the kernel takes");
  }
}
template <class Kernel, class... A>
struct KernelArguments;
template <class... K, class... A>
struct KernelArguments<std::tuple<K...>, A...> {
  template <size_t... I>
  PENSTOCK_HIDDEN static constexpr void Check(std::index_sequence<I...>) {
    (CheckKernelArg<I + 1, K, A>(), ...);
  }
};

// Converts to whatever a callable takes by value or const reference.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT: implicit
};

// Callables by what they get: kTakes says whether one can be called with arguments of these types.
template <class F>
struct AsFunctor {  // of a ParallelFor
  template <class... P>
  static constexpr bool kTakes =
      std::is_invocable_v<const F&, int64_t, P...> || std::is_invocable_v<const F&, Index2, P...> ||
      std::is_invocable_v<const F&, Index3, P...>;
  template <class A>
  using Passed = ViewStoredT<A>;
};
template <class F>
struct AsTask {
  template <class... P>
  static constexpr bool kTakes = std::is_invocable_v<const F&, const Block&, P...>;
  template <class A>
  using Passed = ViewStoredT<A>;
};
template <class F>
struct AsLaunch {
  template <class... P>
  static constexpr bool kTakes = std::is_invocable_v<F&, LaunchContext&, P...>;
  template <class A>
  using Passed = PointerStoredT<A>;
};
template <class F>
struct AsHost {
  template <class... P>
  static constexpr bool kTakes = std::is_invocable_v<F&, P...>;
  template <class A>
  using Passed = typename SpanOrView<ViewStoredT<A>>::type;
};
template <class F>
struct AsFallback {  // its arguments are those of the device code, and have its types
  template <class... P>
  static constexpr bool kTakes = std::is_invocable_v<F&, P...>;
  template <class A>
  using Passed = A;
};
template <class Call, template <class> class As>
inline constexpr bool kIs = false;
template <class F, template <class> class As>
inline constexpr bool kIs<As<F>, As> = true;
template <class Call>
inline constexpr bool kIsFunctor = kIs<Call, AsFunctor> || kIs<Call, AsTask>;

// Refuses argument A of a Call unless it fits, and says what it gives.
template <size_t kNumber, class Call, class A, bool kFits>
PENSTOCK_HIDDEN constexpr bool ArgumentFits() {
  CheckNumber<kNumber, kFits>();
  if constexpr (kIs<Call, AsFallback>) {
    static_assert(kFits, "the host fallback takes the arguments of the device code; this one is an A");
  } else if constexpr (IsParam<A>::value) {
    static_assert(kFits, "a parameter of type T gives its value, a T");
  } else if constexpr (IsAll<A>::value) {
    static_assert(kFits, "All of accesses to T gives a ps::Views<T>, of const T if they only read");
  } else if constexpr (IsOnDevice<A>::value) {
    static_assert(kFits, "OnDevice of a parameter of type T gives a const T*");
  } else if constexpr (!IsAccess<A>::value) {
    static_assert(kFits, "a value gives a copy of itself, of its own type");
  } else if constexpr (std::is_const_v<typename ElementOf<A>::type>) {
    static_assert(kFits || !kIsFunctor<Call>, "a Read of T gives a functor const T* or View<const T>");
    static_assert(kFits || !(kIs<Call, AsLaunch>), "a Read of T gives a Launch node const T*");
    static_assert(kFits || !(kIs<Call, AsHost>), "a Read of T gives a Host node std::span<const T> or View<const T>");
  } else {
    static_assert(kFits || !kIsFunctor<Call>, "a Write or ReadWrite of T gives a functor T* or View<T>");
    static_assert(kFits || !(kIs<Call, AsLaunch>), "a Write or ReadWrite of T gives a Launch node T*");
    static_assert(kFits || !(kIs<Call, AsHost>), "a Write or ReadWrite of T gives a Host node std::span<T> or View<T>");
  }
  return kFits;
}

// Whether the Call takes argument I as it is, whatever the others are.
template <class Call, size_t I, class... A, size_t... J>
PENSTOCK_HIDDEN constexpr bool TakesArgument(std::index_sequence<J...>) {
  return Call::template kTakes<std::conditional_t<I == J, typename Call::template Passed<A>, Anything>...>;
}
template <size_t>
struct AnythingAt : Anything {};

template <class Call, class... A, size_t... I>
PENSTOCK_HIDDEN constexpr void ExplainArguments(std::index_sequence<I...> all) {
  if constexpr (Call::template kTakes<AnythingAt<I>...>) {
    constexpr bool kAllFit = (ArgumentFits<I + 1, Call, A, TakesArgument<Call, I, A...>(all)>() && ... && true);
    static_assert(!kAllFit, "penstock: the callable cannot be called with these arguments together");
  } else {
    static_assert(
        !(kIs<Call, AsFunctor>),
        "penstock: the functor cannot be called with an index and as many arguments as follow it; its "
        "operator() is const, and takes an int64_t, Index2 or Index3 and then each of them, not by reference");
    static_assert(
        !(kIs<Call, AsTask>),
        "penstock: the functor of a Task cannot be called with a ps::Block and as many arguments as follow it; its "
        "operator() is const, and takes a const ps::Block& and then each of them, not by reference");
    static_assert(!(kIs<Call, AsLaunch>),
                  "penstock: the callable cannot be called with a LaunchContext& and as many arguments as follow it");
    static_assert(!(kIs<Call, AsHost>), "penstock: the callable cannot be called with as many arguments as follow it");
    static_assert(!(kIs<Call, AsFallback>),
                  "penstock: the host fallback cannot be called with as many arguments as the device code has");
  }
}
// Refuses a Call, which does not take arguments A.
template <class Call, class... A>
PENSTOCK_HIDDEN constexpr void Explain() {
  ExplainArguments<Call, A...>(std::index_sequence_for<A...>());
}

}  // namespace penstock::detail
