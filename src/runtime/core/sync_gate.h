// SyncGate: whether each node is waited for, one of the runtime at a time (RuntimeOptions::synchronous, PENSTOCK_SYNC).
//
// Threads: Enable by whoever makes the runtime; the rest thread-safe.
#pragma once

#include "src/base/try_semaphore.h"

namespace penstock::runtime {

class SyncGate {
 public:
  explicit SyncGate(bool enabled) : enabled_(enabled) {}
  void Enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }
  // False: another node is being waited for.
  bool Enter() { return inside_.Enter(1); }
  void Leave() { inside_.Leave(); }

 private:
  bool enabled_;
  base::TrySemaphore<> inside_;
};

}  // namespace penstock::runtime
