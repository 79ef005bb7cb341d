// The public face of States: Runtime::MakeState and the calls behind State<T>.
#include <limits>
#include <string>
#include <utility>

#include "graph/message.h"
#include "penstock/runtime.h"
#include "penstock/state.h"
#include "penstock/status_macros.h"
#include "src/runtime/runtime_core.h"
#include "src/runtime/state_core.h"

namespace penstock {
namespace {

absl::Status NoState() {
  return absl::FailedPreconditionError("this State was default-constructed; use Runtime::MakeState");
}

absl::Status Refuse(const StateRecord& record, const std::string& text) {
  return absl::InvalidArgumentError("state '" + std::string(record.name.view()) + "' (" +
                                    graph::Where(record.name.source()) + "): " + text);
}

// The bytes of the State, or why it cannot be.
absl::StatusOr<size_t> CheckRecord(const StateRecord& record, size_t devices, size_t initial) {
  constexpr int64_t kMost = int64_t{1} << 62;
  if (record.name.view().empty()) {
    return Refuse(record, "has no name; messages call everything by its name; give it one");
  }
  if (record.device < 0 || static_cast<size_t>(record.device) >= devices) {
    return Refuse(record, "StateOptions::device is " + std::to_string(record.device) +
                              "; the runtime has devices 0 to " + std::to_string(devices - 1) + "; name one of them");
  }
  int64_t elements = 1;
  for (int i = 0; i < record.extent.rank; ++i) {
    const Dim& dim = record.extent.dims[static_cast<size_t>(i)];
    const std::string which = "dimension " + std::to_string(i) + " is ";
    if (!dim.is_constant()) {
      return Refuse(record, which + "a parameter; a State keeps its size across runs; give a constant");
    }
    if (dim.value < 0) {
      return Refuse(record, which + std::to_string(dim.value) + "; it counts something; give 0 or more");
    }
    if (__builtin_mul_overflow(elements, dim.value, &elements)) elements = kMost;
  }
  if (elements > kMost / record.type.size) {
    return Refuse(record, "its elements of " + std::to_string(record.type.size) +
                              " bytes are more than 2^62 bytes; no device holds that; make a dimension smaller");
  }
  if (initial != 0 && initial != static_cast<size_t>(elements)) {
    return Refuse(record, "was given " + std::to_string(initial) + " elements to begin with; it has " +
                              std::to_string(elements) + "; give exactly that many, or none for zeros");
  }
  return static_cast<size_t>(elements) * record.type.size;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const StateRecord>> Runtime::AllocateState(StateRecord record, const void* initial,
                                                                          size_t elements) {
  PENSTOCK_RETURN_IF_ERROR(core_->CheckOpen());
  PENSTOCK_ASSIGN_OR_RETURN(const size_t bytes, CheckRecord(record, core_->devices().size(), elements));
  PENSTOCK_ASSIGN_OR_RETURN(auto state, runtime::StateCore::Create(core_, std::move(record), bytes));
  PENSTOCK_RETURN_IF_ERROR(elements == 0 ? state->Reset({}) : state->Set(initial, elements, {}));
  return std::shared_ptr<const StateRecord>(std::move(state));
}

namespace detail {

absl::Status SetState(const StateRecord* state, const void* contents, size_t elements, Deadline deadline) {
  return state == nullptr ? NoState() : runtime::StateCore::Of(*state).Set(contents, elements, deadline);
}
absl::Status ReadState(const StateRecord* state, void* contents, size_t elements, Deadline deadline) {
  return state == nullptr ? NoState() : runtime::StateCore::Of(*state).Read(contents, elements, deadline);
}
absl::Status ResetState(const StateRecord* state, Deadline deadline) {
  return state == nullptr ? NoState() : runtime::StateCore::Of(*state).Reset(deadline);
}
absl::Status StatusOfState(const StateRecord* state) {
  return state == nullptr ? NoState() : runtime::StateCore::Of(*state).status();
}

}  // namespace detail
}  // namespace penstock
