#include "src/analysis/rules/on_host.h"

#include <algorithm>
#include <utility>

#include "src/analysis/assumed_machine.h"
#include "src/analysis/estimate.h"
#include "src/analysis/roofline.h"

namespace penstock::analysis {
namespace {

constexpr int64_t kSimulatedOnHost = 100'000;  // nodes: a tenth of a second

// The graph alone, with all of its nodes on one host device. Host devices copy bound memory as it is.
Profile OnHostDevice(const Profile::Graph& graph) {
  Profile moved;
  moved.devices.push_back({.name = "host:0", .description = "", .is_cuda = false, .memory_bytes = 0});
  moved.graphs.push_back(graph);
  for (Profile::Lane& lane : moved.graphs[0].lanes) lane.device = 0;
  for (Profile::Node& node : moved.graphs[0].nodes) node.device = std::min(node.device, 0);
  return moved;
}

// What the machine's cores and memory do, and what a host device takes beside (assumed_machine.h).
Machine HostOf(const Profile& moved, const Machine& known) {
  Machine machine = known;
  machine.devices.clear();
  Machine::Device& device = machine.devices.emplace_back();
  device.name = moved.devices[0].name;
  device.memory = known.host_copy;
  device.upload = device.download = known.host_copy / 2;  // a copy reads and writes
  device.fp32 = known.host_fp32;
  return AssumeMissing(moved, &machine).machine;
}

}  // namespace

RunOnHost EstimateOnHost(const Facts& facts, int g) {
  if (facts.machine() == nullptr || facts.machine()->host_copy <= 0) {
    return {0, "what the host can do is not known without a machine file (penstock calibrate, --machine FILE)"};
  }
  const Profile::Graph& graph = facts.profile().graphs[static_cast<size_t>(g)];
  const bool tells = std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const Profile::Node& node) {
    return node.kind == "stage in" || node.kind == "stage out" || TellsItsWork(node);
  });
  if (!tells) return {0, "not all nodes say what they do (NodeRef::Flops)"};
  const Profile moved = OnHostDevice(graph);
  const auto estimate = EstimateOf(moved, 0, HostOf(moved, *facts.machine()), kSimulatedOnHost);
  if (!estimate.ok()) return {0, "its runs cannot be simulated"};
  const auto slots = static_cast<size_t>(std::clamp(graph.slots, 1, Estimate::kMostSlots));
  const Estimate::RunTime& run = estimate->runs[slots - 1];
  return {std::min(run.stream_us, run.graph_us), ""};
}

}  // namespace penstock::analysis
