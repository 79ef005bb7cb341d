// TimestampOp: the operation that records the device's time (src/driver/timestamp.h), with what it writes.
//
// Ownership: the timestamp lies in memory of the code that makes the operation. Stays where it is while a graph or a
//            stream may use it.
// Threads:   plain values.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "src/driver/driver.h"
#include "src/driver/timestamp.h"

namespace penstock::runtime {

struct TimestampOp final : driver::UseSource {
  driver::TimestampArgs args;
  void* argv = &args;
  driver::KernelOp op;

  void Make(const driver::LibraryCode& code, uint64_t* at, const driver::OpTag& tag) {
    args.at = at;
    op = driver::LibraryOp(code, &argv, sizeof(args));
    op.tag = tag;
    op.uses = this;
  }
  // After a fatal error ended the run, work may still be running on a host device.
  uint64_t time() const { return std::atomic_ref<uint64_t>(*args.at).load(std::memory_order_relaxed); }
  void Forget() const { std::atomic_ref<uint64_t>(*args.at).store(0, std::memory_order_relaxed); }

  void AppendUses(int32_t /*node*/, std::vector<driver::MemoryUse>& out) const override {
    out.push_back({.data = args.at, .width = sizeof(*args.at), .writes = true});
  }
};

}  // namespace penstock::runtime
