// Typed handles on what a graph declares: parameters and buffers. What a node does to a buffer is in access.h.
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
  // For the library: entry `index` of the graph with the serial number `graph`.
  ParamHandle(uint32_t graph, int32_t index) : graph_(graph), index_(index) {}
  // The serial number of the graph; 0 for a default-constructed handle.
  uint32_t graph() const { return graph_; }
  // The index in the graph; -1 for a default-constructed handle.
  int32_t index() const { return index_; }

 private:
  uint32_t graph_ = 0;
  int32_t index_ = -1;
};

// A block of elements. Made by Graph::Input, Output, InOut, Buffer and Alias.
template <class T>
class BufferHandle {
 public:
  using value_type = T;
  BufferHandle() = default;
  // For the library: entry `index` of the graph with the serial number `graph`.
  BufferHandle(uint32_t graph, int32_t index) : graph_(graph), index_(index) {}
  // The serial number of the graph; 0 for a default-constructed handle.
  uint32_t graph() const { return graph_; }
  // The index in the graph; -1 for a default-constructed handle.
  int32_t index() const { return index_; }

 private:
  uint32_t graph_ = 0;
  int32_t index_ = -1;
};

}  // namespace penstock
