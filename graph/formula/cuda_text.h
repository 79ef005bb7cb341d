// The text of a kernel that computes a formula (penstock/detail/formula.h), for NVRTC.
//
// Threads: a pure function.
#pragma once

#include <memory>

#include "penstock/detail/formula.h"
#include "penstock/source.h"

namespace penstock::graph {

// A kernel that takes what RunFormula does. Where the rows of all accesses lie side by side and begin at multiples of a
// vector, each thread loads and stores vectors, of 16 bytes for the widest type.
std::shared_ptr<const Source::Parts> SourceOf(const detail::Formula& formula);

}  // namespace penstock::graph
