// BusyShares: how busy the devices' engines (by the traces) and the library's threads (by the system's accounting) have
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
  // `devices`: their names, in the order of the runtime's list. `traces` may contain duplicates.
  BusyShares(std::vector<std::string> devices, std::vector<std::shared_ptr<const Trace>> traces);

  // Only those that have been busy at all.
  std::vector<BusyShare> Engines() const;
  std::vector<BusyShare> Threads() const;

 private:
  using Clock = std::chrono::steady_clock;
  double Micros(int device, SpanKind kind) const;  // over all traces, including the time before this was made

  const std::vector<std::string> devices_;
  const std::vector<std::shared_ptr<const Trace>> traces_;  // without duplicates
  const Clock::time_point begin_ = Clock::now();
  std::vector<double> micros_before_;  // for each engine, device by device
  std::map<uint64_t, int64_t> cpu_before_;  // for each thread that existed then, by serial
};

}  // namespace penstock::runtime
