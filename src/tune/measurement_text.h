// Measurements as text: what PENSTOCK_MEASURE=FILE writes and penstock tune reads.
//
//   penstock measurement 1
//   runs = 200
//   run_us = 412.5
//   open = graph "blur".slots
//   end
//
// Threads: pure functions.
// Errors:  InvalidArgument with the line.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/measurement.h"

namespace penstock::tune {

std::string TextOf(const Measurement& measurement);
absl::StatusOr<Measurement> MeasurementFrom(std::string_view text);

}  // namespace penstock::tune
