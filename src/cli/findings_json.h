// What the doctor found, as JSON: of `penstock doctor --json`, and in the report's page.
//
// Threads: pure function.
#pragma once

#include "nlohmann/json.hpp"
#include "src/analysis/doctor.h"

namespace penstock::cli {

// An array with an object for each finding; a gain that is unknown is null.
nlohmann::json FindingsJson(const analysis::Diagnosis& diagnosis);

}  // namespace penstock::cli
