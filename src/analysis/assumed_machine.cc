#include "src/analysis/assumed_machine.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

struct AssumedFigure {
  double Machine::Device::* value;
  const char* what;
  std::string (*text)(double);
  double of_cuda, of_host;
};
constexpr AssumedFigure kAssumedFigures[] = {
    {&Machine::Device::upload, "uploads", RateText, 12, 5},
    {&Machine::Device::download, "downloads", RateText, 12, 5},
    {&Machine::Device::memory, "memory", RateText, 300, 10},
    {&Machine::Device::fp32, "FP32", FlopRateText, 8000, 10},
    {&Machine::Device::copy_us, "a copy at least", TimeText, 10, 5},
    {&Machine::Device::stream_node_us, "a node on a stream", TimeText, 5, 5},
    {&Machine::Device::graph_node_us, "a node of a graph", TimeText, 2, 5},
    {&Machine::Device::launch_us, "a launch", TimeText, 10, 15},
    {&Machine::Device::host_node_us, "a host node", TimeText, 30, 50},
};
constexpr double kHostCopy = 10, kHostFp32 = 10;  // GB/s, GFLOP/s

void AssumeHost(AssumedMachine& to) {
  if (to.machine.host_copy <= 0) {
    to.machine.host_copy = kHostCopy;
    to.assumed.push_back(absl::StrCat("host memory ", RateText(kHostCopy)));
  }
  if (to.machine.host_fp32 <= 0) {
    to.machine.host_fp32 = kHostFp32;
    to.assumed.push_back(absl::StrCat("host FP32 ", FlopRateText(kHostFp32)));
  }
}

}  // namespace

AssumedMachine AssumeMissing(const Profile& profile, const Machine* known) {
  AssumedMachine to;
  if (known != nullptr) to.machine = *known;
  to.machine.devices.clear();
  to.machine.peers.clear();
  for (size_t d = 0; d < profile.devices.size(); ++d) {
    const Device& of = profile.devices[d];
    const Machine::Device* found = known == nullptr ? nullptr : DeviceOf(*known, profile, static_cast<int>(d));
    Machine::Device& device = to.machine.devices.emplace_back();
    if (found != nullptr) device = *found;
    device.name = of.name;
    device.description = of.description;
    device.is_cuda = of.is_cuda;
    for (const AssumedFigure& figure : kAssumedFigures) {
      if (device.*figure.value > 0) continue;
      device.*figure.value = of.is_cuda ? figure.of_cuda : figure.of_host;
      to.assumed.push_back(
          absl::StrCat(graph::OneLine(of.name), " ", figure.what, " ", figure.text(device.*figure.value)));
    }
  }
  AssumeHost(to);
  return to;
}

}  // namespace penstock::analysis
