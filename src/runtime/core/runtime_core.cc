#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/polling_cores.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/counted_time.h"
#include "src/base/environment.h"
#include "src/base/limits.h"
#include "src/base/reaper.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/driver/host/host_driver.h"
#include "src/host/progress.h"
#include "src/memory/staging_tuning.h"
#include "src/runtime/core/device_list.h"
#include "src/runtime/core/pinned_bytes.h"
#include "src/runtime/core/submission_thread_count.h"
#include "src/runtime/core/test_hook.h"
#if defined(PENSTOCK_HAS_CUDA)
#include "src/driver/cuda/cuda_driver.h"
#endif

namespace penstock::runtime {
namespace {

constexpr int kMostDeviceThreads = 16384;
constexpr int kMostThreads = 4096;  // of one kind; no machine runs more at once

thread_local int current_before = 0;  // of a submission thread: what undoes that its device is current

// What the completion thread frees.
struct FreedMemory {
  RuntimeCore* runtime;
  driver::DeviceRef device;
  void* memory;
};

absl::Status CudaMissing(const std::string& why) {
  return absl::NotFoundError("device 'cuda': " + why +
                             "; name host devices instead (devices = \"host\" or PENSTOCK_DEVICES=host), or leave the "
                             "devices unnamed to fall back to them");
}

absl::Status CheckOptions(const RuntimeOptions& options) {
  if (options.workers < 0 || options.host_device_threads < 0 || options.host_device_memory < 0 ||
      options.pinned_bytes < 0 || options.staging.threads < 0 || options.staging.chunk_bytes < 0 ||
      options.staging.from_bytes < 0 || options.submission_threads < -1) {
    return absl::InvalidArgumentError(
        "RuntimeOptions: workers = " + std::to_string(options.workers) +
        ", host_device_threads = " + std::to_string(options.host_device_threads) + ", host_device_memory = " +
        std::to_string(options.host_device_memory) + ", pinned_bytes = " + std::to_string(options.pinned_bytes) +
        ", staging.threads = " + std::to_string(options.staging.threads) +
        ", staging.chunk_bytes = " + std::to_string(options.staging.chunk_bytes) +
        ", staging.from_bytes = " + std::to_string(options.staging.from_bytes) +
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

}  // namespace

RuntimeCore::RuntimeCore(const RuntimeOptions& options)
    : logger_(options.log_level, options.log),
      cores_(base::UsableProcessors()),
      staging_options_(options.staging),
      poller_options_(HookedPollerOptions()),
      synchronous_(options.synchronous) {}

absl::StatusOr<std::shared_ptr<RuntimeCore>> RuntimeCore::Create(const RuntimeOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(CheckOptions(options));
  base::WatchForks();
  try {
    std::shared_ptr<RuntimeCore> core(new RuntimeCore(options), &RuntimeCore::Delete);
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

// Throws where the system gives no memory or threads.
absl::Status RuntimeCore::Make(const RuntimeOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(ReadFlags());
  PENSTOCK_ASSIGN_OR_RETURN(pinned_budget_, PinnedBudgetOf(options.pinned_bytes, base::MemoryOfProcess()));
  budget_ = std::make_shared<memory::PinnedBudget>(static_cast<size_t>(pinned_budget_));
  PENSTOCK_RETURN_IF_ERROR(MakeDevices(options));
  PENSTOCK_RETURN_IF_ERROR(CountSubmissionThreads(options.submission_threads));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<int> polling, PollingCoresOf(options.polling_cores));
  MakeWorkers(options.workers > 0 ? options.workers : std::max(2, cores_ - 1));
  completion_ = std::make_unique<CompletionThread>(event_count_, notifies_);
  return StartPolling(polling);
}

absl::Status RuntimeCore::ReadFlags() {
  PENSTOCK_ASSIGN_OR_RETURN(const bool synchronous, base::FlagOf("PENSTOCK_SYNC"));
  synchronous_ = synchronous_ || synchronous;
  PENSTOCK_ASSIGN_OR_RETURN(checked_, base::FlagOf("PENSTOCK_CHECKED"));
  return base::FlagOf("PENSTOCK_CHECK_AGAINST_HOST")
      .status();  // Compile reads it; a mistake is told as soon as it can be
}

absl::Status RuntimeCore::StartPolling(const std::vector<int>& cores) {
  for (const int core : cores) {
    polling_.push_back(std::make_unique<CompletionThread>(event_count_, notifies_, /*polls=*/true));
    if (polling_.back()->Pin(core)) continue;
    return absl::InvalidArgumentError(std::string(PollingCoresSource()) + " names " + std::to_string(core) +
                                      "; the system has no such core, or does not let this process use it");
  }
  return absl::OkStatus();
}

void RuntimeCore::Watch(Progressable* run) {
  if (polling_.empty()) return completion_->Watch(run);
  polling_[watched_.fetch_add(1, std::memory_order_relaxed) % polling_.size()]->Watch(run);
}

// Drivers end with it, whose threads may be what drops it.
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
          "would; what it has is kept for good");
}

void RuntimeCore::EndHere() {
  const absl::Status status = ShutdownAtLast();
  if (status.ok()) return;
  Log(LogLevel::kError, base::Str(status.message()));
  base::LeakOnPurpose(shared_from_this());  // its threads still run
}

RuntimeCore::~RuntimeCore() {
  polling_.clear();
  completion_.reset();
  StopSubmissionThreads();
  poller_.reset();
  workers_.reset();
  EndStaging();
  pinned_.clear();
}

absl::Status RuntimeCore::MakeDevices(const RuntimeOptions& options) {
  const bool by_variable = options.devices.empty();
  const std::string text = by_variable ? base::Variable("PENSTOCK_DEVICES").value_or("") : options.devices;
  if (text.empty()) return AddDefaultDevices(options);
  const absl::StatusOr<std::vector<DeviceRequest>> requests = ParseDeviceList(text);
  const char* const source = by_variable ? "PENSTOCK_DEVICES" : "RuntimeOptions::devices";
  if (!requests.ok()) return base::Prefixed(source, requests.status());
  for (const DeviceRequest& request : *requests) {
    if (!request.cuda) {
      PENSTOCK_RETURN_IF_ERROR(AddHostDevices(request.host_count, options));
    } else if (request.all) {
      PENSTOCK_RETURN_IF_ERROR(AddCudaDevices({}));
    } else {
      PENSTOCK_RETURN_IF_ERROR(AddCudaDevices(request.ordinals));
    }
  }
  return absl::OkStatus();
}

absl::Status RuntimeCore::AddDefaultDevices(const RuntimeOptions& options) {
  absl::Status cuda = AddCudaDevices({});
  if (cuda.ok()) return cuda;
  Log(LogLevel::kInfo, "no CUDA device is usable, running on a host device: " + base::Str(cuda.message()));
  return AddHostDevices(1, options);
}

absl::Status RuntimeCore::AddHostDevices(int count, const RuntimeOptions& options) {
  driver::host::HostDriverOptions host;
  host.devices = count;
  host.threads_per_device = options.host_device_threads > 0 ? options.host_device_threads : std::max(1, cores_ / count);
  if (int64_t{count} * host.threads_per_device > kMostDeviceThreads) {
    return absl::InvalidArgumentError("RuntimeOptions::host_device_threads is " +
                                      std::to_string(options.host_device_threads) + " for each of " +
                                      std::to_string(count) + " host devices; the most is " +
                                      std::to_string(kMostDeviceThreads) + " for all of them together");
  }
  host.memory_bytes = options.host_device_memory;
  host.event_count = &event_count_;
  ApplyHook(host);
  PENSTOCK_ASSIGN_OR_RETURN(auto driver, driver::host::CreateHostDriver(host));
  AddDriver(std::move(driver));
  return absl::OkStatus();
}

absl::Status RuntimeCore::AddCudaDevices([[maybe_unused]] const std::vector<int>& ordinals) {
#if defined(PENSTOCK_HAS_CUDA)
  driver::CudaDriverOptions cuda;
  cuda.ordinals = ordinals;
  absl::StatusOr<std::unique_ptr<driver::Driver>> made = driver::CreateCudaDriver(cuda);
  if (!made.ok()) {
    return made.status().code() == absl::StatusCode::kInvalidArgument ? made.status()
                                                                      : CudaMissing(base::Str(made.status().message()));
  }
  AddDriver(*std::move(made));
  return absl::OkStatus();
#else
  return CudaMissing("this library was built without CUDA");
#endif
}

void RuntimeCore::AddDriver(std::unique_ptr<driver::Driver> driver) {
  driver = ApplyHook(std::move(driver), checked_, logger_);
  const int driver_index = static_cast<int>(drivers_.size());
  for (int d = 0; d < driver->device_count(); ++d) {
    const driver::DeviceInfo& info = driver->device(d);
    devices_.push_back({driver.get(), d, driver_index, info});
    public_devices_.push_back({info.name, info.description, info.kind == driver::DeviceKind::kCuda, info.memory_bytes});
  }
  notifies_ = notifies_ && driver->notifies_completion();
  pinned_.push_back(memory::PinnedPool::Create(*driver, PoolOptions(*driver)));
  drivers_.push_back(std::move(driver));
}

absl::Status RuntimeCore::None() {
  return absl::FailedPreconditionError("this Runtime was moved from; use the one it was moved to");
}

absl::Status RuntimeCore::Forked() {
  return absl::FailedPreconditionError(
      "this process was forked from the one that made the runtime, whose threads and devices are not here; fork before "
      "Runtime::Create, exec after the fork, or make a new runtime on host devices");
}

// What the user has left open is measured, where copies take a link; on host devices they are host copies like any
// other, and one or two threads keep up.
absl::StatusOr<std::unique_ptr<memory::Staging>> RuntimeCore::MakeStaging(const driver::DeviceRef& device) {
  driver::Driver& driver = *device.driver;
  memory::PinnedPool& pool = pinned(device.driver_index);
  const int most = std::max(1, cores_ - 2);
  memory::StagingOptions options;
  options.threads = std::min(2, most);
  const bool open = staging_options_.threads == 0 || staging_options_.chunk_bytes == 0;
  const bool measured = open && device.info.kind == driver::DeviceKind::kCuda;
  memory::StagingRates rates;
  if (measured) {
    PENSTOCK_ASSIGN_OR_RETURN(rates, memory::MeasureStaging(driver, pool, device.local));
    options = memory::TuneStaging(rates, most);
  }
  if (staging_options_.threads > 0) options.threads = staging_options_.threads;
  if (staging_options_.chunk_bytes > 0) {
    options.chunk_bytes = options.block_bytes = static_cast<size_t>(staging_options_.chunk_bytes);
  }
  if (measured) Log(LogLevel::kInfo, "staging: " + memory::TextOf(rates, options));
  options.node = NodeOf(device.info);
  options.begin = [this, node = options.node](int thread) { BindToNode(node, thread, "staging threads"); };
  return memory::Staging::Create(driver, pool, event_count_, options);
}

memory::Staging* RuntimeCore::FindStaging(int driver_index, int node) const {
  for (const Notify& ring : staging_) {
    if (ring.driver_index == driver_index && ring.node == node) return ring.staging.get();
  }
  return nullptr;
}

absl::StatusOr<memory::Staging*> RuntimeCore::Staging(const driver::DeviceRef& device) {
  const int node = NodeOf(device.info);
  {
    base::MutexLock lock(mu_);
    while (making_staging_) staging_made_.Wait(mu_);
    if (memory::Staging* const staging = FindStaging(device.driver_index, node)) return staging;
    making_staging_ = true;
  }
  auto made = [&]() -> absl::StatusOr<std::unique_ptr<memory::Staging>> {
    try {
      return MakeStaging(device);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("no host memory for the threads that stage copies; use fewer of them");
    }
  }();
  base::MutexLock lock(mu_);
  making_staging_ = false;
  staging_made_.NotifyAll();
  PENSTOCK_RETURN_IF_ERROR(made.status());
  return staging_.emplace_back(device.driver_index, node, *std::move(made)).staging.get();
}

void RuntimeCore::EndStaging() {
  std::vector<Notify> ended;  // joined without the lock
  {
    base::MutexLock lock(mu_);
    ended.swap(staging_);
  }
}

absl::Status RuntimeCore::CheckOpen() const {
  if (forked()) return Forked();
  if (failed_.load(std::memory_order_acquire)) {
    base::MutexLock lock(mu_);
    return base::Prefixed("refused after a fatal device error", fault_);
  }
  if (in_flight_.closed()) {
    return absl::FailedPreconditionError("the runtime has been shut down; make a new one");
  }
  return absl::OkStatus();
}

void RuntimeCore::NoteFault(const absl::Status& status) {
  if (!base::IsFatal(status)) return;
  {
    base::MutexLock lock(mu_);
    if (!fault_.ok()) return;
    fault_ = status;
  }
  failed_.store(true, std::memory_order_release);
  Log(LogLevel::kError, base::Str(status.message()));
  for (const auto& executable : Executables()) executable->AdvanceAll();
  event_count_.Notify();
}

absl::Status RuntimeCore::Fault() const {
  base::MutexLock lock(mu_);
  return base::Prefixed("ended by a fatal device error", fault_);
}

void RuntimeCore::LeaveSync() {
  sync_.Leave();
  event_count_.Notify();
}

void RuntimeCore::ReleaseEnds() {
  releases_.End();
  event_count_.Notify();
}

void RuntimeCore::AddExecutable(const std::shared_ptr<InFlight>& executable) {
  base::MutexLock lock(mu_);
  executables_.erase(
      std::remove_if(executables_.begin(), executables_.end(), [](const auto& e) { return e.expired(); }),
      executables_.end());
  executables_.push_back(executable);
}

absl::Status RuntimeCore::RunStarted() {
  in_flight_.Begin();
  return CheckOpen();
}

void RuntimeCore::RunDrained(std::vector<std::shared_ptr<const void>> keep_alive) {
  letting_go_.fetch_add(1, std::memory_order_acq_rel);
  in_flight_.End();
  event_count_.Notify();
  LetGo(keep_alive);
  letting_go_.fetch_sub(1, std::memory_order_acq_rel);
  if (blocks_left_.load(std::memory_order_acquire) > 0)
    event_count_.Notify();  // who waits for them may wait in vain now
}

// User destructors: no lock of ours is held, but whoever is here may own a run, or a pipeline's feed.
void RuntimeCore::LetGo(std::vector<std::shared_ptr<const void>>& keep_alive) {
  if (keep_alive.empty()) return;
  const base::LetGoScope scope;
  std::optional<base::UserCodeScope> on_ours;  // which would wait for itself
  if (base::OnOwnThread()) on_ours.emplace();
  keep_alive.clear();
}

// Whoever compares the two never finds more abandoned than in flight.
void RuntimeCore::CopyLeft() {
  in_flight_.Begin();
  copies_left_.fetch_add(1, std::memory_order_acq_rel);
}

void RuntimeCore::LeftCopyEnded() {
  copies_left_.fetch_sub(1, std::memory_order_acq_rel);
  RunDrained();
}

absl::Status RuntimeCore::StartPoller() {
  base::MutexLock lock(mu_);
  if (poller_ != nullptr) return absl::OkStatus();
  try {
    poller_ = std::make_unique<host::HostcallPoller>(poller_options_);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(std::string("the system refuses a thread that answers devices: ") +
                                        error.what() + "; let this process or its user have more");
  }
  return absl::OkStatus();
}

void RuntimeCore::StopPoller() {
  host::HostcallPoller* poller = nullptr;
  {
    base::MutexLock lock(mu_);
    poller = poller_.get();
  }
  if (poller != nullptr) poller->Stop();
}

// A group for each node that devices are near, and one for all devices that are near none.
void RuntimeCore::MakeWorkers(int threads) {
  std::vector<int> nodes;  // of each group
  for (const driver::DeviceRef& d : devices_) {
    const int node = topology_ == nullptr || topology_->nodes() <= 1 ? -1 : NodeOf(d.info);
    const auto at = std::find(nodes.begin(), nodes.end(), node);
    groups_.push_back(static_cast<int>(at - nodes.begin()));
    if (at == nodes.end()) nodes.push_back(node);
  }
  workers_ = std::make_unique<host::WorkerPool>(
      host::WorkerPool::Options{.threads = threads,
                                .name = "ps-worker",
                                .groups = static_cast<int>(nodes.size()),
                                .begin = [this, nodes](int group, int number) {
                                  BindToNode(nodes[static_cast<size_t>(group)], number, "workers");
                                }});
}

// Those beyond as many as the node has processors run anywhere: they are more than it could run at once.
void RuntimeCore::BindToNode(int node, int number, const char* what) const {
  if (node < 0 || number >= topology_->processors(node)) return;
  const absl::Status near = topology_->RunOnNode(node);
  if (!near.ok()) Log(LogLevel::kInfo, std::string(what) + " run anywhere: " + base::Str(near.message()));
}

absl::Status RuntimeCore::CountSubmissionThreads(int option) {
  PENSTOCK_ASSIGN_OR_RETURN(const int count, SubmissionThreadsOf(option));
  const auto is_cuda = [](const driver::DeviceRef& d) { return d.info.kind == driver::DeviceKind::kCuda; };
  const auto cuda = static_cast<int>(std::count_if(devices_.begin(), devices_.end(), is_cuda));
  for (const driver::DeviceRef& d : devices_) {
    submission_thread_counts_.push_back(count >= 0 ? count : is_cuda(d) ? DefaultSubmissionThreads(cores_, cuda) : 0);
  }
  return absl::OkStatus();
}

// A submission thread has its device current for good: making it so costs as much as a call, and it is asked for again
// and again.
std::unique_ptr<host::SubmissionThreads> RuntimeCore::MakeSubmissionThreads(int device) {
  const driver::DeviceRef& of = devices_[static_cast<size_t>(device)];
  return std::make_unique<host::SubmissionThreads>(host::SubmissionThreads::Options{
      .threads = submission_thread_counts_[static_cast<size_t>(device)],
      .name = "ps-submit/" + std::to_string(device),
      .begin =
          [this, of] {
            if (topology_ != nullptr) {
              const absl::Status near = topology_->RunOnNode(NodeOf(of.info));
              if (!near.ok()) Log(LogLevel::kInfo, "submission threads run anywhere: " + base::Str(near.message()));
            }
            current_before = of.driver->MakeCurrent(of.local);
          },
      .end = [of] { of.driver->RestoreCurrent(current_before); },
  });
}

host::SubmissionThreads* RuntimeCore::SubmissionThreads(int device) {
  if (submission_thread_counts_[static_cast<size_t>(device)] == 0) return nullptr;
  base::MutexLock lock(mu_);
  submission_threads_.resize(devices_.size());
  std::unique_ptr<host::SubmissionThreads>& submission_threads = submission_threads_[static_cast<size_t>(device)];
  if (submission_threads == nullptr) submission_threads = MakeSubmissionThreads(device);
  return submission_threads.get();
}

void RuntimeCore::StopSubmissionThreads() {
  std::vector<host::SubmissionThreads*> submission_threads;  // joined without the lock
  {
    base::MutexLock lock(mu_);
    for (const auto& of_device : submission_threads_) {
      if (of_device != nullptr) submission_threads.push_back(of_device.get());
    }
  }
  for (host::SubmissionThreads* const of_device : submission_threads) of_device->Stop();
}

void RuntimeCore::FreeDevice(const driver::DeviceRef& device, void* memory) {
  if (memory == nullptr) return;
  const bool held_up = base::answers_devices || base::InDeviceCode();
  if (!held_up || completion_ == nullptr) return device.driver->FreeDevice(device.local, memory);
  ReleaseBegins();  // who is out of memory waits for it
  auto* const freed = new FreedMemory{this, device, memory};
  completion_->Run({[](void* context, int64_t) {
                      const std::unique_ptr<FreedMemory> of(static_cast<FreedMemory*>(context));
                      of->device.driver->FreeDevice(of->device.local, of->memory);
                      of->runtime->ReleaseEnds();
                    },
                    freed});
}

bool RuntimeCore::ReserveHostcalls(const std::vector<int>& of_devices) {
  base::MutexLock lock(mu_);
  hostcalls_.resize(devices_.size());
  for (size_t d = 0; d < of_devices.size(); ++d) {
    if (hostcalls_[d] + of_devices[d] > driver::kMaxPendingHostcalls) return false;
  }
  for (size_t d = 0; d < of_devices.size(); ++d) hostcalls_[d] += of_devices[d];
  return true;
}

void RuntimeCore::ReleaseHostcalls(const std::vector<int>& of_devices) {
  base::MutexLock lock(mu_);
  for (size_t d = 0; d < of_devices.size(); ++d) hostcalls_[d] -= of_devices[d];
}

// Where each launch is waited for, who would answer may be the one that waits.
std::string RuntimeCore::HostcallsUnavailableReason(const driver::DeviceInfo& device) const {
  if (device.kind != driver::DeviceKind::kCuda) return "";
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && std::string_view(blocking) != "0" && *blocking != '\0') {
    return "CUDA_LAUNCH_BLOCKING is set";
  }
  // Nsight Compute runs a kernel many times over, and sets this (it is not documented) for what it runs.
  return std::getenv("NV_COMPUTE_PROFILER_PERFWORKS_DIR") != nullptr ? "a profiler replays kernels" : "";
}

std::vector<std::shared_ptr<InFlight>> RuntimeCore::Executables() const {
  std::vector<std::shared_ptr<InFlight>> alive;
  base::MutexLock lock(mu_);
  for (const auto& weak : executables_) {
    if (std::shared_ptr<InFlight> executable = weak.lock()) alive.push_back(std::move(executable));
  }
  return alive;
}

absl::Status RuntimeCore::Shutdown(Deadline deadline) {
  if (forked()) return Forked();
  in_flight_.Close();
  event_count_.Notify();  // who waits for a slot is refused now
  const bool drained = host::WaitForProgress(event_count_, notifies_, deadline.at(), [&] {
    for (const auto& executable : Executables()) executable->AdvanceAll();
    return in_flight_.runs() == 0;
  });
  if (!drained) {
    gave_up_.store(true, std::memory_order_release);
    const int64_t left = in_flight_.runs();
    for (const auto& executable : Executables()) {
      executable->AbandonAll(
          absl::DeadlineExceededError("the runtime was shut down before the run's work had drained"));
    }
    return absl::DeadlineExceededError("Runtime::Shutdown: " + std::to_string(left) +
                                       " runs were still in flight at the deadline; they are abandoned; the runtime "
                                       "keeps its threads and their memory until they have drained and Shutdown is "
                                       "called again");
  }
  for (const auto& polling : polling_) polling->Stop();
  completion_->Stop();
  StopPoller();
  StopSubmissionThreads();
  workers_->Shutdown();
  EndStaging();
  for (const auto& pool : pinned_) pool->EndThread();
  joined_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status RuntimeCore::ShutdownAtLast() {
  constexpr std::chrono::seconds kForAbandoned{1};
  constexpr std::chrono::milliseconds kSlice{100};  // so that time during which the process stood still is known
  if (gave_up_.load(std::memory_order_acquire)) return Shutdown(Deadline::Clock::now());
  in_flight_.Close();
  event_count_.Notify();
  host::WaitForProgress(event_count_, notifies_, host::TimePoint::max(), [&] {
    int64_t abandoned = copies_left_.load(std::memory_order_acquire);
    for (const auto& executable : Executables()) {
      executable->AdvanceAll();
      abandoned += executable->CountAbandoned();
    }
    return in_flight_.runs() <= abandoned;
  });
  base::CountedTime time(Deadline::Clock::now());
  for (std::chrono::nanoseconds waited{0}; waited < kForAbandoned; waited += time.Look(Deadline::Clock::now())) {
    const bool drained = host::WaitForProgress(event_count_, notifies_, Deadline::Clock::now() + kSlice, [&] {
      for (const auto& executable : Executables()) executable->AdvanceAll();
      return in_flight_.runs() == 0;
    });
    if (drained) break;
  }
  return Shutdown(Deadline::Clock::now());
}

}  // namespace penstock::runtime
