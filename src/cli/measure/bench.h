// What `penstock bench` measures: the parts, device by device.
//
// Threads: one thread.
// Errors:  ResourceExhausted: the memory does not fit. DataLoss: a copy has brought something else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/ps.h"
#include "src/cli/measure/figures.h"
#include "src/cli/measure/timing.h"

namespace penstock::cli::measure {

struct BenchOptions {
  std::vector<int64_t> sizes{};  // of copies; none: as suit the device
  Effort effort{};
  bool quick = false;  // sizes as in a smoke run
  std::function<void(const std::string&)> step{};  // is told what is measured next
};

// How large a copy should be at which a rate hardly grows any more, as far as memory allows.
int64_t LargeCopy(const Device& device, bool quick);

// Appends the figures of one part, of all devices of the runtime.
absl::Status MeasurePart(Runtime& runtime, Part part, const BenchOptions& options, std::vector<Figure>& figures);

}  // namespace penstock::cli::measure
