#include "src/runtime/core/runtime_core.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/annotate.h"
#include "src/base/counted_time.h"
#include "src/base/environment.h"
#include "src/base/limits.h"
#include "src/base/reaper.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"
#include "src/observe/numbered_path.h"
#include "src/runtime/core/environment.h"
#include "src/runtime/core/runtime_records.h"
#include "src/runtime/core/test_hook.h"

namespace penstock::runtime {
namespace {

constexpr int kMostThreads = 4096;  // of one kind; no machine runs more at once

// Memory for the completion thread to free.
struct FreedMemory {
  RuntimeCore* runtime;
  driver::DeviceRef device;
  void* memory;
};

absl::Status CheckOptions(const RuntimeOptions& options) {
  if (options.workers < 0 || options.host_device_threads < 0 || options.host_device_memory < 0 ||
      options.pinned_bytes < 0 || options.staging.threads < 0 || options.staging.chunk_bytes < 0 ||
      options.staging.from_bytes < 0 || options.profile_spans < 0 || options.submission_threads < -1) {
    return absl::InvalidArgumentError(
        "RuntimeOptions: workers = " + std::to_string(options.workers) +
        ", host_device_threads = " + std::to_string(options.host_device_threads) + ", host_device_memory = " +
        std::to_string(options.host_device_memory) + ", pinned_bytes = " + std::to_string(options.pinned_bytes) +
        ", staging.threads = " + std::to_string(options.staging.threads) +
        ", staging.chunk_bytes = " + std::to_string(options.staging.chunk_bytes) + ", staging.from_bytes = " +
        std::to_string(options.staging.from_bytes) + ", profile_spans = " + std::to_string(options.profile_spans) +
        ", submission_threads = " + std::to_string(options.submission_threads) +
        "; none can be negative; use 0 for the default, and -1 for that of submission threads");
  }
  for (const auto& [name, threads] :
       {std::pair("workers", options.workers), std::pair("host_device_threads", options.host_device_threads),
        std::pair("staging.threads", options.staging.threads)}) {
    if (threads <= kMostThreads) continue;
    return absl::InvalidArgumentError("RuntimeOptions::" + std::string(name) + " is " + std::to_string(threads) +
                                      "; the most is " + std::to_string(kMostThreads) + "; use 0 for the default");
  }
  return absl::OkStatus();
}

// Runs users' destructors. No lock of the library is held, but this thread may own a run or a run queue of a pipeline.
void LetGo(std::shared_ptr<const void>& keep_alive) {
  if (keep_alive == nullptr) return;
  const base::LetGoScope scope;
  std::optional<base::UserCodeScope> on_ours;  // a thread of the library would wait for itself
  if (base::OnOwnThread()) on_ours.emplace();
  keep_alive.reset();
}

}  // namespace

RuntimeCore::RuntimeCore(const RuntimeOptions& options, Settings settings)
    : logger_(options.log_level, options.log),
      settings_(std::move(settings)),
      devices_(logger_, event_count_, base::UsableProcessors()),
      staging_(devices_, event_count_, logger_, settings_, options.staging),
      hostcalls_(HookedPollerOptions()),
      sync_(options.synchronous) {}

absl::StatusOr<std::shared_ptr<RuntimeCore>> RuntimeCore::Create(const RuntimeOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(CheckOptions(options));
  base::WatchForks();
  base::StartAnnotating();
  PENSTOCK_ASSIGN_OR_RETURN(Settings settings, tune::AppliedSettings::Wanted(options.settings));
  try {
    std::shared_ptr<RuntimeCore> core(new RuntimeCore(options, std::move(settings)), &RuntimeCore::Delete);
    PENSTOCK_RETURN_IF_ERROR(core->Make(options));
    return core;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "no memory for the runtime's threads and tables; ask for fewer workers, devices and threads of devices");
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(std::string("the system refuses a thread: ") + error.what() +
                                        "; let this process or its user have more");
  }
}

// Throws if the system gives no memory or threads.
absl::Status RuntimeCore::Make(const RuntimeOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool synchronous, base::FlagOf("PENSTOCK_SYNC"));
  if (synchronous) sync_.Enable();
  PENSTOCK_ASSIGN_OR_RETURN(const bool checked, base::FlagOf("PENSTOCK_CHECKED"));
  // Compile reads this variable; a mistake in it is reported as early as possible.
  PENSTOCK_RETURN_IF_ERROR(base::FlagOf("PENSTOCK_CHECK_AGAINST_HOST").status());
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t pinned, PinnedBudgetOf(options.pinned_bytes, base::MemoryOfProcess()));
  PENSTOCK_RETURN_IF_ERROR(devices_.Make(options, pinned, checked));
  PENSTOCK_RETURN_IF_ERROR(submission_.Count(options.submission_threads, settings_));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<int> polling, PollingCoresOf(options.polling_cores));
  const int workers = settings_.Workers(options.workers);
  MakeWorkers(workers > 0 ? workers : std::max(2, devices_.cores() - 1));
  PENSTOCK_RETURN_IF_ERROR(completion_.Start(event_count_, notifies_completion(), polling));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string measurement, observe::PatternIn("PENSTOCK_MEASURE"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string profile, observe::PatternIn("PENSTOCK_PROFILE"));
  if (options.measure || !measurement.empty()) observed_.meter.Start(std::chrono::steady_clock::now(), measurement);
  observed_.profile.Start(options.profile_spans, profile);
  return absl::OkStatus();
}

// The drivers are destroyed with it, and their threads may be what drops it.
void RuntimeCore::Delete(RuntimeCore* core) {
  if (core->forked()) return base::KeepReachable(core);
  if (!base::MustNotAwaitEnds()) {
    delete core;
    return;
  }
  base::EndElsewhere(std::shared_ptr<RuntimeCore>(core), [] {});
}

void RuntimeCore::End(std::shared_ptr<RuntimeCore> core) {
  RuntimeCore* const of = core.get();
  if (!base::MustNotAwaitEnds()) return of->EndHere();
  if (base::EndElsewhere(std::move(core), [of] { of->EndHere(); })) return;
  of->Log(LogLevel::kError,
          "a Runtime was dropped where it cannot be waited for, and the system refuses a thread that "
          "would; its memory is not freed");
}

void RuntimeCore::EndHere() {
  const absl::Status status = ShutdownAtLast();
  WriteRecords(*this);
  if (status.ok()) return;
  Log(LogLevel::kError, base::Str(status.message()));
  base::LeakOnPurpose(shared_from_this());  // its threads are still running
}

RuntimeCore::~RuntimeCore() {
  completion_.Drop();
  submission_.Stop();
  hostcalls_.DropPoller();
  workers_.reset();
  staging_.End();
  devices_.DropPools();
}

absl::Status NoRuntime() {
  return absl::FailedPreconditionError("this Runtime was moved from; use the one it was moved to");
}

void RuntimeCore::NoteFault(const absl::Status& status) {
  if (!admission_.Latch(status)) return;
  Log(LogLevel::kError, base::Str(status.message()));
  in_flight_.AdvanceAll();
  event_count_.Notify();
}

absl::Status RuntimeCore::WithMemory(const std::function<absl::Status()>& make) {
  absl::Status made = memory_.WithMemory(make);
  NoteFault(made);
  return made;
}

void RuntimeCore::LeaveSync() {
  sync_.Leave();
  event_count_.Notify();
}

absl::Status RuntimeCore::RunStarted() {
  admission_.runs().Begin();
  return CheckOpen();
}

void RuntimeCore::RunDrained(std::shared_ptr<const void> keep_alive) {
  memory_.LetGoBegins();
  admission_.runs().End();
  event_count_.Notify();
  LetGo(keep_alive);
  memory_.LetGoEnds();
}

// In this order, a thread that compares the two counts never finds more abandoned than in flight.
void RuntimeCore::CopyLeft() {
  admission_.runs().Begin();
  memory_.CopyLeft();
}

void RuntimeCore::LeftCopyEnded() {
  memory_.LeftCopyEnded();
  RunDrained();
}

// Makes a group for each NUMA node that devices are near, and one for all devices that are near none.
void RuntimeCore::MakeWorkers(int threads) {
  std::vector<int> nodes;  // one for each group
  for (const driver::DeviceRef& d : devices_.refs()) {
    const int node = devices_.HasNodes() ? devices_.NodeOf(d.info) : -1;
    const auto at = std::find(nodes.begin(), nodes.end(), node);
    groups_.push_back(static_cast<int>(at - nodes.begin()));
    if (at == nodes.end()) nodes.push_back(node);
  }
  workers_ = std::make_unique<host::WorkerPool>(host::WorkerPool::Options{
      .threads = threads,
      .name = "ps-worker",
      .groups = static_cast<int>(nodes.size()),
      .begin = [this, nodes](int group, int number) { devices_.BindToNode(nodes[group], number, "workers"); }});
}

void RuntimeCore::FreeDevice(const driver::DeviceRef& device, void* memory) {
  if (memory == nullptr) return;
  const bool held_up = base::answers_devices || base::InDeviceCode();
  if (!held_up || !completion_.started()) return device.driver->FreeDevice(device.local, memory);
  memory_.ReleaseBegins();  // threads that are out of memory wait for it
  auto* const freed = new FreedMemory{this, device, memory};
  completion_.Run({[](void* context, int64_t) {
                     const std::unique_ptr<FreedMemory> of(static_cast<FreedMemory*>(context));
                     of->device.driver->FreeDevice(of->device.local, of->memory);
                     of->runtime->memory().ReleaseEnds();
                   },
                   freed});
}

absl::Status RuntimeCore::Shutdown(Deadline deadline) {
  if (forked()) return Forked();
  admission_.runs().Close();
  event_count_.Notify();  // threads that wait for a slot are refused now
  const bool drained = host::WaitForProgress(event_count_, notifies_completion(), deadline.at(), [&] {
    in_flight_.AdvanceAll();
    return admission_.runs().runs() == 0;
  });
  if (!drained) {
    admission_.GiveUp();
    event_count_.Notify();  // transfers of States end now
    const int64_t left = admission_.runs().runs();
    in_flight_.AbandonAll(absl::DeadlineExceededError("the runtime was shut down before the run's work had drained"));
    return absl::DeadlineExceededError("Runtime::Shutdown: " + std::to_string(left) +
                                       " runs were still in flight at the deadline; they are abandoned; the runtime "
                                       "keeps its threads and their memory until they have drained and Shutdown is "
                                       "called again");
  }
  completion_.Stop();
  hostcalls_.StopPoller();
  submission_.Stop();
  workers_->Shutdown();
  staging_.End();
  devices_.EndPoolThreads();
  WriteRecords(*this);
  joined_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status RuntimeCore::ShutdownAtLast() {
  constexpr std::chrono::seconds kForAbandoned{1};
  constexpr std::chrono::milliseconds kSlice{100};  // so that time in which the process was stopped is noticed
  if (admission_.gave_up()) return Shutdown(Deadline::Clock::now());
  admission_.runs().Close();
  event_count_.Notify();
  host::WaitForProgress(event_count_, notifies_completion(), host::TimePoint::max(), [&] {
    const int64_t copies = memory_.copies_left();
    return admission_.runs().runs() <= copies + in_flight_.AdvanceAndCount().abandoned;
  });
  base::CountedTime time(Deadline::Clock::now());
  for (std::chrono::nanoseconds waited{0}; waited < kForAbandoned; waited += time.Look(Deadline::Clock::now())) {
    const bool drained =
        host::WaitForProgress(event_count_, notifies_completion(), Deadline::Clock::now() + kSlice, [&] {
          in_flight_.AdvanceAll();
          return admission_.runs().runs() == 0;
        });
    if (drained) break;
  }
  return Shutdown(Deadline::Clock::now());
}

}  // namespace penstock::runtime
