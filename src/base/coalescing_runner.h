// Ownership by notes: many threads ask for something to be done, one does it, none waits.
//
// Whoever leaves the first note owns; others leave theirs and go. The owner does it again until no note is left, so
// what happened before a note is seen by a step that begins after it.
//
// Threads:  thread-safe. `step` runs in one thread at a time.
// Ordering: what a thread did before Run is visible to a step that begins later; a step to the next one.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::base {

// `Atomic` is std::atomic but in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class CoalescingRunner {
 public:
  template <class Step>
  void Run(Step step) {
    if (requests_.fetch_add(1, std::memory_order_acq_rel) != 0) return;  // the owner will see the note
    Own(step);
  }
  // For who has no news and looks again and again: where another owns it leaves no note, which would keep the owner
  // there.
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

  Atomic<uint32_t> requests_{0};  // calls not yet answered
};

}  // namespace penstock::base
