// Admission: decides whether a runtime accepts work. It refuses work in the copy of a fork, after a fatal device error
// and once it is closed. It also counts the runs that a closed runtime still waits for.
//
// Threads: thread-safe.
// Locks:   mu_ guards the fault; it is a leaf.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "src/base/mutex.h"
#include "src/base/process_life.h"
#include "src/runtime/core/shutdown_counts.h"

namespace penstock::runtime {

class Admission {
 public:
  // OK while work is accepted; otherwise the reason why not.
  absl::Status CheckOpen() const;
  // Whether this process is a fork's copy of the one that made the runtime; if so, nothing of it may be touched.
  bool forked() const { return made_in_ != base::ForkCount(); }
  // What a call on a run or runtime of the parent process returns.
  static absl::Status Forked();

  // Latches a fatal device error and returns true if it is the first. Does nothing for any other status.
  bool Latch(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The error that ends the runs in flight, once failed().
  absl::Status Fault() const;

  // A Shutdown has passed its deadline: what is still in flight is abandoned.
  void GiveUp() { gave_up_.store(true, std::memory_order_release); }
  bool gave_up() const { return gave_up_.load(std::memory_order_acquire); }

  RunCount<>& runs() { return runs_; }
  const RunCount<>& runs() const { return runs_; }

 private:
  const int made_in_ = base::ForkCount();
  RunCount<> runs_;
  std::atomic<bool> failed_{false};  // set once, after fault_
  std::atomic<bool> gave_up_{false};  // set once

  mutable base::Mutex mu_;
  absl::Status fault_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
