// LoopsOf: how many iterations the loops of a graph have done and what they took, for the submission report.
//
// Threads: any thread, while the executable lives.
#pragma once

#include <vector>

#include "penstock/submission_report.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

// Adds up the iterations of all slots. A loop comes before the loops in its body.
std::vector<SubmissionReport::Loop> LoopsOf(const ExecutableCore& core);

}  // namespace penstock::runtime
