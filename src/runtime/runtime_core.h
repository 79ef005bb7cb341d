// RuntimeCore: the devices, threads and pools behind a Runtime handle.
//
// Ownership: shared by the handle, executables and runs. Threads end in Shutdown, which the handle's destructor calls;
//            drivers go with the last owner.
// Threads:   thread-safe. Devices and pools are constant after Create.
// Locks:     mu_ guards the list of executables and the latched failure; nothing is called with it held.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/runtime.h"
#include "src/base/log.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/host/bell.h"
#include "src/host/worker_pool.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/completion_thread.h"
#include "src/runtime/slot.h"

namespace penstock::runtime {

class ExecutableCore;

class RuntimeCore : public std::enable_shared_from_this<RuntimeCore> {
 public:
  static absl::StatusOr<std::shared_ptr<RuntimeCore>> Create(const RuntimeOptions& options);
  ~RuntimeCore();

  const std::vector<DeviceRef>& devices() const { return devices_; }
  const std::vector<Device>& public_devices() const { return public_devices_; }
  host::Bell& bell() { return bell_; }
  // Whether every driver rings the bell.
  bool rings() const { return rings_; }
  host::WorkerPool& workers() { return *workers_; }
  memory::PinnedPool& pinned(int driver_index) { return *pinned_[static_cast<size_t>(driver_index)]; }
  void Log(LogLevel level, std::string_view text) const { logger_.Log(level, text); }

  // OK while work is accepted; else why not.
  absl::Status CheckOpen() const;
  // A fatal device error: nothing new is accepted from now on.
  void Latch(const absl::Status& fault);

  void AddExecutable(const std::shared_ptr<ExecutableCore>& executable);
  void RunStarted() { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  void RunDrained();
  // Has the completion thread advance `run` until it has drained.
  void Watch(RunState* run) { completion_->Watch(run); }
  absl::Status Shutdown(Deadline deadline);
  bool shut_down() const { return joined_.load(std::memory_order_acquire); }

 private:
  explicit RuntimeCore(const RuntimeOptions& options);
  absl::Status MakeDevices(const RuntimeOptions& options);
  absl::Status AddHostDevices(int count, const RuntimeOptions& options);
  absl::Status AddCudaDevices(const std::vector<int>& ordinals);
  absl::Status AddDefaultDevices(const RuntimeOptions& options);
  void AddDriver(std::unique_ptr<driver::Driver> driver);
  void AdvanceEverything();

  base::Logger logger_;
  host::Bell bell_;
  std::vector<std::unique_ptr<driver::Driver>> drivers_;
  std::vector<DeviceRef> devices_;
  std::vector<Device> public_devices_;
  std::vector<std::shared_ptr<memory::PinnedPool>> pinned_;
  bool rings_ = true;
  std::unique_ptr<host::WorkerPool> workers_;
  std::unique_ptr<CompletionThread> completion_;
  std::atomic<int64_t> in_flight_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> joined_{false};
  std::atomic<bool> failed_{false};

  mutable base::Mutex mu_;
  std::vector<std::weak_ptr<ExecutableCore>> executables_ ABSL_GUARDED_BY(mu_);
  absl::Status fault_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
