// DeviceSubmission: the submission threads of each device of a runtime.
//
// Ownership: owns the threads; borrows the devices.
// Threads:   the runtime's creator calls Count; the rest is thread-safe.
// Locks:     mu_ guards the list; threads are started with it held and joined without it.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "src/base/mutex.h"
#include "src/host/submission_threads.h"
#include "src/runtime/core/devices.h"
#include "src/tune/applied_settings.h"

namespace penstock::runtime {

class DeviceSubmission {
 public:
  explicit DeviceSubmission(const Devices& devices) : devices_(devices) {}

  // Must be called first. `option` is RuntimeOptions::submission_threads.
  absl::Status Count(int option, tune::AppliedSettings& settings);
  // The number of threads that may help to submit to each device.
  const std::vector<int>& counts() const { return counts_; }
  // The submission threads of a device, made by the first call; null if it has none.
  host::SubmissionThreads* Of(int device);
  void Stop();

 private:
  std::unique_ptr<host::SubmissionThreads> Make(int device) const;

  const Devices& devices_;
  std::vector<int> counts_;

  base::Mutex mu_;
  std::vector<std::unique_ptr<host::SubmissionThreads>> threads_ ABSL_GUARDED_BY(mu_);  // null until needed
};

}  // namespace penstock::runtime
