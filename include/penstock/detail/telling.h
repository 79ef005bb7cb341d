// Telling: a condition whose kernel also writes how far its loop has come (Condition::Count and Capped).
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>

#include "penstock/access.h"
#include "penstock/detail/decision.h"
#include "penstock/detail/host_device.h"
#include "penstock/export.h"

namespace penstock::detail {

// What each evaluation of a condition writes, and where: one element, before the condition is asked or when it has
// been. As types they also stand in the kernel's name.
template <class T>
struct ToldCount {
  static_assert(std::is_integral_v<T> && sizeof(T) >= 4, "penstock: Count takes a buffer of 32 or 64 bit integers");
  using value_type = T;
  static constexpr uint64_t kMost = std::numeric_limits<T>::max();
  AccessOf<T, AccessMode::kWrite> to;
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static void Before(T& to, const Evaluation& at) {
    to = static_cast<uint64_t>(at.done) < kMost ? static_cast<T>(at.done) : static_cast<T>(kMost);
  }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static void After(T& /*to*/, const Evaluation& /*at*/, bool /*holds*/) {}
};
template <class T>
struct ToldCap {
  static_assert(std::is_integral_v<T>, "penstock: Capped takes a buffer of integers or of bool");
  using value_type = T;
  AccessOf<T, AccessMode::kWrite> to;
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static void Before(T& /*to*/, const Evaluation& /*at*/) {}
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static void After(T& to, const Evaluation& at, bool holds) {
    to = static_cast<T>(holds && at.left <= 0 ? 1 : 0);
  }
};

// The functor of a condition that tells.
template <class F, class... Told>
struct Telling {
  F functor;
  std::tuple<Told...> told;
};
template <class F>
inline constexpr bool kTells = false;
template <class F, class... Told>
inline constexpr bool kTells<Telling<F, Told...>> = true;

// The functor that tells this too.
template <class F, class One>
PENSTOCK_HIDDEN Telling<F, One> AlsoTelling(const F& functor, const One& one) {
  return {functor, std::tuple<One>(one)};
}
template <class F, class... Told, class One>
PENSTOCK_HIDDEN Telling<F, Told..., One> AlsoTelling(const Telling<F, Told...>& tells, const One& one) {
  return {tells.functor, std::tuple_cat(tells.told, std::tuple<One>(one))};
}

}  // namespace penstock::detail
