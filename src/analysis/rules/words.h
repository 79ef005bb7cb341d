// How the rules put names into sentences, made fit for one line, whatever is in them; and the quantities beside them.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "penstock/profile.h"
#include "penstock/submission_report.h"
#include "src/analysis/text.h"

namespace penstock::analysis {

std::string GraphText(const Profile::Graph& graph);  // "graph 'g'"
std::string NodeText(const Profile::Node& node);  // "'axpy' (a.cc:12)"
// Why runs are not submitted as graphs, in the words of the submission report; empty: it gives no reason.
std::string WhyNoGraphs(const SubmissionReport& report);

// GB/s of so many bytes in a time; 0 if it took none.
inline double RateOf(double bytes, double us) { return us > 0 ? bytes / us / 1000 : 0; }

}  // namespace penstock::analysis
