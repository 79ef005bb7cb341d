// copies-bound and far-below-roofline: what the link, the memory and the arithmetic of a device allow.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/roofline.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

constexpr double kSlow = 0.25;  // of what was calibrated
constexpr double kLongEnoughMicros = 50;  // that starting a node does not count
constexpr size_t kMostNotes = 3;

bool IsCopyOnLink(const Profile::Node& node) { return node.kind == "upload" || node.kind == "download"; }

std::string PeakText(const Machine::Device& device) {
  return absl::StrCat("the ", FlopRateText(device.fp32), " that this device's plain FP32 reaches");
}

// "31 % of the 60 TFLOP/s that this device's plain FP32 reaches".
std::string UtilizationText(double gflops, const Machine::Device& device) {
  return absl::StrCat(PercentText(gflops / device.fp32), " of ", PeakText(device));
}

void AdviseOnBytes(const Profile::Node& node, const NodeFacts& seen, const Roof& roof, Finding& finding) {
  finding.evidence.push_back(absl::StrCat("Even the fastest of ", seen.count, " executions of ", NodeText(node),
                                          " moved only ", RateText(RateOf(roof.bytes, seen.shortest_us)),
                                          " of what it declares; this machine reaches ", RateText(roof.gbs), "."));
  if (IsCopyOnLink(node)) {
    finding.fix =
        "Look for other traffic on the link, and for memory on the other NUMA node; calibrate again if the machine has "
        "changed.";
    finding.gain_how = "unknown: what else used the link is not in the profile";
    return;
  }
  finding.fix = absl::StrCat(roof.flops > 0 ? "Let" : "Unless it computes much for each byte: let",
                             " neighbouring indices read neighbouring elements, declare only what it touches, and give "
                             "it enough elements to fill the device.");
  finding.gain_how = roof.flops > 0 ? "unknown: how it reads memory is not in the profile"
                                    : "unknown: what it computes is not in the profile";
}

void AdviseOnFlops(const Profile::Node& node, const NodeFacts& seen, const Machine::Device& device, Finding& finding) {
  const double gflops = RateOf(node.flops, seen.shortest_us);
  finding.evidence.push_back(absl::StrCat("Even the fastest of ", seen.count, " executions of ", NodeText(node),
                                          " computed at only ", FlopRateText(gflops), ": ",
                                          UtilizationText(gflops, device), " (model flops utilization)."));
  finding.fix =
      "Give it enough elements to fill the device, let neighbouring threads take the same branch, and keep what it "
      "uses again in registers or shared memory; matrix products belong on tensor cores (cuBLAS).";
  finding.gain_how = "unknown: how near to that its algorithm can come is not in the profile";
}

void LookAtNode(const Facts& facts, int g, int n, std::vector<Finding>& findings) {
  const Profile::Graph& graph = facts.profile().graphs[static_cast<size_t>(g)];
  const Profile::Node& node = graph.nodes[static_cast<size_t>(n)];
  const NodeFacts& seen = facts.graphs()[static_cast<size_t>(g)].nodes[static_cast<size_t>(n)];
  const Machine::Device* device = DeviceOf(*facts.machine(), facts.profile(), node.device);
  if (device == nullptr || seen.count == 0 || seen.batched || !TellsItsWork(node)) return;
  if (seen.shortest_us < kLongEnoughMicros || facts.Share(seen.total_us) < 2 * kNoticeable) return;
  const Roof roof = RoofOf(*device, node);
  if (roof.us() <= 0 || roof.us() > seen.shortest_us * kSlow) return;
  Finding finding;
  finding.rule = "far-below-roofline";
  finding.share = std::min(1.0, facts.Share(seen.total_us));
  finding.graph = g;
  finding.node = n;
  finding.span = seen.span;
  if (roof.is_of_flops()) {
    AdviseOnFlops(node, seen, *device, finding);
  } else {
    AdviseOnBytes(node, seen, roof, finding);
  }
  findings.push_back(std::move(finding));
}

// More than the peak: other units than those that were calibrated did it, or the declaration is wrong.
void NoteNodesBeyondPeak(const Facts& facts, std::vector<std::string>& notes) {
  const std::vector<Profile::Graph>& graphs = facts.profile().graphs;
  size_t found = 0;
  for (size_t g = 0; g < graphs.size(); ++g) {
    for (size_t n = 0; n < graphs[g].nodes.size(); ++n) {
      const Profile::Node& node = graphs[g].nodes[n];
      const NodeFacts& seen = facts.graphs()[g].nodes[n];
      const Machine::Device* device = DeviceOf(*facts.machine(), facts.profile(), node.device);
      if (device == nullptr || seen.count == 0 || seen.batched || device->fp32 <= 0) continue;
      const double gflops = RateOf(node.flops, seen.shortest_us);
      if (gflops <= device->fp32 || ++found > kMostNotes) continue;
      notes.push_back(absl::StrCat("By what it declares, the fastest execution of ", NodeText(node), " computed at ",
                                   FlopRateText(gflops), ", more than ", PeakText(*device), "."));
    }
  }
}

// Notes how much each device computed over the wall time. A span that has another name stands for several nodes, or for
// an iteration.
void NoteUtilization(const Facts& facts, std::vector<std::string>& notes) {
  const Profile& profile = facts.profile();
  std::vector<double> flops(profile.devices.size(), 0);
  for (const int s : facts.working()) {
    const int n = facts.NodeOf(s);
    if (n < 0) continue;
    const Profile::Node& node = profile.graphs[static_cast<size_t>(facts.GraphOf(s))].nodes[static_cast<size_t>(n)];
    if (node.device < 0 || static_cast<size_t>(node.device) >= flops.size()) continue;
    if (profile.spans[static_cast<size_t>(s)].name == node.name) flops[static_cast<size_t>(node.device)] += node.flops;
  }
  for (size_t d = 0; d < flops.size(); ++d) {
    const Machine::Device* device = DeviceOf(*facts.machine(), profile, static_cast<int>(d));
    if (flops[d] <= 0 || device == nullptr || device->fp32 <= 0) continue;
    const double gflops = RateOf(flops[d], facts.wall_us());
    notes.push_back(absl::StrCat("By what nodes declare, ", graph::OneLine(profile.devices[d].name), " computed at ",
                                 FlopRateText(gflops), " over the wall time: ", UtilizationText(gflops, *device),
                                 " (model flops utilization)."));
  }
}

}  // namespace

void NoteFlops(const Facts& facts, std::vector<std::string>& notes) {
  if (facts.machine() == nullptr || facts.wall_us() <= 0) return;
  NoteUtilization(facts, notes);
  NoteNodesBeyondPeak(facts, notes);
}

void FindFarBelowRoofline(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.machine() == nullptr) return;
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    for (size_t n = 0; n < facts.graphs()[g].nodes.size(); ++n) {
      LookAtNode(facts, static_cast<int>(g), static_cast<int>(n), findings);
    }
  }
}

// Overlapped as well as it gets, and the device still computes for less than half of the time.
void FindCopiesBound(const Facts& facts, std::vector<Finding>& findings) {
  const Engine* busiest = facts.busiest();
  if (busiest == nullptr || busiest->kind == SpanKind::kKernel || facts.Share(busiest->busy_us) < 0.8) return;
  double kernels = 0;
  for (const Engine& engine : facts.engines()) {
    if (engine.device == busiest->device && engine.kind == SpanKind::kKernel) kernels = engine.busy_us;
  }
  if (kernels > busiest->busy_us / 2) return;
  Finding finding;
  finding.rule = "copies-bound";
  finding.share = facts.Share(busiest->busy_us);
  finding.evidence.push_back(absl::StrCat(busiest->name, " go on for ", PercentText(finding.share),
                                          " of the time, kernels for ", PercentText(facts.Share(kernels)),
                                          ": the link sets the pace."));
  finding.fix =
      "Move fewer bytes: smaller element types, only the parts that changed (Slice), and a State for what stays the "
      "same from run to run.";
  finding.gain_how = "unknown: it depends on which bytes need not move";
  findings.push_back(std::move(finding));
}

}  // namespace penstock::analysis
