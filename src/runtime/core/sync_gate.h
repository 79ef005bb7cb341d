// SyncGate: tells whether each node is waited for, and admits one waiting node of the runtime at a time
// (RuntimeOptions::synchronous, PENSTOCK_SYNC).
//
// Threads: the runtime's creator calls Enable; the rest is thread-safe.
#pragma once

#include "src/base/try_semaphore.h"

namespace penstock::runtime {

class SyncGate {
 public:
  explicit SyncGate(bool enabled) : enabled_(enabled) {}
  void Enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }
  // Returns false while another node is being waited for.
  bool Enter() { return inside_.Enter(1); }
  void Leave() { inside_.Leave(); }

 private:
  bool enabled_;
  base::TrySemaphore<> inside_;
};

}  // namespace penstock::runtime
