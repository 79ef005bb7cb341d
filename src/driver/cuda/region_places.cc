#include "src/driver/cuda/region_places.h"

#include <algorithm>
#include <map>

#include "penstock/status_macros.h"
#include "src/driver/cuda/cuda_status.h"

namespace penstock::driver {

RegionPlaces& RegionPlaces::Of(int ordinal, int32_t places) {
  static auto& mu = *new base::Mutex;
  static auto& all = *new std::map<int, RegionPlaces>;
  base::MutexLock lock(mu);
  return all.try_emplace(ordinal, places).first->second;
}

int32_t RegionPlaces::CountOf(int32_t count) const { return std::min(count, static_cast<int32_t>(places_.size())); }

absl::Status RegionPlaces::Begin(cudaStream_t stream, int32_t count) {
  for (int32_t place = next_; place < next_ + CountOf(count); ++place) {
    Place& at = At(place);
    if (at.end == nullptr) {
      PENSTOCK_RETURN_IF_ERROR(
          ToStatus(cudaEventCreateWithFlags(&at.end, cudaEventDisableTiming), "creating an event"));
    } else {
      PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaStreamWaitEvent(stream, at.end, 0), "waiting for another region"));
    }
  }
  return absl::OkStatus();
}

absl::Status RegionPlaces::End(cudaStream_t stream, int32_t first, int32_t count) {
  for (int32_t place = first; place < first + CountOf(count); ++place) {
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventRecord(At(place).end, stream), "recording the end of a region"));
  }
  next_ = (first + CountOf(count)) % static_cast<int32_t>(places_.size());
  return absl::OkStatus();
}

}  // namespace penstock::driver
