// Internals of the public handle on a run.
//
// Threads: stateless.
#pragma once

#include "penstock/detail/internals.h"
#include "penstock/run.h"
#include "src/runtime/run/run_core.h"

namespace penstock::detail {

template <>
class Internals<Run> {
 public:
  // Takes over one reference.
  static Run Make(runtime::RunCore* core) { return Run(core); }
  static runtime::RunCore* CoreOf(const Run& run) { return run.state_; }  // null: no execution
  // Whether the work has drained too.
  static bool IsDrained(const Run& run) { return run.state_ == nullptr || run.state_->drained(); }
};

}  // namespace penstock::detail
