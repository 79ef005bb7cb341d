// What Shutdown, and a Compile that is out of memory, wait for: runs in flight and executables that are being released.
//
// Threads: thread-safe. Waiters sleep on the runtime's event count, which is notified after each End.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::runtime {

// Runs in flight. Once closed, no run begins, and no thread sees the count closed and at zero while a run is in flight.
// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class RunCount {
 public:
  // A thread that begins a run reads closed() afterwards, and the one that closes reads runs() afterwards: with
  // sequential consistency at least one sees the other. A thread that finds the count closed calls End.
  void Begin() { runs_.fetch_add(1, std::memory_order_seq_cst); }
  void End() { runs_.fetch_sub(1, std::memory_order_acq_rel); }
  void Close() { closed_.store(true, std::memory_order_seq_cst); }
  bool closed() const { return closed_.load(std::memory_order_seq_cst); }
  int64_t runs() const { return runs_.load(std::memory_order_seq_cst); }

 private:
  Atomic<int64_t> runs_{0};  // in flight
  Atomic<bool> closed_{false};  // no further run may begin
};

// Executables whose last handle has gone (begun), and those whose memory has been freed (ended).
template <template <class> class Atomic = std::atomic>
class ReleaseCount {
 public:
  void Begin() { begun_.fetch_add(1, std::memory_order_acq_rel); }
  void End() { ended_.fetch_add(1, std::memory_order_acq_rel); }
  // Read this before asking for memory, so that a release that ends in between is not missed.
  int64_t ended() const { return ended_.load(std::memory_order_acquire); }
  // Whether a release that had not ended at that time is under way, not counting those known to be stuck.
  bool AnyToCome(int64_t ended_then, int64_t stuck) const {
    return begun_.load(std::memory_order_acquire) - ended_then > stuck;
  }

 private:
  Atomic<int64_t> begun_{0}, ended_{0};  // executables; see above
};

}  // namespace penstock::runtime
