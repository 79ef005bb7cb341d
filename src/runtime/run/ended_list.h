// EndedList: host steps that have ended and that the owner of their run's machine has not taken yet.
//
// Threads:  any thread may call Push, once for each item until it is taken; one thread at a time calls TakeAll.
// Ordering: what a thread did before Push is visible to the thread that takes the item.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock::runtime {

// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class EndedList {
 public:
  explicit EndedList(size_t items) : next_(items) {}

  // Touches nothing after the exchange that publishes the item: its run may be over by then.
  void Push(int32_t item) {
    int32_t first = first_.load(std::memory_order_relaxed);
    do {
      next_[item] = first;
    } while (!first_.compare_exchange_strong(first, item, std::memory_order_acq_rel));
  }

  // Calls `f` with each item, in the order in which they were pushed.
  template <class F>
  void TakeAll(F&& f) {
    if (first_.load(std::memory_order_relaxed) < 0) return;
    int32_t from = first_.exchange(-1, std::memory_order_acq_rel), in_order = -1;
    while (from >= 0) in_order = std::exchange(from, std::exchange(next_[from], in_order));
    while (in_order >= 0) {
      const int32_t item = in_order;
      in_order = next_[item];
      f(item);
    }
  }

 private:
  std::vector<int32_t> next_;  // for each item on the list
  Atomic<int32_t> first_{-1};  // the item pushed last; -1: none
};

}  // namespace penstock::runtime
