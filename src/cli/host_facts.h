// HostFacts: what the system tells about the machine that a program runs on.
//
// Threads:   plain values, and a function that reads files.
// Errors:    none: what is not told is empty or 0.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::cli {

struct HostFacts {
  std::string processor;  // "AMD EPYC 9654 96-Core Processor"
  int cores = 0;  // that this process may use: affinity and cgroups
  int numa_nodes = 0;  // online
  int64_t memory_bytes = 0;  // that this process may use
  std::string nvidia_driver;  // "580.95.05"; empty: its kernel module is not loaded
  std::string cuda_build;  // "13.0.88": the toolkit that this command was built with; empty: without CUDA
};

// `root`: below which /proc and /sys are looked for.
HostFacts LookAtHost(const std::string& root = "");

}  // namespace penstock::cli
