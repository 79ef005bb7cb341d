// Status details that the whole library shares: the payload of device faults, and conversions for Abseil's string type.
//
// Threads: free functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace penstock::base {

// Debian's Abseil 20220623 has its own string_view; newer ones alias std's. This converts for both.
inline absl::string_view Av(std::string_view s) { return absl::string_view(s.data(), s.size()); }
inline std::string Str(absl::string_view s) { return std::string(s.data(), s.size()); }

// A device fault. `fatal`: the process has lost its CUDA devices for good.
struct DeviceFault {
  int cuda_code = 0;
  bool fatal = false;
};

// Attaches and reads the fault of a status (payload "penstock.dev/fault").
absl::Status WithFault(absl::Status status, DeviceFault fault);
std::optional<DeviceFault> FaultOf(const absl::Status& status);
bool IsFatal(const absl::Status& status);

// The node of a plan that failed rides in the Status until somebody describes it (payload "penstock.dev/node", which
// users never see): WithNode attaches it, TakeNode takes it out; -1: there is none.
absl::Status WithNode(absl::Status status, int32_t node);
int32_t TakeNode(absl::Status& status);

// The same code and payloads, with `prefix` and ": " before the message.
absl::Status Prefixed(std::string_view prefix, const absl::Status& status);
// The same with `suffix` after the message.
absl::Status Suffixed(const absl::Status& status, std::string_view suffix);

}  // namespace penstock::base
