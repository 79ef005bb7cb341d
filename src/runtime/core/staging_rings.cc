#include "src/runtime/core/staging_rings.h"

#include <algorithm>
#include <new>
#include <utility>

#include "penstock/status_macros.h"
#include "src/memory/staging_tuning.h"

namespace penstock::runtime {

// If copies cross a link, what the user left open is measured. On host devices they are ordinary host copies, for which
// one or two threads suffice.
absl::StatusOr<std::unique_ptr<memory::Staging>> StagingRings::Make(const driver::DeviceRef& device) {
  driver::Driver& driver = *device.driver;
  memory::PinnedPool& pool = devices_.pinned(device.driver_index);
  const int most = std::max(1, devices_.cores() - 2);
  const int threads = settings_.StagingThreads(options_.threads);
  const int64_t chunk_bytes = settings_.StagingChunkBytes(options_.chunk_bytes);
  memory::StagingOptions options;
  options.threads = std::min(2, most);
  const bool open = threads == 0 || chunk_bytes == 0;
  const bool measured = open && device.info.kind == driver::DeviceKind::kCuda;
  memory::StagingRates rates;
  if (measured) {
    PENSTOCK_ASSIGN_OR_RETURN(rates, memory::MeasureStaging(driver, pool, device.local));
    options = memory::TuneStaging(rates, most);
  }
  if (threads > 0) options.threads = threads;
  if (chunk_bytes > 0) options.chunk_bytes = options.block_bytes = static_cast<size_t>(chunk_bytes);
  if (measured) logger_.Log(LogLevel::kInfo, "staging: " + memory::TextOf(rates, options));
  options.node = devices_.NodeOf(device.info);
  options.begin = [this, node = options.node](int thread) { devices_.BindToNode(node, thread, "staging threads"); };
  return memory::Staging::Create(driver, pool, event_count_, options);
}

memory::Staging* StagingRings::Find(int driver_index, int node) const {
  for (const Ring& ring : rings_) {
    if (ring.driver_index == driver_index && ring.node == node) return ring.staging.get();
  }
  return nullptr;
}

absl::StatusOr<memory::Staging*> StagingRings::For(const driver::DeviceRef& device) {
  const int node = devices_.NodeOf(device.info);
  {
    base::MutexLock lock(mu_);
    while (making_) made_.Wait(mu_);
    if (memory::Staging* const staging = Find(device.driver_index, node)) return staging;
    making_ = true;
  }
  auto made = [&]() -> absl::StatusOr<std::unique_ptr<memory::Staging>> {
    try {
      return Make(device);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("no host memory for the threads that stage copies; use fewer of them");
    }
  }();
  base::MutexLock lock(mu_);
  making_ = false;
  made_.NotifyAll();
  PENSTOCK_RETURN_IF_ERROR(made.status());
  return rings_.emplace_back(device.driver_index, node, *std::move(made)).staging.get();
}

memory::StagedBytes StagingRings::Posted() const {
  memory::StagedBytes all = ended_;
  for (const Ring& ring : rings_) {
    const memory::StagedBytes of_ring = ring.staging->posted();
    all.up += of_ring.up;
    all.down += of_ring.down;
  }
  return all;
}

memory::StagedBytes StagingRings::posted() const {
  base::MutexLock lock(mu_);
  return Posted();
}

void StagingRings::End() {
  std::vector<Ring> ended;  // joined without holding the lock
  {
    base::MutexLock lock(mu_);
    ended_ = Posted();
    ended.swap(rings_);
  }
}

}  // namespace penstock::runtime
