// Typed handles on a graph's parameters and buffers. access.h describes how nodes use a buffer.
//
// A handle is an index and the serial number of its graph. It owns nothing and may outlive the graph. Another graph,
// and whatever belongs to one, refuses it with a Status and never follows it.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

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
