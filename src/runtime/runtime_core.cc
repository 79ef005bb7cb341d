#include "src/runtime/runtime_core.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/driver/host/host_driver.h"
#include "src/runtime/device_list.h"
#include "src/runtime/executable_core.h"
#include "src/runtime/progress.h"
#if defined(PENSTOCK_HAS_CUDA)
#include "src/driver/cuda/cuda_driver.h"
#endif

namespace penstock::runtime {
namespace {

int Cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

absl::Status CudaMissing(const std::string& why) {
  return absl::NotFoundError("device 'cuda': " + why +
                             "; name host devices instead (devices = \"host\" or PENSTOCK_DEVICES=host), or leave the "
                             "devices unnamed to fall back to them");
}

}  // namespace

RuntimeCore::RuntimeCore(const RuntimeOptions& options) : logger_(options.log_level, options.log) {}

absl::StatusOr<std::shared_ptr<RuntimeCore>> RuntimeCore::Create(const RuntimeOptions& options) {
  if (options.workers < 0 || options.host_device_threads < 0) {
    return absl::InvalidArgumentError("RuntimeOptions: workers = " + std::to_string(options.workers) +
                                      ", host_device_threads = " + std::to_string(options.host_device_threads) +
                                      "; neither can be negative; use 0 for the default");
  }
  std::shared_ptr<RuntimeCore> core(new RuntimeCore(options));
  PENSTOCK_RETURN_IF_ERROR(core->MakeDevices(options));
  core->workers_ =
      std::make_unique<host::WorkerPool>(options.workers > 0 ? options.workers : std::max(2, Cores() - 1), "ps-worker");
  core->completion_ = std::make_unique<CompletionThread>(core->bell_, core->rings_);
  return core;
}

RuntimeCore::~RuntimeCore() {
  completion_.reset();
  workers_.reset();
  pinned_.clear();
}

absl::Status RuntimeCore::MakeDevices(const RuntimeOptions& options) {
  std::string text = options.devices;
  if (const char* env = std::getenv("PENSTOCK_DEVICES"); text.empty() && env != nullptr) text = env;
  if (text.empty()) return AddDefaultDevices(options);
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<DeviceRequest> requests, ParseDeviceList(text));
  for (const DeviceRequest& request : requests) {
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
  host.threads_per_device =
      options.host_device_threads > 0 ? options.host_device_threads : std::max(1, Cores() / count);
  host.bell = &bell_;
  AddDriver(driver::host::CreateHostDriver(host));
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
  const int driver_index = static_cast<int>(drivers_.size());
  for (int d = 0; d < driver->device_count(); ++d) {
    const driver::DeviceInfo& info = driver->device(d);
    devices_.push_back({driver.get(), d, driver_index, info});
    public_devices_.push_back({info.name, info.description, info.kind == driver::DeviceKind::kCuda, info.memory_bytes});
  }
  rings_ = rings_ && driver->rings();
  pinned_.push_back(memory::PinnedPool::Create(*driver, {}));
  drivers_.push_back(std::move(driver));
}

absl::Status RuntimeCore::CheckOpen() const {
  if (failed_.load(std::memory_order_acquire)) {
    base::MutexLock lock(mu_);
    return fault_;
  }
  if (closed_.load(std::memory_order_acquire)) {
    return absl::FailedPreconditionError("the runtime has been shut down; make a new one");
  }
  return absl::OkStatus();
}

void RuntimeCore::Latch(const absl::Status& fault) {
  {
    base::MutexLock lock(mu_);
    if (!fault_.ok()) return;
    fault_ = base::Prefixed("refused after a fatal device error", fault);
  }
  failed_.store(true, std::memory_order_release);
  Log(LogLevel::kError, base::Str(fault.message()));
  bell_.Ring();
}

void RuntimeCore::AddExecutable(const std::shared_ptr<ExecutableCore>& executable) {
  base::MutexLock lock(mu_);
  executables_.erase(
      std::remove_if(executables_.begin(), executables_.end(), [](const auto& e) { return e.expired(); }),
      executables_.end());
  executables_.push_back(executable);
}

void RuntimeCore::RunDrained() {
  in_flight_.fetch_sub(1, std::memory_order_acq_rel);
  bell_.Ring();
}

void RuntimeCore::AdvanceEverything() {
  std::vector<std::weak_ptr<ExecutableCore>> executables;
  {
    base::MutexLock lock(mu_);
    executables = executables_;
  }
  for (const auto& weak : executables) {
    if (const std::shared_ptr<ExecutableCore> executable = weak.lock()) executable->AdvanceAll();
  }
}

absl::Status RuntimeCore::Shutdown(Deadline deadline) {
  if (base::InUserCode()) {
    return absl::FailedPreconditionError(
        "Runtime::Shutdown inside a host node or callback, which it would wait for; call it outside");
  }
  closed_.store(true, std::memory_order_release);
  const bool drained = WaitForProgress(bell_, rings_, deadline.at(), [&] {
    AdvanceEverything();
    return in_flight_.load(std::memory_order_acquire) == 0;
  });
  if (!drained) {
    return absl::DeadlineExceededError("Runtime::Shutdown: " + std::to_string(in_flight_.load()) +
                                       " runs were still in flight at the deadline; they are abandoned");
  }
  completion_->Stop();
  workers_->Shutdown();
  joined_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace penstock::runtime
