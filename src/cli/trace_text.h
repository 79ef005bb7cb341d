// What `penstock trace` shows, as text.
//
// Threads: pure function.
#pragma once

#include <cstddef>
#include <ostream>
#include <vector>

#include "penstock/profile.h"
#include "src/analysis/runs.h"
#include "src/analysis/summary.h"

namespace penstock::cli {

// `runs` and `summary` are the profile's. Of each list the first `top`; of a path the `top` longest steps.
void WriteTraceText(const Profile& profile, const std::vector<analysis::GraphRun>& runs,
                    const analysis::Summary& summary, size_t top, std::ostream& out);

}  // namespace penstock::cli
