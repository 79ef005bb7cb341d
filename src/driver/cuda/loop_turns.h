// LoopTurns: the order of the graphs with loops that this process launches on one CUDA device. Several loops at once
// end the context, whatever graphs, streams and drivers they come from, so each waits for the one before.
//
// Ownership: one for each device, as long as the process; its event is never destroyed.
// Threads:   thread-safe.
// Locks:     mu_ is held while a graph is launched; it is a leaf.
// Errors:    CUDA's, by cuda_status.h.
#pragma once

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "src/base/mutex.h"

namespace penstock::driver {

class LoopTurns {
 public:
  // `ordinal`: CUDA's number of the device.
  static LoopTurns& Of(int ordinal);

  // Calls `launch`, which launches a graph on the stream, between a wait for the graph before and what the next one
  // waits for. The device is current.
  template <class Launch>
  absl::Status InTurn(cudaStream_t stream, Launch launch) {
    base::MutexLock lock(mu_);
    if (absl::Status begun = Begin(stream); !begun.ok()) return begun;
    if (absl::Status launched = launch(); !launched.ok()) return launched;
    return End(stream);
  }

 private:
  absl::Status Begin(cudaStream_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status End(cudaStream_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  cudaEvent_t last_ ABSL_GUARDED_BY(mu_) = nullptr;  // recorded after the last of them; null: there was none
};

}  // namespace penstock::driver
