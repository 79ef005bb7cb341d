// RegionPlaces: room on one CUDA device for the graphs with regions that this process launches. The workers of a region
// wait for each other, so all of them must be on the device at once; if parts of several regions filled it, none would
// ever end. A device has places for so many regions that all their blocks fit, whatever else is there: other kernels
// end. A graph takes as many places as regions of it may be at work, and waits on the device for the graphs that had
// these places before.
//
// Ownership: one for each device, as long as the process; its events are never destroyed.
// Threads:   thread-safe.
// Locks:     mu_ is held while a graph is launched, and taken before that of LoopTurns (loop_turns.h).
// Errors:    CUDA's, by cuda_status.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/base/mutex.h"

namespace penstock::driver {

class RegionPlaces {
 public:
  // `ordinal`: CUDA's number of the device; `places`: the same in every call for it.
  static RegionPlaces& Of(int ordinal, int32_t places);

  explicit RegionPlaces(int32_t places) : places_(static_cast<size_t>(places)) {}

  // Calls `launch`, which launches a graph on the stream, so that it begins when the next `count` places in turn are
  // free on the device, or all of them if there are no more. The device is current.
  template <class Launch>
  absl::Status InPlaces(cudaStream_t stream, int32_t count, Launch launch) {
    base::MutexLock lock(mu_);
    const int32_t first = next_;
    if (absl::Status begun = Begin(stream, count); !begun.ok()) return begun;
    if (absl::Status launched = launch(); !launched.ok()) return launched;
    return End(stream, first, count);
  }

 private:
  // A place and the end of the graph that had it last.
  struct Place {
    cudaEvent_t end = nullptr;  // null: none had it
  };
  Place& At(int32_t place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return places_[static_cast<size_t>(place) % places_.size()];
  }
  int32_t CountOf(int32_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Begin(cudaStream_t stream, int32_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status End(cudaStream_t stream, int32_t first, int32_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mu_);
  int32_t next_ ABSL_GUARDED_BY(mu_) = 0;  // the place that the next graph takes first
};

}  // namespace penstock::driver
