// Runtime: the public handle of a RuntimeCore.
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "penstock/executable.h"
#include "penstock/runtime.h"
#include "penstock/status_macros.h"
#include "src/base/process_life.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/core/device_allocation.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/runtime_metrics.h"
#include "src/runtime/core/runtime_records.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/executable/internals.h"

namespace penstock {

absl::StatusOr<Runtime> Runtime::Create(const RuntimeOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(auto core, runtime::RuntimeCore::Create(options));
  return Runtime(std::move(core));
}

Runtime::~Runtime() {
  if (core_ == nullptr || core_->forked() || core_->shut_down()) return;
  // A static Runtime: parts of CUDA, and what user code uses, may be gone; waiting for it could take forever.
  if (base::Exiting()) {
    base::LeakOnPurpose(std::move(core_));
    return;
  }
  runtime::RuntimeCore::End(std::move(core_));
}

const std::vector<Device>& Runtime::devices() const& {
  static const auto& none = *new std::vector<Device>;
  return core_ == nullptr ? none : core_->device_set().public_devices();
}

penstock::Profile Runtime::Profile() const {
  if (core_ == nullptr || core_->forked()) return {};
  return runtime::ProfileOf(*core_);
}

Measurement Runtime::Measured() const {
  if (core_ == nullptr || core_->forked()) return {};
  return runtime::MeasurementOf(*core_);
}

penstock::Metrics Runtime::Metrics() const {
  if (core_ == nullptr || core_->forked()) return {};
  return runtime::MetricsOf(*core_);
}

absl::StatusOr<Executable> Runtime::Compile(const Graph& graph, const CompileOptions& options) {
  if (core_ == nullptr) return runtime::NoRuntime();
  try {
    PENSTOCK_ASSIGN_OR_RETURN(auto set, runtime::ExecutableSet::Create(core_, graph.model(), options));
    return detail::Internals<Executable>::Make(std::move(set));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "Runtime::Compile: no host memory for the plan and what its runs need; ask for fewer slots, or a smaller "
        "graph");
  }
}

namespace {

absl::Status CheckSize(const char* what, int64_t elements, size_t element_size) {
  if (elements >= 0 && static_cast<uint64_t>(elements) <= std::numeric_limits<int64_t>::max() / element_size) return {};
  return absl::InvalidArgumentError(std::string(what) + ": " + std::to_string(elements) + " elements of " +
                                    std::to_string(element_size) + " bytes; the size is negative or overflows");
}

// The memory of a HostBuffer, shared by bindings and runs. The core keeps alive the driver that it came from.
struct HostBlock {
  ~HostBlock() {
    block = memory::PinnedBlock();
    if (left) core->memory().LeftBlockReturned();
  }
  std::shared_ptr<runtime::RuntimeCore> core;
  memory::PinnedBlock block;
  bool left = false;  // its HostBuffer has gone
};

// The HostBuffer's own reference to it.
struct HostBlockOwner {
  ~HostBlockOwner() {
    host->left = true;
    host->core->memory().BlockLeft();
  }
  std::shared_ptr<HostBlock> host;
};

}  // namespace

absl::StatusOr<Runtime::HostMemory> Runtime::AllocateHost(int64_t elements, size_t element_size, Deadline deadline) {
  if (core_ == nullptr) return runtime::NoRuntime();
  PENSTOCK_RETURN_IF_ERROR(CheckSize("MakeHostBuffer", elements, element_size));
  PENSTOCK_RETURN_IF_ERROR(core_->CheckOpen());
  auto allocated = core_->memory().AllocateHost(static_cast<size_t>(elements) * element_size, deadline);
  core_->NoteFault(allocated.status());
  PENSTOCK_ASSIGN_OR_RETURN(auto memory, std::move(allocated));
  const std::shared_ptr<HostBlock> host(new HostBlock{core_, std::move(memory)}, base::DeleteUnlessForked());
  void* const data = host->block.data();
  return HostMemory{std::shared_ptr<void>(host, data),
                    std::shared_ptr<void>(new HostBlockOwner{host}, base::DeleteUnlessForked())};
}

absl::StatusOr<std::shared_ptr<void>> Runtime::AllocateDevice(int64_t elements, size_t element_size, int device) {
  if (core_ == nullptr) return runtime::NoRuntime();
  PENSTOCK_RETURN_IF_ERROR(CheckSize("MakeDeviceBuffer", elements, element_size));
  PENSTOCK_RETURN_IF_ERROR(core_->CheckOpen());
  const auto& all = core_->devices();
  if (device < 0 || static_cast<size_t>(device) >= all.size()) {
    return absl::InvalidArgumentError("MakeDeviceBuffer: the device is " + std::to_string(device) +
                                      "; the runtime has devices 0 to " + std::to_string(all.size() - 1));
  }
  auto block = runtime::AllocateDeviceBlock(core_, device, static_cast<size_t>(elements) * element_size);
  if (block.ok()) return block;
  return base::Prefixed("MakeDeviceBuffer on " + all[device].info.name, block.status());
}

PinnedGauges Runtime::pinned_memory() const {
  return core_ == nullptr ? PinnedGauges() : core_->device_set().pinned_gauges();
}

absl::Status Runtime::Shutdown(Deadline deadline) {
  if (core_ == nullptr) return runtime::NoRuntime();
  if (base::MustNotAwaitEnds()) {
    return absl::FailedPreconditionError(
        "Runtime::Shutdown inside a host node or callback, which it would wait for; call it outside");
  }
  return core_->Shutdown(deadline);
}

}  // namespace penstock
