// HostCaptures: the capturing streams of a host driver, and the work submitted to each.
//
// A host device knows no work except its driver's, so an operation is kept instead of queued. A call that no capture
// accepts breaks the capture, whose end reports it. A second Begin does so too; it stands for the calls that CUDA
// refuses in a capture that stays valid.
//
// Ownership: borrows the driver's Scheduler; the nodes borrow what a graph's nodes do.
// Threads:   thread-safe, but one thread at a time feeds a stream; so checking whether any stream captures needs no
//            lock. One mutex, with no other lock taken inside.
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
  // For a stream that is destroyed; does nothing if it does not capture.
  void Drop(Stream stream);

  bool IsCapturing(Stream stream);
  // Keeps an operation that has passed a WorkMaker, for a capturing stream.
  absl::Status Keep(Stream stream, const NodeOp& op);
  // For a call that no capture accepts ("Record"): OK if the stream does not capture, otherwise breaks the capture.
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
