#include "src/driver/cuda/loop_turns.h"

#include <map>

#include "src/driver/cuda/cuda_status.h"

namespace penstock::driver {

LoopTurns& LoopTurns::Of(int ordinal) {
  static auto& mu = *new base::Mutex;
  static auto& turns = *new std::map<int, LoopTurns>;
  base::MutexLock lock(mu);
  return turns[ordinal];
}

absl::Status LoopTurns::Begin(cudaStream_t stream) {
  if (last_ != nullptr) return ToStatus(cudaStreamWaitEvent(stream, last_, 0), "waiting for another loop");
  return ToStatus(cudaEventCreateWithFlags(&last_, cudaEventDisableTiming), "creating an event");
}

absl::Status LoopTurns::End(cudaStream_t stream) {
  return ToStatus(cudaEventRecord(last_, stream), "recording the end of a loop");
}

}  // namespace penstock::driver
