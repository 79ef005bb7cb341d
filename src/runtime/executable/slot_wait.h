// SlotWait: a launch, or Acquire, that has found no free slot and waits for one, as long as it lives: it is counted
// (metrics.h) and shown by tools.
//
// Threads: one thread.
#pragma once

#include <chrono>

#include "src/base/annotate.h"
#include "src/runtime/run/run_owner.h"

namespace penstock::runtime {

class SlotWait {
 public:
  explicit SlotWait(const RunContext& context) : context_(context) { context_.counts->WaitBegins(); }
  SlotWait(const SlotWait&) = delete;
  SlotWait& operator=(const SlotWait&) = delete;
  ~SlotWait() { context_.counts->WaitEnds(std::chrono::steady_clock::now() - since_); }

  std::chrono::steady_clock::time_point since() const { return since_; }

 private:
  const RunContext& context_;
  const base::AnnotatedRange range_{context_.graph.annotations().wait};
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace penstock::runtime
