// The language in which people name devices: RuntimeOptions::devices, PENSTOCK_DEVICES and the examples' --devices.
//
//   list  := part (';' part)*
//   part  := "cuda"                    every CUDA device
//          | "cuda:" n (',' n)*        the CUDA devices with these numbers, in this order
//          | "host"                    one host device
//          | "host:" n                 n host devices
//
// Each kind is named once. Spaces around names, numbers and separators are ignored. A runtime numbers its devices in
// the order of the list.
//
// Threads: a pure function.
// Errors:  InvalidArgument with the text, the part that is wrong, why, and the language.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::runtime {

inline constexpr int kMaxListedDevices = 1024;  // host devices; CUDA numbers lie below it

// One part of the list.
struct DeviceRequest {
  bool cuda = false;
  bool all = false;               // cuda without numbers
  std::vector<int> ordinals{};    // of CUDA devices
  int host_count = 0;             // 0 for cuda
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

// Whether the devices exist is for the drivers to say.
absl::StatusOr<std::vector<DeviceRequest>> ParseDeviceList(std::string_view text);

}  // namespace penstock::runtime
