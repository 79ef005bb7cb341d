// The public interface of States: Runtime::MakeState and the calls behind State<T>.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "penstock/runtime.h"
#include "penstock/state.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/core/pointer_attributes.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/state/state_call.h"
#include "src/runtime/state/state_core.h"
#include "src/runtime/state/state_transfer.h"

namespace penstock {
namespace {

absl::Status NoState() {
  return absl::FailedPreconditionError("this State was default-constructed or moved from; use Runtime::MakeState");
}

runtime::StateRequest SetOf(const char* what, const void* contents, size_t elements) {
  return {.what = what, .writes = true, .from = static_cast<const std::byte*>(contents), .elements = elements};
}
runtime::StateRequest ReadOf(const char* what, void* contents, size_t elements) {
  return {.what = what, .to = static_cast<std::byte*>(contents), .elements = elements};
}

absl::Status Refuse(const StateRecord& record, const std::string& text) {
  return absl::InvalidArgumentError("state " + graph::Quoted(record.name) + ": " + text);
}

// The elements of the State, or why it is invalid. As in a graph, a dimension of 0 counts as 1 against the limit.
absl::StatusOr<int64_t> CheckExtent(const StateRecord& record) {
  constexpr int64_t kMost = int64_t{1} << 62;
  const Extent& extent = record.extent;
  if (extent.rank < 1 || extent.rank > kMaxRank) {
    return Refuse(record, "has " + std::to_string(extent.rank) + " dimensions; an extent has 1 to 3; use one of these");
  }
  bool empty = false, fits = true;
  int64_t product = std::max<int64_t>(record.type.size, 1);
  std::string numbers;
  for (int i = 0; i < extent.rank; ++i) {
    const Dim& dim = extent.dims[i];
    const std::string which = "dimension " + std::to_string(i) + " is ";
    if (!dim.is_constant()) {
      return Refuse(record, which + "a parameter; a State keeps its size across runs; give a constant");
    }
    if (dim.value < 0) {
      return Refuse(record, which + std::to_string(dim.value) + "; it is a count; give 0 or more");
    }
    const int64_t size = std::max<int64_t>(dim.value, 1);
    fits = fits && size <= kMost / product;
    if (fits) product *= size;
    empty = empty || dim.value == 0;
    numbers += (i > 0 ? " x " : "") + std::to_string(dim.value);
  }
  if (!fits) {
    return Refuse(record, numbers + " elements of " + std::to_string(record.type.size) +
                              " bytes are more than 2^62 bytes; no device holds that; make a dimension smaller");
  }
  return empty ? 0 : product / std::max<int64_t>(record.type.size, 1);
}

// The bytes of the State, or why it cannot be made.
absl::StatusOr<size_t> CheckRecord(const StateRecord& record, size_t devices, size_t initial) {
  if (record.name.view().empty()) {
    return Refuse(record, "has no name; messages call everything by its name; give it one");
  }
  if (record.device < 0 || static_cast<size_t>(record.device) >= devices) {
    return Refuse(record, "StateOptions::device is " + std::to_string(record.device) +
                              "; the runtime has devices 0 to " + std::to_string(devices - 1) + "; name one of them");
  }
  if (record.type.align > graph::kMostAlign) {
    return Refuse(record, graph::TooAligned("has elements", record.type.align));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t elements, CheckExtent(record));
  if (initial != 0 && initial != static_cast<size_t>(elements)) {
    return Refuse(record, "was given " + std::to_string(initial) + " elements to begin with; it has " +
                              std::to_string(elements) + "; give exactly that many, or none for zeros");
  }
  return static_cast<size_t>(elements) * record.type.size;
}

// `what`: the call that makes the State.
absl::StatusOr<std::shared_ptr<const StateRecord>> Make(const std::shared_ptr<runtime::RuntimeCore>& core,
                                                        StateRecord record, const void* initial, size_t elements,
                                                        const char* what) {
  PENSTOCK_RETURN_IF_ERROR(core->CheckOpen());
  if (base::InUserCode()) {
    return absl::FailedPreconditionError("state " + graph::Quoted(record.name) + ": " + what +
                                         " inside a host node or callback, which it could wait for; call it outside");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const size_t bytes, CheckRecord(record, core->devices().size(), elements));
  PENSTOCK_ASSIGN_OR_RETURN(auto state, runtime::StateCore::Create(core, std::move(record), bytes));
  PENSTOCK_RETURN_IF_ERROR(elements == 0 ? state->Reset({}, what)
                                         : state->Transfer(SetOf(what, initial, elements), Box(), {}));
  return std::shared_ptr<const StateRecord>(std::move(state));
}

// Whether the memory may be the State's.
absl::Status CheckAdopted(const StateRecord& record, const driver::DeviceRef& device, const void* memory,
                          size_t elements, size_t bytes) {
  const auto refuse = [&](const std::string& text) {
    return base::Prefixed("state " + graph::Quoted(record.name) + " on " + device.info.name,
                          absl::InvalidArgumentError("AdoptState was given " + text));
  };
  const std::string given = std::to_string(elements) + " elements";
  if (elements * record.type.size != bytes) {
    return refuse(given + "; the State has " + std::to_string(bytes / record.type.size) + "; give exactly that many");
  }
  if (bytes == 0) return absl::OkStatus();
  if (memory == nullptr) return refuse(given + " at a null address; give memory that exists");
  if (reinterpret_cast<uintptr_t>(memory) % record.type.align != 0) {
    return refuse("memory at no multiple of " + std::to_string(record.type.align) +
                  " bytes, which its elements need; give memory so aligned, such as Runtime::MakeDeviceBuffer gives");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const driver::PointerInfo found, runtime::InspectAll(*device.driver, memory, bytes));
  const bool is_device = found.kind == driver::PointerInfo::Kind::kDevice;
  if (is_device && found.device == device.local) return absl::OkStatus();
  return refuse("memory that is not " + std::string(is_device && found.device < 0 ? "all of " : "of ") +
                device.info.name + "; give memory of that device, or name the memory's own in StateOptions::device");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const StateRecord>> Runtime::AllocateState(StateRecord record, const void* initial,
                                                                          size_t elements) {
  if (core_ == nullptr) return runtime::NoRuntime();
  return Make(core_, std::move(record), initial, elements, "MakeState");
}

absl::StatusOr<std::shared_ptr<const StateRecord>> Runtime::AdoptMemory(StateRecord record, void* memory,
                                                                        size_t elements,
                                                                        std::shared_ptr<const void> keep_alive) {
  if (core_ == nullptr) return runtime::NoRuntime();
  PENSTOCK_RETURN_IF_ERROR(core_->CheckOpen());
  PENSTOCK_ASSIGN_OR_RETURN(const size_t bytes, CheckRecord(record, core_->devices().size(), 0));
  PENSTOCK_RETURN_IF_ERROR(CheckAdopted(record, core_->devices()[record.device], memory, elements, bytes));
  const runtime::AdoptedMemory adopted{memory, std::move(keep_alive)};
  record.adopted = true;
  PENSTOCK_ASSIGN_OR_RETURN(auto state, runtime::StateCore::Create(core_, std::move(record), bytes, &adopted));
  return std::shared_ptr<const StateRecord>(std::move(state));
}

absl::StatusOr<std::shared_ptr<const ShardLayout>> Runtime::LayOutState(const Name& name, const Extent& extent,
                                                                        const Sharding& sharding, const Halo& halo) {
  std::string mistake;
  auto layout = std::make_shared<const ShardLayout>(detail::LayOut(name, extent, sharding, halo, &mistake));
  if (mistake.empty()) return std::shared_ptr<const ShardLayout>(std::move(layout));
  return base::Prefixed("sharded state " + graph::Quoted(name), absl::InvalidArgumentError(mistake));
}

absl::StatusOr<std::shared_ptr<const StateRecord>> Runtime::AllocateReplicas(StateRecord record,
                                                                             std::vector<int> devices,
                                                                             const void* initial, size_t elements) {
  if (core_ == nullptr) return runtime::NoRuntime();
  if (devices.empty()) {
    devices.resize(core_->devices().size());
    std::iota(devices.begin(), devices.end(), 0);
  }
  std::vector<std::shared_ptr<const StateRecord>> replicas;
  for (const int device : devices) {
    if (std::count(devices.begin(), devices.end(), device) > 1) {
      return Refuse(record, "ReplicatedStateOptions::devices names " + std::to_string(device) +
                                " twice; a device has one replica");
    }
    StateRecord replica = record;
    replica.name = detail::NumberedName(record.name, device);
    replica.device = device;
    PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<const StateRecord> made,
                              Make(core_, std::move(replica), initial, elements, "MakeReplicatedState"));
    replicas.push_back(std::move(made));
  }
  record.device = devices[0];
  record.runtime = core_.get();
  record.replicas = std::move(replicas);
  return std::make_shared<const StateRecord>(std::move(record));
}

namespace detail {
namespace {

absl::StatusOr<Transfer> Start(const std::shared_ptr<const StateRecord>& state, const runtime::StateRequest& request,
                               const TransferOptions& options) {
  if (state == nullptr) return NoState();
  PENSTOCK_ASSIGN_OR_RETURN(
      auto transfer,
      runtime::StateTransfer::Start(std::static_pointer_cast<const runtime::StateCore>(state), request, options));
  return Transfer(std::move(transfer));
}

}  // namespace

absl::Status SetState(const StateRecord* state, const void* contents, size_t elements, const Box& box,
                      Deadline deadline) {
  if (state == nullptr) return NoState();
  return runtime::StateCore::Of(*state).Transfer(SetOf("Set", contents, elements), box, deadline);
}
absl::Status ReadState(const StateRecord* state, void* contents, size_t elements, const Box& box, Deadline deadline) {
  if (state == nullptr) return NoState();
  return runtime::StateCore::Of(*state).Transfer(ReadOf("Read", contents, elements), box, deadline);
}
absl::StatusOr<Transfer> StartSetState(const std::shared_ptr<const StateRecord>& state, const void* contents,
                                       size_t elements, const TransferOptions& options) {
  return Start(state, SetOf("StartSet", contents, elements), options);
}
absl::StatusOr<Transfer> StartReadState(const std::shared_ptr<const StateRecord>& state, void* contents,
                                        size_t elements, const TransferOptions& options) {
  return Start(state, ReadOf("StartRead", contents, elements), options);
}
absl::Status ResetState(const StateRecord* state, Deadline deadline) {
  return state == nullptr ? NoState() : runtime::StateCore::Of(*state).Reset(deadline);
}
absl::Status StatusOfState(const StateRecord* state) {
  return state == nullptr ? NoState() : runtime::StateCore::Of(*state).status();
}
void* MemoryOfState(const StateRecord* state) {
  return state == nullptr ? nullptr : runtime::StateCore::Of(*state).memory();
}

}  // namespace detail
}  // namespace penstock
