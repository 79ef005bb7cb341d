#include "src/analysis/assumed_machine.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "graph/common/assumed_figures.h"
#include "graph/common/message.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

struct AssumedFigure {
  double Machine::Device::* value;
  const char* what;
  std::string (*text)(double);
  graph::assumed::Figure if_unknown;
};
constexpr AssumedFigure kAssumedFigures[] = {
    {&Machine::Device::upload, "uploads", RateText, graph::assumed::kUpload},
    {&Machine::Device::download, "downloads", RateText, graph::assumed::kDownload},
    {&Machine::Device::memory, "memory", RateText, graph::assumed::kMemory},
    {&Machine::Device::fp32, "FP32", FlopRateText, graph::assumed::kFp32},
    {&Machine::Device::copy_us, "a copy at least", TimeText, graph::assumed::kCopyUs},
    {&Machine::Device::stream_node_us, "a node on a stream", TimeText, graph::assumed::kStreamNodeUs},
    {&Machine::Device::graph_node_us, "a node of a graph", TimeText, graph::assumed::kGraphNodeUs},
    {&Machine::Device::launch_us, "a launch", TimeText, graph::assumed::kLaunchUs},
    {&Machine::Device::host_node_us, "a host node", TimeText, graph::assumed::kHostNodeUs},
};

void AssumeHost(AssumedMachine& to) {
  if (to.machine.host_copy <= 0) {
    to.machine.host_copy = graph::assumed::kHostCopy;
    to.assumed.push_back(absl::StrCat("host memory ", RateText(graph::assumed::kHostCopy)));
  }
  if (to.machine.host_fp32 <= 0) {
    to.machine.host_fp32 = graph::assumed::kHostFp32;
    to.assumed.push_back(absl::StrCat("host FP32 ", FlopRateText(graph::assumed::kHostFp32)));
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
      device.*figure.value = figure.if_unknown.Of(of.is_cuda);
      to.assumed.push_back(
          absl::StrCat(graph::OneLine(of.name), " ", figure.what, " ", figure.text(device.*figure.value)));
    }
  }
  AssumeHost(to);
  return to;
}

}  // namespace penstock::analysis
