// The processor's name.
//
// Threads: free function.
#pragma once

#include <string>

namespace penstock::cli::measure {

// As the system tells it, read from a file like /proc/cpuinfo; else the architecture's name.
std::string ProcessorName(const std::string& cpuinfo = "/proc/cpuinfo");

}  // namespace penstock::cli::measure
