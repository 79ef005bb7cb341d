#include "src/cli/measure/processor.h"

#include <sys/utsname.h>

#include <fstream>

namespace penstock::cli::measure {

std::string ProcessorName(const std::string& cpuinfo) {
  std::ifstream in(cpuinfo);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return uname(&system) == 0 ? system.machine : "unknown processor";
}

}  // namespace penstock::cli::measure
