#include "src/runtime/core/admission.h"

#include "src/base/status.h"

namespace penstock::runtime {

absl::Status Admission::Forked() {
  return absl::FailedPreconditionError(
      "this process was forked from the one that made the runtime, whose threads and devices are not here; fork before "
      "Runtime::Create, exec after the fork, or make a new runtime on host devices");
}

absl::Status Admission::CheckOpen() const {
  if (forked()) return Forked();
  if (failed()) {
    base::MutexLock lock(mu_);
    return base::Prefixed("refused after a fatal device error", fault_);
  }
  if (runs_.closed()) return absl::FailedPreconditionError("the runtime has been shut down; make a new one");
  return absl::OkStatus();
}

bool Admission::Latch(const absl::Status& status) {
  if (!base::IsFatal(status)) return false;
  {
    base::MutexLock lock(mu_);
    if (!fault_.ok()) return false;
    fault_ = status;
    (void)base::TakeNode(fault_);  // a node of one plan means nothing to the others
  }
  failed_.store(true, std::memory_order_release);
  return true;
}

absl::Status Admission::Fault() const {
  base::MutexLock lock(mu_);
  return base::Prefixed("ended by a fatal device error", fault_);
}

}  // namespace penstock::runtime
