// LeakList: objects leaked on purpose, reachable from a list that is never freed. See process_life.h.
//
// Threads: thread-safe without a lock, since a forked copy may find any lock held.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace penstock::base {

// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class LeakList {
 public:
  struct Entry {
    std::shared_ptr<void> object;
    void* raw;
    Entry* next;
  };
  void Keep(std::shared_ptr<void> object, void* raw) {
    auto* entry = new Entry{std::move(object), raw, first_.load(std::memory_order_relaxed)};
    while (!first_.compare_exchange_strong(entry->next, entry, std::memory_order_acq_rel)) {
    }
  }
  const Entry* first() const { return first_.load(std::memory_order_acquire); }

 private:
  Atomic<Entry*> first_{nullptr};  // the entry that was added last; none is ever removed
};

}  // namespace penstock::base
