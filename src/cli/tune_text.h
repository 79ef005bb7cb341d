// What penstock tune shows: what was tried and what came of it, as text and as JSON.
//
// Threads: free functions.
#pragma once

#include <ostream>
#include <string>

#include "nlohmann/json.hpp"
#include "penstock/tune.h"
#include "src/analysis/propose_settings.h"

namespace penstock::cli {

// `cost` is what the result's costs are of: "a run" or "a round".
void WriteTuneResult(const TuneResult& result, const std::string& cost, std::ostream& out);
nlohmann::json JsonOfTune(const TuneResult& result);
void WriteProposal(const analysis::Proposal& proposal, std::ostream& out);
nlohmann::json JsonOfProposal(const analysis::Proposal& proposal);

}  // namespace penstock::cli
