// CoalescingRunner: many threads request a step, one runs it, none waits.
//
// The thread that makes the first request becomes the owner; others leave a rerun request and go. The owner repeats the
// step until no request is left, so whatever happened before a request is visible to a step that begins after it.
//
// Threads:   thread-safe. `step` runs on one thread at a time.
// Ordering:  whatever a thread did before Run is visible to a later step, and each step to the next.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::base {

// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class CoalescingRunner {
 public:
  template <class Step>
  void Run(Step step) {
    if (requests_.fetch_add(1, std::memory_order_acq_rel) != 0) return;  // the owner will see the request
    Own(step);
  }
  // For threads that only poll: if another thread owns the step, leaves no request, which would keep the owner busy.
  template <class Step>
  void TryRun(Step step) {
    uint32_t none = 0;
    if (requests_.load(std::memory_order_relaxed) != 0) return;
    if (requests_.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) Own(step);
  }

 private:
  template <class Step>
  void Own(Step step) {
    uint32_t seen = 1;
    do {
      step();
      const uint32_t before = requests_.fetch_sub(seen, std::memory_order_acq_rel);
      seen = before - seen;
    } while (seen != 0);
  }

  Atomic<uint32_t> requests_{0};  // requests not yet answered
};

}  // namespace penstock::base
