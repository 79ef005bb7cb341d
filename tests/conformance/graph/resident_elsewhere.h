// A node that another translation unit than its caller's declares.
#pragma once

#include <string>

#include "penstock/graph.h"

namespace penstock::conformance {

// Adds 10 to each of the first `n` elements.
void AddTenElsewhere(Graph& graph, const std::string& name, int64_t n, BufferHandle<int32_t> x);

}  // namespace penstock::conformance
