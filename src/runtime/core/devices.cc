#include "src/runtime/core/devices.h"

#include <algorithm>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/base/pace.h"
#include "src/base/status.h"
#include "src/driver/host/host_driver.h"
#include "src/runtime/core/device_list.h"
#include "src/runtime/core/test_hook.h"
#if defined(PENSTOCK_HAS_CUDA)
#include "src/driver/cuda/cuda_driver.h"
#endif

namespace penstock::runtime {
namespace {

constexpr int kMostDeviceThreads = 16384;

absl::Status TellOfOpening(const RuntimeOptions& options, const std::string& what, size_t done, size_t total) {
  const std::string text = "opening " + what;
  return base::Tell(options.progress, "RuntimeOptions::progress",
                    {.what = text, .done = static_cast<int64_t>(done), .total = static_cast<int64_t>(total)});
}

absl::Status CudaMissing(const std::string& why) {
  return absl::NotFoundError("device 'cuda': " + why +
                             "; name host devices instead (devices = \"host\" or PENSTOCK_DEVICES=host), or leave the "
                             "devices unnamed to fall back to them");
}

}  // namespace

absl::Status Devices::Make(const RuntimeOptions& options, int64_t pinned_bytes, bool checked) {
  pinned_bytes_ = pinned_bytes;
  budget_ = std::make_shared<memory::PinnedBudget>(static_cast<size_t>(pinned_bytes));
  checked_ = checked;
  RuntimeOptions paced = options;
  paced.progress = PacedByHook(options.progress);
  return AddAll(paced);
}

absl::Status Devices::AddAll(const RuntimeOptions& options) {
  const bool by_variable = options.devices.empty();
  const std::string text = by_variable ? base::Variable("PENSTOCK_DEVICES").value_or("") : options.devices;
  if (text.empty()) return AddDefault(options);
  const absl::StatusOr<std::vector<DeviceRequest>> requests = ParseDeviceList(text);
  const char* const source = by_variable ? "PENSTOCK_DEVICES" : "RuntimeOptions::devices";
  if (!requests.ok()) return base::Prefixed(source, requests.status());
  for (const DeviceRequest& request : *requests) {
    if (!request.cuda) {
      PENSTOCK_RETURN_IF_ERROR(AddHost(request.host_count, options));
    } else if (request.all) {
      PENSTOCK_RETURN_IF_ERROR(AddCuda({}, options));
    } else {
      PENSTOCK_RETURN_IF_ERROR(AddCuda(request.ordinals, options));
    }
  }
  return absl::OkStatus();
}

absl::Status Devices::AddDefault(const RuntimeOptions& options) {
  absl::Status cuda = AddCuda({}, options);
  if (cuda.ok() || absl::IsCancelled(cuda) || absl::IsInternal(cuda)) return cuda;  // or the user's progress ends it
  logger_.Log(LogLevel::kInfo, "no CUDA device is usable, running on a host device: " + base::Str(cuda.message()));
  return AddHost(1, options);
}

absl::Status Devices::AddHost(int count, const RuntimeOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(TellOfOpening(options, "host devices", 0, 1));
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

absl::Status Devices::AddCuda([[maybe_unused]] const std::vector<int>& ordinals,
                              [[maybe_unused]] const RuntimeOptions& options) {
#if defined(PENSTOCK_HAS_CUDA)
  driver::CudaDriverOptions cuda;
  cuda.ordinals = ordinals;
  absl::Status told;
  cuda.before_device = [&](const std::string& name, size_t done, size_t total) {
    return told = TellOfOpening(options, name, done, total);
  };
  absl::StatusOr<std::unique_ptr<driver::Driver>> made = driver::CreateCudaDriver(cuda);
  if (!told.ok()) return told;
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

void Devices::AddDriver(std::unique_ptr<driver::Driver> driver) {
  driver = ApplyHook(std::move(driver), checked_, logger_);
  const int driver_index = static_cast<int>(drivers_.size());
  for (int d = 0; d < driver->device_count(); ++d) {
    const driver::DeviceInfo& info = driver->device(d);
    refs_.push_back({driver.get(), d, driver_index, info});
    public_devices_.push_back({info.name, info.description, info.kind == driver::DeviceKind::kCuda, info.memory_bytes});
  }
  notifies_ = notifies_ && driver->notifies_completion();
  pools_.push_back(memory::PinnedPool::Create(*driver, PoolOptions(*driver)));
  drivers_.push_back(std::move(driver));
}

// Loads the topology for the first driver with devices on a PCI bus: for other memory no node is worth choosing.
void Devices::LoadTopology() {
  topology_ = HookedTopology();
  if (topology_ != nullptr) return;
  absl::StatusOr<memory::Topology> here = memory::Topology::OfThisComputer();
  if (here.ok()) {
    topology_ = std::make_shared<const memory::Topology>(*std::move(here));
  } else {
    logger_.Log(LogLevel::kInfo, "pinned memory is taken from any NUMA node: " + base::Str(here.status().message()));
  }
}

int Devices::NodeOf(const driver::DeviceInfo& device) const {
  return topology_ == nullptr || device.pci_bus_id.empty() ? -1 : topology_->NodeNear(device.pci_bus_id);
}

memory::PinnedPoolOptions Devices::PoolOptions(const driver::Driver& driver) {
  memory::PinnedPoolOptions options = HookedPinnedOptions();
  options.budget = budget_;
  options.returned = [this] { event_count_.Notify(); };
  if (driver.device_count() == 0 || driver.device(0).pci_bus_id.empty()) return options;
  LoadTopology();
  if (topology_ == nullptr) return options;
  options.node = NodeOf(driver.device(0));
  options.on_node = [this](int node, const std::function<void()>& allocate) {
    const absl::Status status = topology_->OnNode(node, allocate);
    if (!status.ok())
      logger_.Log(LogLevel::kInfo, "pinned memory is taken from any node: " + base::Str(status.message()));
  };
  return options;
}

void Devices::TrimPools() {
  for (const auto& pool : pools_) pool->Trim();
}

void Devices::EndPoolThreads() {
  for (const auto& pool : pools_) pool->EndThread();
}

PinnedGauges Devices::pinned_gauges() const {
  PinnedGauges sum;
  for (const auto& pool : pools_) {
    const PinnedGauges one = pool->gauges();
    sum.in_use += one.in_use;
    sum.peak += one.peak;
    sum.reserved += one.reserved;
    sum.slabs += one.slabs;
    sum.waits += one.waits;
  }
  sum.budget = pinned_bytes_;
  return sum;
}

void Devices::BindToNode(int node, int number, const char* what) const {
  if (node < 0 || number >= topology_->processors(node)) return;
  const absl::Status near = topology_->RunOnNode(node);
  if (!near.ok()) logger_.Log(LogLevel::kInfo, std::string(what) + " run anywhere: " + base::Str(near.message()));
}

void Devices::RunNear(const driver::DeviceInfo& device, const char* what) const {
  if (topology_ == nullptr) return;
  const absl::Status near = topology_->RunOnNode(NodeOf(device));
  if (!near.ok()) logger_.Log(LogLevel::kInfo, std::string(what) + " run anywhere: " + base::Str(near.message()));
}

}  // namespace penstock::runtime
