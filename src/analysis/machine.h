// Machine: what one machine can do, as `penstock calibrate` measured it: what costs are estimated from where nothing
// was measured, and what measured work is compared with.
//
// Bandwidths are in GB/s (10^9 bytes a second), times in microseconds, and floating-point operations in GFLOP/s (10^9 a
// second, a multiply-add counting as two); 0 is unknown. The file is read and written by
// src/cli/machine_file.h.
//
// Threads: plain values, and a pure function.
#pragma once

#include <string>
#include <vector>

#include "penstock/profile.h"

namespace penstock::analysis {

struct Machine {
  struct Device {
    std::string name;  // "cuda:0"
    std::string description;  // "NVIDIA H200"
    bool is_cuda = false;
    double upload = 0, download = 0;  // of pinned memory, one large copy at a time
    double upload_both_ways = 0, download_both_ways = 0;  // each while the other goes on
    double staged_upload = 0, staged_download = 0;  // of memory that is not pinned
    double memory = 0;  // reading plus writing, by a kernel
    double fp32 = 0;  // single-precision multiply-adds by plain code, without tensor cores
    double copy_us = 0;  // of a copy of a few bytes
    double stream_node_us = 0, graph_node_us = 0;  // a kernel that does nothing, one after the other
    double launch_us = 0;  // until Launch returns, of a graph of one node
    double host_node_us = 0;  // a host node that does nothing, between two kernels
    friend bool operator==(const Device&, const Device&) = default;
  };

  std::string host;  // the processor's name
  int cores = 0;
  double host_copy = 0;  // from memory to memory, reading plus writing, by as many threads as help
  double host_fp32 = 0;  // as Device::fp32, by all cores
  std::vector<Device> devices;
  bool quick = false;  // a smoke run's figures
  std::vector<std::vector<double>> peers;  // from the first index's device to the second's; 0 within one
  friend bool operator==(const Machine&, const Machine&) = default;
};

// What is known of a device of the profile, an index in Profile::devices: that of the same name and description; null:
// nothing.
const Machine::Device* DeviceOf(const Machine& machine, const Profile& profile, int device);

}  // namespace penstock::analysis
