// BusyShares: how busy devices' engines, by what traces say, and the library's threads, by what the system says, have
// been since it was made.
//
// Threads: thread-safe: nothing changes after it is made.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/pipeline_stats.h"
#include "penstock/trace.h"

namespace penstock::runtime {

class BusyShares {
 public:
  // `devices`: their names, in the order of the runtime's list. Traces may be there twice.
  BusyShares(std::vector<std::string> devices, std::vector<std::shared_ptr<const Trace>> traces);

  // Those that have been at work at all.
  std::vector<BusyShare> Engines() const;
  std::vector<BusyShare> Threads() const;

 private:
  using Clock = std::chrono::steady_clock;
  double Micros(int device, SpanKind kind) const;  // of all traces, and before this was made too

  const std::vector<std::string> devices_;
  const std::vector<std::shared_ptr<const Trace>> traces_;  // each once
  const Clock::time_point begin_ = Clock::now();
  std::vector<double> micros_before_;  // of the engines, a device after the other
  std::map<uint64_t, int64_t> cpu_before_;  // of the threads there were, by serial
};

}  // namespace penstock::runtime
