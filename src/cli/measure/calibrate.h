// Measures what src/analysis/machine.h holds, within 30 seconds.
//
// Threads: one thread.
// Errors:  those of Runtime::Create for the list of devices. ResourceExhausted: the memory does not fit.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "src/analysis/machine.h"

namespace penstock::cli::measure {

struct CalibrateOptions {
  std::string devices{};  // as in RuntimeOptions::devices
  bool quick = false;  // figures without worth, in a second
  std::function<void(const std::string&)> step{};  // is told what is measured next
};

absl::StatusOr<analysis::Machine> Calibrate(const CalibrateOptions& options);

}  // namespace penstock::cli::measure
