// The streams of a host driver that capture, and what was submitted to each.
//
// A host device knows no work but that of its driver, so an operation is kept instead of queued. What no capture takes
// breaks it: its end says what that was. So it does of a second Begin, which stands for the calls that CUDA refuses in
// a capture that stays valid.
//
// Ownership: borrows the driver's Scheduler; the nodes borrow what a graph's do.
// Threads:   thread-safe, but a stream is fed by one thread at a time, which is why a look at whether any stream
//            captures needs no lock. One mutex, with no other lock taken inside.
// Errors:    FailedPrecondition, as in driver.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/driver/host/graph_nodes.h"
#include "src/driver/host/scheduler.h"

namespace penstock::driver::host {

class HostCaptures {
 public:
  explicit HostCaptures(Scheduler& scheduler) : scheduler_(scheduler) {}

  absl::Status Begin(Stream stream);
  absl::StatusOr<GraphNodes> End(Stream stream);
  // Of a stream that goes; does nothing where it does not capture.
  void Drop(Stream stream);

  bool IsCapturing(Stream stream);
  // Keeps an operation, which has passed a WorkMaker, on a stream that captures.
  absl::Status Keep(Stream stream, const NodeOp& op);
  // Of a call that no capture takes ("Record"): OK where the stream does not capture, else it breaks that.
  absl::Status Refuse(Stream stream, const char* call);

 private:
  struct Capture {
    GraphNodes nodes;
    int priority = 0;
    absl::Status broken{};
  };

  Scheduler& scheduler_;
  std::atomic<int> open_{0};  // streams that capture

  base::Mutex mu_;
  std::map<uint64_t, Capture> captures_ ABSL_GUARDED_BY(mu_);  // by stream
};

}  // namespace penstock::driver::host
