// Accesses: what a node does to a buffer, or to a box of it.
//
//   graph.ParallelFor("top", {h / 2, w}, Blur{}, ps::Read(x), ps::Write(y, ps::Slice({0, 0}, {h / 2, w})));
//
// The planner puts nodes in order from their accesses: two that touch a common element, one of them writing, run in the
// order they were declared in. That is decided on boxes, not on addresses, so column tiles, whose rows interleave in
// memory, stay independent. Where an offset comes from a parameter the access counts as one of the whole buffer, and a
// size that is a parameter counts with its declared maximum; at launch a box that leaves the buffer is refused.
//
// What the callable gets begins at the box's first element: a View has the box's shape and the buffer's own pitches, a
// plain pointer has no shape, and a host callable gets a std::span where the box is contiguous (else it takes a View).
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <memory>

#include "penstock/extent.h"
#include "penstock/handle.h"

namespace penstock {

struct StateRecord;

// How a node uses a buffer. kWrite promises to write every element of the box, so nothing is brought there first; a
// node that writes only some of them says kReadWrite.
enum class AccessMode : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

// An access of element type T; the mode tells a functor whether it gets T* or const T*.
template <class T, AccessMode M>
struct AccessOf {
  using value_type = T;
  static constexpr AccessMode kMode = M;  // the mode M
  BufferHandle<T> buffer;  // the buffer that is accessed
  Box box{};  // the part of it
  bool unordered = false;  // set by Unordered
  std::shared_ptr<const StateRecord> state{};  // instead of a buffer: see state.h
};

// All of the buffer, or the box of it that Slice (extent.h) names.
template <class T>
AccessOf<T, AccessMode::kRead> Read(BufferHandle<T> buffer, const Box& box = {}) {
  return {buffer, box};
}
template <class T>
AccessOf<T, AccessMode::kWrite> Write(BufferHandle<T> buffer, const Box& box = {}) {
  return {buffer, box};
}
template <class T>
AccessOf<T, AccessMode::kReadWrite> ReadWrite(BufferHandle<T> buffer, const Box& box = {}) {
  return {buffer, box};
}

// The same access, but no order follows from it. The caller says by NodeRef::After what must be; two conflicting nodes
// that nothing orders are a mistake that Compile reports.
template <class T, AccessMode M>
AccessOf<T, M> Unordered(AccessOf<T, M> access) {
  access.unordered = true;
  return access;
}

// A parameter's value in the memory of the node's device.
template <class T>
struct OnDeviceOf {
  using value_type = T;
  ParamHandle<T> param;
};

// The callable of a Launch node, or a kernel, gets a const T* to the value instead of the value itself. So library
// calls that read their scalars on the device (cuBLAS in its device pointer mode) stay as they were captured when the
// parameter is set anew: each run brings it there by one small copy, however many nodes read it.
//
//   graph.Launch("gemv", Gemv, ps::OnDevice(alpha), ps::Read(a), ps::Read(x), ps::Write(y)).HostFallback(GemvOnHost);
template <class T>
OnDeviceOf<T> OnDevice(ParamHandle<T> param) {
  return {param};
}

}  // namespace penstock
