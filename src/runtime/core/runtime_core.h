// RuntimeCore: the devices, threads and pools behind a Runtime handle.
//
// Ownership: shared by the handle, executables and runs. Threads end in Shutdown, which the handle's destructor calls;
//            drivers go with the last owner.
// Threads:   thread-safe. Devices and pools are constant after Create.
// Locks:     mu_ guards the list of executables and the latched failure; only threads are started with it held.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/runtime.h"
#include "src/base/log.h"
#include "src/base/mutex.h"
#include "src/base/process_life.h"
#include "src/base/try_semaphore.h"
#include "src/driver/device_ref.h"
#include "src/host/event_count.h"
#include "src/host/hostcall_poller.h"
#include "src/host/submission_threads.h"
#include "src/host/worker_pool.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staging.h"
#include "src/memory/topology.h"
#include "src/runtime/core/completion_thread.h"
#include "src/runtime/core/in_flight.h"
#include "src/runtime/core/shutdown_counts.h"
#include "src/runtime/core/state_order.h"

namespace penstock::runtime {

class RuntimeCore : public std::enable_shared_from_this<RuntimeCore> {
 public:
  static absl::StatusOr<std::shared_ptr<RuntimeCore>> Create(const RuntimeOptions& options);
  ~RuntimeCore();

  const std::vector<driver::DeviceRef>& devices() const { return devices_; }
  const std::vector<Device>& public_devices() const { return public_devices_; }
  host::EventCount& event_count() { return event_count_; }
  // Whether every driver notifies the event count.
  bool notifies_completion() const { return notifies_; }
  StateOrder& states() { return states_; }
  host::WorkerPool& workers() { return *workers_; }
  // The group of workers near a device.
  int GroupOf(int device) const { return groups_[static_cast<size_t>(device)]; }
  // The thread that sees what devices ask; there once a StartPoller has returned OK.
  host::HostcallPoller& poller() { return *poller_; }
  absl::Status StartPoller();
  // How many threads may help to submit to each device.
  const std::vector<int>& submission_thread_counts() const { return submission_thread_counts_; }
  // Those of a device, made at the first call; null where there are to be none.
  host::SubmissionThreads* SubmissionThreads(int device);
  // Keeps room for so many kernels that ask on each device, while they exist, or none. Empty: none.
  bool ReserveHostcalls(const std::vector<int>& of_devices);
  void ReleaseHostcalls(const std::vector<int>& of_devices);
  // Empty, or why no kernel of the device may wait for the host.
  std::string HostcallsUnavailableReason(const driver::DeviceInfo& device) const;
  // Frees memory of a device. That waits for kernels that ask the host, so who may have to answer leaves it to the
  // completion thread.
  void FreeDevice(const driver::DeviceRef& device, void* memory);
  std::chrono::nanoseconds hostcall_patience() const { return poller_options_.patience; }
  memory::PinnedPool& pinned(int driver_index) { return *pinned_[static_cast<size_t>(driver_index)]; }
  // The ring that copies between the device, and all of its driver's that are near the same node, and memory that is
  // not pinned; made at the first call.
  absl::StatusOr<memory::Staging*> Staging(const driver::DeviceRef& device);
  int64_t staging_from_bytes() const { return staging_options_.from_bytes; }
  void Log(LogLevel level, std::string_view text) const { logger_.Log(level, text); }

  // OK while work is accepted; else why not.
  absl::Status CheckOpen() const;
  // Whether this process is a fork's copy of the one that made the runtime: then nothing of it may be touched.
  bool forked() const { return made_in_ != base::ForkCount(); }
  // What a call on a run or runtime of the parent process returns.
  static absl::Status Forked();
  // What a call on a Runtime that was moved from returns.
  static absl::Status None();
  // A fatal device error ends the runtime: nothing new is accepted, and every run in flight fails when it is advanced,
  // which happens here for all of them. The first counts. Of any other status: nothing.
  void NoteFault(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Once failed: what ends the runs in flight.
  absl::Status Fault() const;

  void AddExecutable(const std::shared_ptr<InFlight>& executable);
  // CheckOpen for a run that Shutdown waits for from now on, until RunDrained, which follows also where this refuses.
  absl::Status RunStarted();
  // Lets go of the run's keep-alives, after which it counts as drained: what they end may wait for the run.
  void RunDrained(std::vector<std::shared_ptr<const void>> keep_alive = {});
  // A copy that a State's call leaves to the ring counts as a run that was abandoned, until it has ended.
  void CopyLeft();
  void LeftCopyEnded();
  // Has the completion thread, or one that polls, advance `run`, or a pipeline, until it has drained.
  void Watch(Progressable* run);
  // Something it watches has more to do than it had.
  void WakeCompletion() { completion_->Wake(); }
  absl::Status Shutdown(Deadline deadline);
  // The end of the handle: waits for every run but those that have been abandoned, which may never end; they get a
  // second more. At once where a Shutdown gave up before. What still goes on then is logged, and all stays for it.
  // Where the calling thread must not wait, another does all that.
  static void End(std::shared_ptr<RuntimeCore> core);
  // Whether each node is waited for (RuntimeOptions::synchronous), one of the runtime at a time.
  bool synchronous() const { return synchronous_; }
  bool EnterSync() { return sync_.Enter(1); }
  void LeaveSync();
  // Calls `make` until it is something other than ResourceExhausted, or no memory is to come: idle pinned slabs are
  // given back first, then whatever executables without handles hold until their last runs have ended. In user code it
  // is called once.
  absl::Status WithMemory(const std::function<absl::Status()>& make);
  // Pinned memory of a HostBuffer. Waits as WithMemory, and for blocks that runs in flight have been left with.
  absl::StatusOr<memory::PinnedBlock> AllocateHost(size_t bytes, Deadline deadline);
  // The HostBuffer of a block has gone: bindings or runs may still have it. Then, the block has returned.
  void BlockLeft() { blocks_left_.fetch_add(1, std::memory_order_acq_rel); }
  void LeftBlockReturned();
  int64_t pinned_budget() const { return pinned_budget_; }
  PinnedGauges pinned_gauges() const;
  // The NUMA node near a device; -1: none is.
  int NodeOf(const driver::DeviceInfo& device) const;
  // The last handle on an executable has gone, or memory is about to be freed; all of it has.
  void ReleaseBegins() { releases_.Begin(); }
  void ReleaseEnds();
  bool shut_down() const { return joined_.load(std::memory_order_acquire); }

 private:
  explicit RuntimeCore(const RuntimeOptions& options);
  static void Delete(RuntimeCore* core);
  void EndHere();
  absl::Status ShutdownAtLast();
  static void LetGo(std::vector<std::shared_ptr<const void>>& keep_alive);
  absl::Status Make(const RuntimeOptions& options);
  absl::Status ReadFlags();
  absl::Status MakeDevices(const RuntimeOptions& options);
  absl::Status AddHostDevices(int count, const RuntimeOptions& options);
  absl::Status AddCudaDevices(const std::vector<int>& ordinals);
  absl::Status AddDefaultDevices(const RuntimeOptions& options);
  void AddDriver(std::unique_ptr<driver::Driver> driver);
  struct Notify {
    int driver_index, node;
    std::unique_ptr<memory::Staging> staging;
  };
  absl::StatusOr<std::unique_ptr<memory::Staging>> MakeStaging(const driver::DeviceRef& device);
  memory::Staging* FindStaging(int driver_index, int node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndStaging();
  void StopPoller();
  void MakeWorkers(int threads);
  void BindToNode(int node, int number, const char* what) const;
  absl::Status CountSubmissionThreads(int option);
  absl::Status StartPolling(const std::vector<int>& cores);
  std::unique_ptr<host::SubmissionThreads> MakeSubmissionThreads(int device);
  void StopSubmissionThreads();
  void LoadTopology();
  memory::PinnedPoolOptions PoolOptions(const driver::Driver& driver);
  void TrimPools();
  bool WaitForMemory(int64_t ended_then, const std::function<bool()>& more, bool blocks, Deadline deadline);
  bool MayReturnBlocks(int64_t abandoned) const;
  std::vector<std::shared_ptr<InFlight>> Executables() const;

  base::Logger logger_;
  host::EventCount event_count_;
  StateOrder states_;
  std::vector<std::unique_ptr<driver::Driver>> drivers_;
  std::vector<driver::DeviceRef> devices_;
  std::vector<Device> public_devices_;
  int64_t pinned_budget_ = 0;
  std::shared_ptr<memory::PinnedBudget> budget_;
  std::shared_ptr<const memory::Topology> topology_;  // null: not needed, or not to be had
  std::vector<std::shared_ptr<memory::PinnedPool>> pinned_;
  const int cores_;  // that the process may use
  StagingOptions staging_options_;
  bool notifies_ = true;
  std::vector<int> groups_;  // of workers: of each device
  std::unique_ptr<host::WorkerPool> workers_;
  std::unique_ptr<CompletionThread> completion_;
  std::vector<std::unique_ptr<CompletionThread>> polling_;  // a polling core each; they watch in its place
  std::atomic<uint32_t> watched_{0};  // which polling thread is to watch the next run
  std::unique_ptr<host::HostcallPoller> poller_;
  std::vector<int> submission_thread_counts_;  // a device each
  const host::HostcallPoller::Options poller_options_;
  bool synchronous_;  // this and the next: constant after Create
  bool checked_ = false;
  base::TrySemaphore<> sync_;
  ReleaseCount<> releases_;
  const int made_in_ = base::ForkCount();
  RunCount<> in_flight_;
  std::atomic<int64_t> copies_left_{0};  // to the ring
  std::atomic<int64_t> letting_go_{0};  // runs that have drained and still have keep-alives
  std::atomic<int64_t> blocks_left_{0};  // of HostBuffers that have gone
  std::atomic<bool> joined_{false};  // Shutdown has ended the threads
  std::atomic<bool> gave_up_{false};  // a deadline of Shutdown has passed with runs in flight
  std::atomic<bool> failed_{false};  // a fatal fault is latched; set before runs are advanced

  mutable base::Mutex mu_;
  std::vector<std::weak_ptr<InFlight>> executables_ ABSL_GUARDED_BY(mu_);
  absl::Status fault_ ABSL_GUARDED_BY(mu_);
  std::vector<int> hostcalls_ ABSL_GUARDED_BY(mu_);  // kept of each device
  std::vector<std::unique_ptr<host::SubmissionThreads>> submission_threads_
      ABSL_GUARDED_BY(mu_);  // a device each, null until needed
  base::CondVar staging_made_;
  bool making_staging_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Notify> staging_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
