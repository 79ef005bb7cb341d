// Key: identifies the common source of launches or pipeline items: a camera, a client, an account.
//
// A graph with a KeyedState (graph.h) has one State per key; Order::kPerKey keeps the order of each key's items.
//
// Threads: a plain value.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>

namespace penstock {

struct Key {
  Key() = default;
  // A key made from a number; equal numbers are equal keys.
  explicit Key(uint64_t v) : value(v) {}
  uint64_t value = 0;
  friend bool operator==(Key, Key) = default;
};

}  // namespace penstock
