#include "graph/place/figures.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/common/assumed_figures.h"
#include "graph/common/message.h"

namespace penstock::graph {
namespace {

using DeviceFigures = MachineFigures::Device;

struct NamedAmount {
  const char* name;
  double DeviceFigures::* value;
  assumed::Figure if_unknown;
};
constexpr NamedAmount kAmounts[] = {
    {"memory", &DeviceFigures::memory, assumed::kMemory},
    {"fp32", &DeviceFigures::fp32, assumed::kFp32},
    {"upload", &DeviceFigures::upload, assumed::kUpload},
    {"download", &DeviceFigures::download, assumed::kDownload},
    {"copy_us", &DeviceFigures::copy_us, assumed::kCopyUs},
    {"stream_node_us", &DeviceFigures::stream_node_us, assumed::kStreamNodeUs},
};
constexpr double kLeastFigure = 1e-6, kMostFigure = 1e12;
constexpr int kMostKernels = 1 << 16;  // as the simulator's places

bool IsFigure(double value) { return value == 0 || (value >= kLeastFigure && value <= kMostFigure); }

absl::Status WrongFigures(const std::string& text) { return absl::InvalidArgumentError("MachineFigures: " + text); }

absl::Status CheckDevice(const DeviceFigures& device, const std::string& name) {
  if (device.name != name) {
    return WrongFigures("a device is named '" + OneLine(device.name) + "' where the runtime has '" + OneLine(name) +
                        "'; the figures are of another machine, or in another order");
  }
  for (const NamedAmount& amount : kAmounts) {
    if (!IsFigure(device.*amount.value)) return WrongFigures(name + ": " + amount.name + " is no figure of a machine");
  }
  if (device.kernels >= 0 && device.kernels <= kMostKernels) return absl::OkStatus();
  return WrongFigures(name + ": kernels is " + std::to_string(device.kernels) + "; give 0, if it is unknown, to " +
                      std::to_string(kMostKernels));
}

absl::Status CheckPeers(const std::vector<std::vector<double>>& peers, size_t devices) {
  if (peers.empty()) return absl::OkStatus();
  const std::string wanted = "; give a row and a column for each of the " + std::to_string(devices) + " devices";
  if (peers.size() != devices) return WrongFigures("peers has " + std::to_string(peers.size()) + " rows" + wanted);
  for (const std::vector<double>& row : peers) {
    if (row.size() != devices)
      return WrongFigures("a row of peers has " + std::to_string(row.size()) + " figures" + wanted);
    for (const double gbs : row) {
      if (!IsFigure(gbs)) return WrongFigures("peers has an entry that is no figure of a machine");
    }
  }
  return absl::OkStatus();
}

double ThroughHost(const MachineFigures& figures, size_t from, size_t to) {
  return assumed::ThroughHost(figures.devices[from].download, figures.devices[to].upload);
}

}  // namespace

PlaceLink PeerLink(const MachineFigures& figures, DeviceId from, DeviceId to) {
  const auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
  const double gbs = figures.peers[a][b];
  return {assumed::PeerCopyUs(gbs, ThroughHost(figures, a, b), figures.devices[b].copy_us), gbs};
}

absl::Status CheckFigures(const MachineFigures& figures, const Table<DeviceId, PlanDevice>& devices) {
  if (figures.devices.size() != devices.size()) {
    return WrongFigures("there are " + std::to_string(figures.devices.size()) + " devices and the runtime has " +
                        std::to_string(devices.size()) + "; give the figures of all of them, in the runtime's order");
  }
  for (const DeviceId d : devices.ids()) {
    const absl::Status status = CheckDevice(figures.devices[static_cast<size_t>(d)], devices[d].name);
    if (!status.ok()) return status;
  }
  if (!IsFigure(figures.submit_us)) return WrongFigures("submit_us is no figure of a machine");
  if (!IsFigure(figures.crossing_us)) return WrongFigures("crossing_us is no figure of a machine");
  return CheckPeers(figures.peers, devices.size());
}

MachineFigures AssumeFigures(const MachineFigures* known, const Table<DeviceId, PlanDevice>& devices) {
  MachineFigures all;
  if (known != nullptr) all = *known;
  all.devices.resize(devices.size());
  for (const DeviceId d : devices.ids()) {
    DeviceFigures& device = all.devices[static_cast<size_t>(d)];
    device.name = devices[d].name;
    for (const NamedAmount& amount : kAmounts) {
      if (device.*amount.value == 0) device.*amount.value = amount.if_unknown.Of(devices[d].is_cuda);
    }
    if (device.kernels == 0) device.kernels = 1;
  }
  all.peers.resize(devices.size(), std::vector<double>(devices.size()));
  for (size_t a = 0; a < devices.size(); ++a) {
    for (size_t b = 0; b < devices.size(); ++b) {
      if (all.peers[a][b] == 0) all.peers[a][b] = ThroughHost(all, a, b);
    }
  }
  if (all.submit_us == 0) all.submit_us = assumed::kSubmitUs;
  if (all.crossing_us == 0) all.crossing_us = assumed::kCrossingUs;
  return all;
}

}  // namespace penstock::graph
