// What Shutdown and a Compile that is out of memory wait for: runs in flight, and executables on their way out.
//
// Threads: thread-safe. Who waits does so on the runtime's event count, which is rung after each End.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::runtime {

// Runs in flight. Once closed none begins; nobody sees it closed and at zero while one goes on.
// `Atomic` is std::atomic but in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class RunCount {
 public:
  // Who begins looks at closed() afterwards, who closes it at runs(): one of the two sees the other (sequentially
  // consistent). Who finds it closed ends again.
  void Begin() { runs_.fetch_add(1, std::memory_order_seq_cst); }
  void End() { runs_.fetch_sub(1, std::memory_order_acq_rel); }
  void Close() { closed_.store(true, std::memory_order_seq_cst); }
  bool closed() const { return closed_.load(std::memory_order_seq_cst); }
  int64_t runs() const { return runs_.load(std::memory_order_seq_cst); }

 private:
  Atomic<int64_t> runs_{0};  // in flight
  Atomic<bool> closed_{false};  // no further run may begin
};

// Executables whose last handle has gone (begun), and those whose memory is free again (ended).
template <template <class> class Atomic = std::atomic>
class ReleaseCount {
 public:
  void Begin() { begun_.fetch_add(1, std::memory_order_acq_rel); }
  void End() { ended_.fetch_add(1, std::memory_order_acq_rel); }
  // To be read before the memory is asked for: one that ends in between is not missed.
  int64_t ended() const { return ended_.load(std::memory_order_acquire); }
  // Whether any is under way that had not ended then, but for those known to be stuck.
  bool AnyToCome(int64_t ended_then, int64_t stuck) const {
    return begun_.load(std::memory_order_acquire) - ended_then > stuck;
  }

 private:
  Atomic<int64_t> begun_{0}, ended_{0};  // executables; see above
};

}  // namespace penstock::runtime
