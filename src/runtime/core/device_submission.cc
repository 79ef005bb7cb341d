#include "src/runtime/core/device_submission.h"

#include <algorithm>
#include <string>

#include "penstock/status_macros.h"
#include "src/runtime/core/environment.h"

namespace penstock::runtime {
namespace {

thread_local int current_before = 0;  // a submission thread's: the value that restores the device current before

}  // namespace

// Without a CUDA device a setting is not asked for: host devices do best without these threads.
absl::Status DeviceSubmission::Count(int option, tune::AppliedSettings& settings) {
  const auto is_cuda = [](const driver::DeviceRef& d) { return d.info.kind == driver::DeviceKind::kCuda; };
  const auto cuda = static_cast<int>(std::count_if(devices_.refs().begin(), devices_.refs().end(), is_cuda));
  PENSTOCK_ASSIGN_OR_RETURN(const int count,
                            SubmissionThreadsOf(cuda > 0 ? settings.SubmissionThreads(option) : option));
  for (const driver::DeviceRef& d : devices_.refs()) {
    counts_.push_back(count >= 0 ? count : is_cuda(d) ? DefaultSubmissionThreads(devices_.cores(), cuda) : 0);
  }
  return absl::OkStatus();
}

// A submission thread keeps its device current for good: switching costs as much as a call, and it would be needed
// again and again.
std::unique_ptr<host::SubmissionThreads> DeviceSubmission::Make(int device) const {
  const driver::DeviceRef& of = devices_.ref(device);
  return std::make_unique<host::SubmissionThreads>(host::SubmissionThreads::Options{
      .threads = counts_[device],
      .name = "ps-submit/" + std::to_string(device),
      .begin =
          [this, of] {
            devices_.RunNear(of.info, "submission threads");
            current_before = of.driver->MakeCurrent(of.local);
          },
      .end = [of] { of.driver->RestoreCurrent(current_before); },
  });
}

host::SubmissionThreads* DeviceSubmission::Of(int device) {
  if (counts_[device] == 0) return nullptr;
  base::MutexLock lock(mu_);
  threads_.resize(devices_.refs().size());
  std::unique_ptr<host::SubmissionThreads>& submission_threads = threads_[device];
  if (submission_threads == nullptr) submission_threads = Make(device);
  return submission_threads.get();
}

void DeviceSubmission::Stop() {
  std::vector<host::SubmissionThreads*> submission_threads;  // joined without holding the lock
  {
    base::MutexLock lock(mu_);
    for (const auto& of_device : threads_) {
      if (of_device != nullptr) submission_threads.push_back(of_device.get());
    }
  }
  for (host::SubmissionThreads* const of_device : submission_threads) of_device->Stop();
}

}  // namespace penstock::runtime
