// Accesses: what a node does to a buffer, or to a box of it.
//
//   graph.ParallelFor("top", {h / 2, w}, Blur{}, ps::Read(x), ps::Write(y, ps::Slice({0, 0}, {h / 2, w})));
//
// The planner orders nodes by their accesses: two nodes that touch a common element, at least one of them writing it,
// run in declaration order. It compares boxes, not addresses, so column tiles, whose rows interleave in memory, stay
// independent. An access whose offset comes from a parameter counts as an access to the whole buffer; a size that is a
// parameter counts with its declared maximum. A launch refuses a box that leaves the buffer.
//
// The memory that the callable gets begins at the box's first element. A View has the box's shape and the buffer's own
// pitches, a plain pointer has no shape, and a host callable gets a std::span if the box is contiguous (otherwise it
// takes a View).
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/extent.h"
#include "penstock/handle.h"

namespace penstock {

struct StateRecord;

// How a node uses the elements of the box. The lowest bit says that it needs their contents.
//   kRead       reads them: what the node's device lacks of the box is copied there, and no byte that no node there
//               needs
//   kWrite      writes every one of them, so nothing is copied there first
//   kReadWrite  reads and writes them
//   kWriteSome  writes some of them and reads none
//   kScratch    writes and reads them, and their contents are undefined before and after
enum class AccessMode : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3, kWriteSome = 6, kScratch = 10 };

// An access of element type T; the mode tells a functor whether it gets T* or const T*.
template <class T, AccessMode M>
struct AccessOf {
  using value_type = T;
  static constexpr AccessMode kMode = M;  // the mode M
  BufferHandle<T> buffer;  // the buffer that is accessed
  Box box{};  // the part of it
  bool unordered = false;  // set by Unordered
  std::shared_ptr<const StateRecord> state{};  // instead of a buffer: see state.h
  bool uncopied = false;  // set by WithoutCopy
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

// For a node that cannot know before it runs which elements it writes, such as a compaction. It may not read any, and
// needs no contents. Later nodes may read all of them: what this node has not written is unspecified in a Buffer, and
// keeps its value in a State or in bound memory. For this, contents are copied to the node's device first if they
// outlive the run and are not there; for a Buffer never. A node that needs what is there says ReadWrite.
template <class T>
AccessOf<T, AccessMode::kWriteSome> WriteSome(BufferHandle<T> buffer, const Box& box = {}) {
  return {buffer, box};
}
// For a workspace: a Buffer whose contents matter only while the node runs. It is never copied anywhere, and each node
// that uses all of it as scratch may get other bytes for it, which other buffers share before and after. Nodes with the
// same scratch still run one after another; give each its own Buffer if they shall overlap.
template <class T>
AccessOf<T, AccessMode::kScratch> Scratch(BufferHandle<T> buffer, const Box& box = {}) {
  return {buffer, box};
}

// The same access, but the planner derives no order from it. The caller states the order with NodeRef::After; Compile
// reports two conflicting nodes that nothing orders as a mistake.
template <class T, AccessMode M>
AccessOf<T, M> Unordered(AccessOf<T, M> access) {
  access.unordered = true;
  return access;
}

// The same access, but if the elements are on another device whose memory the node's device can read, a kernel reads
// them there over the link, and nothing is copied: for a few elements that one node reads about once, such as the rows
// of a neighbour. NVLink brings them after about a microsecond. Otherwise they are copied as usual, as for a Host node,
// in constructs, in memory that the application has allocated, and if the node itself writes some of them; a remark of
// the plan says where that is so for the device's sake.
template <class T>
AccessOf<T, AccessMode::kRead> WithoutCopy(AccessOf<T, AccessMode::kRead> access) {
  access.uncopied = true;
  return access;
}

// Accesses as one argument.
template <class T, AccessMode M>
struct AllOf {
  using value_type = T;
  std::vector<AccessOf<T, M>> accesses;  // in the order in which the callable sees them
};

// Gives a callable a list of Views (views.h), one for each of these accesses, whose number only the running program
// knows. They count as any other accesses of the node.
template <class T, AccessMode M>
AllOf<T, M> All(std::vector<AccessOf<T, M>> accesses) {
  return {std::move(accesses)};
}

namespace detail {
// The accesses to what a range has: buffers, or States (state.h).
template <std::ranges::input_range R, class F>
auto AllBy(R&& range, F access) {
  std::vector<std::decay_t<decltype(access(*std::ranges::begin(range)))>> accesses;
  for (auto&& to : range) accesses.push_back(access(to));
  return penstock::All(std::move(accesses));
}
}  // namespace detail

// The list of all of these buffers or States, which a vector, array or span holds.
//
//   std::vector<ps::BufferHandle<float>> gradients = ...;
//   graph.ParallelFor("sum", n, Sum{}, ps::ReadAll(gradients), ps::Write(sum));
template <std::ranges::input_range R>
auto ReadAll(R&& buffers) {
  return detail::AllBy(buffers, [](const auto& to) { return Read(to); });
}
template <std::ranges::input_range R>
auto WriteAll(R&& buffers) {
  return detail::AllBy(buffers, [](const auto& to) { return Write(to); });
}
template <std::ranges::input_range R>
auto ReadWriteAll(R&& buffers) {
  return detail::AllBy(buffers, [](const auto& to) { return ReadWrite(to); });
}

// A parameter's value in the memory of the node's device.
template <class T>
struct OnDeviceOf {
  using value_type = T;
  ParamHandle<T> param;
};

// Gives the callable of a Launch node, or a kernel, a const T* to the value instead of the value itself. Library calls
// that read their scalars on the device (cuBLAS in device pointer mode) then need no new capture when the parameter
// changes: each run copies the value there once, however many nodes read it.
//
//   graph.Launch("gemv", Gemv, ps::OnDevice(alpha), ps::Read(a), ps::Read(x), ps::Write(y)).HostFallback(GemvOnHost);
template <class T>
OnDeviceOf<T> OnDevice(ParamHandle<T> param) {
  return {param};
}

}  // namespace penstock
