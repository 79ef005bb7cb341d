// The language of device lists: RuntimeOptions::devices, PENSTOCK_DEVICES and the examples' --devices.
//
//   list  := part (';' part)*
//   part  := "cuda"                    every CUDA device
//          | "cuda:" n (',' n)*        the CUDA devices with these numbers, in this order
//          | "host"                    one host device
//          | "host:" n                 n host devices
//
// Each kind may be named once. Spaces around names, numbers and separators are ignored. A runtime numbers its devices
// in the order of the list.
//
// Threads: a pure function.
// Errors:  InvalidArgument with the text, the wrong part, the reason and the language.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::runtime {

inline constexpr int kMaxListedDevices = 1024;  // limits host devices, and CUDA numbers are below it

// One part of the list.
struct DeviceRequest {
  bool cuda = false;
  bool all = false;               // all CUDA devices
  std::vector<int> ordinals{};    // the numbers of CUDA devices
  int host_count = 0;             // 0 for cuda
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

// Parses the text; the drivers check whether the devices exist.
absl::StatusOr<std::vector<DeviceRequest>> ParseDeviceList(std::string_view text);

}  // namespace penstock::runtime
