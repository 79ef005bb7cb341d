// MachineFigures: what a machine can do, as far as the placement of nodes (placement.h) needs to know it.
//
// The figures are named as in the file that `penstock calibrate` writes, and are in its units: bandwidths in GB/s (10^9
// bytes a second), floating-point operations in GFLOP/s, times in microseconds. 0 is unknown: then a figure of a small
// GPU of 2018 is assumed or, for a host device, of a few cores.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <string>
#include <vector>

namespace penstock {

struct MachineFigures {
  // What one device can do.
  struct Device {
    std::string name{};  // as Device::name: "cuda:0"
    double memory = 0;  // reading plus writing, by a kernel
    double fp32 = 0;  // single-precision operations, a multiply-add counting as two
    double upload = 0, download = 0;  // of pinned memory
    double copy_us = 0;  // of a copy of a few bytes
    double stream_node_us = 0;  // of a kernel that does nothing
    // How many kernels run at a time, each as fast as alone, if they take longer than their launch. 0: 1, since such
    // kernels fill a device.
    int kernels = 0;
    friend bool operator==(const Device&, const Device&) = default;
  };

  std::vector<Device> devices;  // all of the runtime's, in its order
  // From the first index's device to the second's. Empty: unknown; a copy then takes as long as through the host.
  std::vector<std::vector<double>> peers{};
  double submit_us = 0;  // what the thread that launches spends on each node, on streams
  double crossing_us = 0;  // from the end of a node until one on another device may begin
  friend bool operator==(const MachineFigures&, const MachineFigures&) = default;
};

}  // namespace penstock
