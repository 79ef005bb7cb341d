// Quantities in sentences and tables for people: three digits that say something, and a unit.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::analysis {

std::string NumberText(double value);  // "1.25", "12.5", "125", "1250"
std::string PercentText(double share, int digits = 0);  // "12 %" of a share from 0 to 1
std::string TimeText(double us);  // "12.3 us", "1.25 ms", "2.50 s"
std::string SizeText(int64_t bytes);  // "40 B", "64 MiB", "12.5 KiB"
std::string RateText(double gigabytes_per_second);  // "12.3 GB/s"
std::string FlopsText(double operations);  // "2.15 GFLOP"
std::string FlopRateText(double gigaflops_per_second);  // "60.1 TFLOP/s"
std::string CountText(int64_t count, std::string_view one);  // "1 run", "3 runs"
std::string TimesText(int64_t count);  // "once", "3 times": in counts of runs and launches

}  // namespace penstock::analysis
