// What the program and its plugins agree on.
#pragma once

#include "penstock/ps.h"

struct Part {
  // Four nodes that add ADDS each to four elements, two of them times a parameter. `alive` counts callables.
  void (*declare)(ps::Graph& graph, ps::ParamHandle<float> by, ps::BufferHandle<float> x, int* alive);
  int (*run_own)();  // what the elements become in a graph of its own that begins with zeros, by one; -1, -2: a failure
  int (*declare_pixels)(ps::Graph& graph);
  void (*read_pixels)(ps::Graph& graph, uint32_t serial, int index);
};
