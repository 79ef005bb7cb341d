#include "src/cli/host_facts.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

#include "src/base/limits.h"
#include "src/cli/measure/processor.h"

namespace penstock::cli {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// How many are in a list as the kernel writes it, "0-3,8".
int CountInList(std::string_view list) {
  int count = 0;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(range.size() + 1, list.size()));
    int first = 0, last = 0;
    const char* const end = range.end();
    const std::from_chars_result begun = std::from_chars(range.begin(), end, first);
    if (begun.ec != std::errc()) continue;
    last = first;
    if (begun.ptr != end && *begun.ptr == '-') std::from_chars(begun.ptr + 1, end, last);
    count += std::max(0, last - first + 1);
  }
  return count;
}

// The first word that looks like one, as in "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Wed ...".
std::string VersionIn(const std::string& line) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  }
  return "";
}

}  // namespace

HostFacts LookAtHost(const std::string& root) {
  HostFacts facts;
  facts.processor = measure::ProcessorName(root + "/proc/cpuinfo");
  facts.cores = base::UsableProcessors();
  facts.numa_nodes = CountInList(FirstLine(root + "/sys/devices/system/node/online"));
  facts.memory_bytes = base::MemoryOfProcess().bytes;
  facts.nvidia_driver = VersionIn(FirstLine(root + "/proc/driver/nvidia/version"));
#if defined(PENSTOCK_CUDA_VERSION)
  facts.cuda_build = PENSTOCK_CUDA_VERSION;
#endif
  return facts;
}

}  // namespace penstock::cli
