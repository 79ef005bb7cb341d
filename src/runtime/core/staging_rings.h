// StagingRings: the rings that copy between devices and memory that is not pinned. All devices of a driver near the
// same NUMA node share one ring.
//
// Ownership: owns the rings and their threads.
// Threads:   thread-safe. A thread that needs a ring waits while another thread makes one.
// Locks:     mu_ guards the list; rings are made and joined without it.
// Errors:    For returns ResourceExhausted without memory or a thread for a ring, or the driver's error from measuring.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/runtime.h"
#include "src/base/mutex.h"
#include "src/memory/staging.h"
#include "src/runtime/core/devices.h"
#include "src/tune/applied_settings.h"

namespace penstock::runtime {

class StagingRings {
 public:
  StagingRings(Devices& devices, host::EventCount& event_count, const base::Logger& logger,
               tune::AppliedSettings& settings, const StagingOptions& options)
      : devices_(devices), event_count_(event_count), logger_(logger), settings_(settings), options_(options) {}

  // The ring of a device, made by the first call.
  absl::StatusOr<memory::Staging*> For(const driver::DeviceRef& device);
  // Copies of fewer bytes do not use a ring.
  int64_t from_bytes() const { return options_.from_bytes; }
  // By all rings, those that have ended included.
  memory::StagedBytes posted() const;
  // Joins all threads. No copy may be under way.
  void End();

 private:
  struct Ring {
    int driver_index, node;
    std::unique_ptr<memory::Staging> staging;
  };
  absl::StatusOr<std::unique_ptr<memory::Staging>> Make(const driver::DeviceRef& device);
  memory::StagedBytes Posted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  memory::Staging* Find(int driver_index, int node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Devices& devices_;
  host::EventCount& event_count_;
  const base::Logger& logger_;
  tune::AppliedSettings& settings_;
  const StagingOptions options_;

  mutable base::Mutex mu_;
  base::CondVar made_;
  bool making_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Ring> rings_ ABSL_GUARDED_BY(mu_);
  memory::StagedBytes ended_ ABSL_GUARDED_BY(mu_);  // by rings that are gone
};

}  // namespace penstock::runtime
