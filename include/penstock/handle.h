// Typed handles on what a graph declares: parameters and buffers, and the accesses a node makes to them.
//
// A handle is an index and the serial of its graph. It owns nothing, may outlive the graph, and is refused with a
// Status (never followed) by anything that belongs to another graph.
//
// Threads: plain values.
#pragma once

#include <cstdint>

namespace penstock {

// A value set at launch. Made by Graph::Param.
template <class T>
class ParamHandle {
 public:
  using value_type = T;
  ParamHandle() = default;
  ParamHandle(uint32_t graph, int32_t index) : graph_(graph), index_(index) {}
  uint32_t graph() const { return graph_; }
  int32_t index() const { return index_; }

 private:
  uint32_t graph_ = 0;
  int32_t index_ = -1;
};

// A block of elements. Made by Graph::Input, Output, InOut and Buffer.
template <class T>
class BufferHandle {
 public:
  using value_type = T;
  BufferHandle() = default;
  BufferHandle(uint32_t graph, int32_t index) : graph_(graph), index_(index) {}
  uint32_t graph() const { return graph_; }
  int32_t index() const { return index_; }

 private:
  uint32_t graph_ = 0;
  int32_t index_ = -1;
};

// How a node uses a buffer. kWrite promises to write every element, so nothing is brought there first; a node that
// writes only some of them says kReadWrite.
enum class AccessMode : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

// An access of element type T; `Mutable` tells a functor whether it gets T* or const T*.
template <class T, AccessMode M>
struct AccessOf {
  using value_type = T;
  static constexpr AccessMode kMode = M;
  BufferHandle<T> buffer;
};

template <class T>
AccessOf<T, AccessMode::kRead> Read(BufferHandle<T> buffer) {
  return {buffer};
}
template <class T>
AccessOf<T, AccessMode::kWrite> Write(BufferHandle<T> buffer) {
  return {buffer};
}
template <class T>
AccessOf<T, AccessMode::kReadWrite> ReadWrite(BufferHandle<T> buffer) {
  return {buffer};
}

}  // namespace penstock
