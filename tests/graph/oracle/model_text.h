// A declared graph as text, for failures: buffers, then nodes with their accesses and After.
#pragma once

#include <string>

#include "penstock/detail/model.h"

namespace penstock::graph {

std::string ModelText(const Model& model);

}  // namespace penstock::graph
