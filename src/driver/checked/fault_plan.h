// FaultPlan: which call fails, and how: the n-th of a kind once, or every call from the n-th of a kind on, as after a
// fatal device error.
//
// Threads: not thread-safe; CallRecorder locks.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "src/driver/checked/call_log.h"

namespace penstock::driver::checked {

class FaultPlan {
 public:
  // `n` counts from 1, from now on. There is one plan at a time, the newest.
  void FailNth(CallKind kind, int64_t n, absl::Status failure) { Set(kind, n, std::move(failure), false); }
  void DieAtNth(CallKind kind, int64_t n, absl::Status failure) { Set(kind, n, std::move(failure), true); }
  void Clear() { *this = FaultPlan(); }

  // The failure that the next call of `kind` must return; OK: make the call.
  absl::Status Next(CallKind kind) {
    if (dead_) return failure_;
    if (left_ == 0 || kind != kind_) return absl::OkStatus();
    if (--left_ > 0) return absl::OkStatus();
    fired_ = true;
    dead_ = forever_;
    return failure_;
  }
  bool fired() const { return fired_; }
  bool dead() const { return dead_; }

 private:
  void Set(CallKind kind, int64_t n, absl::Status failure, bool forever) {
    *this = FaultPlan();
    kind_ = kind;
    left_ = n;
    failure_ = std::move(failure);
    forever_ = forever;
  }

  CallKind kind_ = CallKind::kQuery;
  int64_t left_ = 0;
  absl::Status failure_;
  bool forever_ = false, fired_ = false, dead_ = false;
};

}  // namespace penstock::driver::checked
