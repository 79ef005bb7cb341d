// RuntimeCore: the devices, threads and pools behind a Runtime handle.
//
// Ownership: shared by the handle, executables and runs. Shutdown, which the handle's destructor calls, ends the
//            threads; the last owner destroys the drivers.
// Threads:   thread-safe. Devices and pools are constant after Create.
// Locks:     none of its own; its parts have theirs.
// Errors:    see penstock/runtime.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/runtime.h"
#include "src/base/log.h"
#include "src/driver/device_ref.h"
#include "src/host/event_count.h"
#include "src/host/worker_pool.h"
#include "src/observe/observed.h"
#include "src/runtime/core/admission.h"
#include "src/runtime/core/completion_threads.h"
#include "src/runtime/core/device_submission.h"
#include "src/runtime/core/devices.h"
#include "src/runtime/core/hostcall_service.h"
#include "src/runtime/core/in_flight_list.h"
#include "src/runtime/core/memory_pressure.h"
#include "src/runtime/core/staging_rings.h"
#include "src/runtime/core/state_order.h"
#include "src/runtime/core/sync_gate.h"
#include "src/tune/applied_settings.h"

namespace penstock::runtime {

// What a call on a moved-from Runtime returns.
absl::Status NoRuntime();

class RuntimeCore : public std::enable_shared_from_this<RuntimeCore> {
 public:
  static absl::StatusOr<std::shared_ptr<RuntimeCore>> Create(const RuntimeOptions& options);
  ~RuntimeCore();

  const std::vector<driver::DeviceRef>& devices() const { return devices_.refs(); }
  Devices& device_set() { return devices_; }
  host::EventCount& event_count() { return event_count_; }
  // Whether every driver notifies the event count.
  bool notifies_completion() const { return devices_.notifies_completion(); }
  StateOrder& states() { return states_; }
  observe::Observed& observed() { return observed_; }
  tune::AppliedSettings& settings() { return settings_; }
  host::WorkerPool& workers() { return *workers_; }
  // The group of workers near a device.
  int GroupOf(int device) const { return groups_[device]; }
  HostcallService& hostcalls() { return hostcalls_; }
  DeviceSubmission& submission() { return submission_; }
  StagingRings& staging() { return staging_; }
  MemoryPressure& memory() { return memory_; }
  // Calls MemoryPressure::WithMemory and notes a fatal failure.
  absl::Status WithMemory(const std::function<absl::Status()>& make);
  // Frees device memory. That waits for kernels that wait for the host, so a thread that may have to answer them leaves
  // it to the completion thread.
  void FreeDevice(const driver::DeviceRef& device, void* memory);
  void Log(LogLevel level, std::string_view text) const { logger_.Log(level, text); }

  const Admission& admission() const { return admission_; }
  absl::Status CheckOpen() const { return admission_.CheckOpen(); }
  bool forked() const { return admission_.forked(); }
  static absl::Status Forked() { return Admission::Forked(); }
  // A fatal device error ends the runtime: it accepts nothing new, and every run in flight fails when it is advanced,
  // which this call does for all of them. Only the first error counts. Does nothing for any other status.
  void NoteFault(const absl::Status& status);

  void AddExecutable(const std::shared_ptr<InFlight>& executable) { in_flight_.Add(executable); }
  // CheckOpen for a run that Shutdown then waits for until RunDrained, which must follow even if this refuses the run.
  absl::Status RunStarted();
  // Counts the run as drained, then releases what it has kept alive: what this ends may wait for the run.
  void RunDrained(std::shared_ptr<const void> keep_alive = nullptr);
  // A copy that a call of a State leaves to the ring counts as an abandoned run until it has ended.
  void CopyLeft();
  void LeftCopyEnded();
  // Has the completion thread, or a polling one, advance `run` (a run or a pipeline) until it has drained.
  void Watch(Progressable* run) { completion_.Watch(run); }
  CompletionThreads& completion() { return completion_; }
  absl::Status Shutdown(Deadline deadline);
  // Called when the handle ends: waits for every run, except that abandoned ones, which may never end, get only one
  // extra second. Does not wait if a Shutdown gave up before. It logs what is still running and keeps everything alive
  // for that. If the calling thread must not wait, another thread does all this.
  static void End(std::shared_ptr<RuntimeCore> core);
  bool shut_down() const { return joined_.load(std::memory_order_acquire); }
  // Whether each node is waited for, one of the runtime at a time.
  bool synchronous() const { return sync_.enabled(); }
  bool EnterSync() { return sync_.Enter(); }
  void LeaveSync();

 private:
  RuntimeCore(const RuntimeOptions& options, Settings settings);
  static void Delete(RuntimeCore* core);
  void EndHere();
  absl::Status ShutdownAtLast();
  absl::Status Make(const RuntimeOptions& options);
  void MakeWorkers(int threads);

  base::Logger logger_;
  tune::AppliedSettings settings_;
  host::EventCount event_count_;
  StateOrder states_;
  observe::Observed observed_;
  Admission admission_;
  InFlightList in_flight_;
  Devices devices_;
  StagingRings staging_;
  DeviceSubmission submission_{devices_};
  HostcallService hostcalls_;
  MemoryPressure memory_{devices_, in_flight_, admission_, event_count_};
  std::vector<int> groups_;  // the workers' group near each device
  std::unique_ptr<host::WorkerPool> workers_;
  CompletionThreads completion_;
  SyncGate sync_;
  std::atomic<bool> joined_{false};  // set once: no thread is left
};

}  // namespace penstock::runtime
