// What simulate --devices writes: a graph over several numbers of devices, beside each other; as text, or as JSON.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "src/analysis/over_devices.h"

namespace penstock::cli {

// How far the figures are to be trusted, in sentences.
std::vector<std::string> NotesOn(const analysis::OverDevices& over);

std::string TextOf(const analysis::OverDevices& over);
nlohmann::json JsonOf(const analysis::OverDevices& over);

}  // namespace penstock::cli
