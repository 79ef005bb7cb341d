// From the library's trace to the spans of the report.
//
// Threads: a pure function.
#pragma once

#include <vector>

#include "penstock/trace.h"
#include "report.h"

namespace photos {

// Uploads, downloads and kernels become the steps of their device; host spans named as stages.h names them become
// decode and encode; all else is left out. Microseconds become nanoseconds.
std::vector<Span> StepsOf(const std::vector<penstock::Span>& trace);

}  // namespace photos
