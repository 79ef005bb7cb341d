// memory-not-pinned: devices wait while host threads copy memory through pinned memory.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/rules/idle_sums.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

constexpr double kCopyMicros = 8;  // of a direct copy, whatever its size

bool IsSeenCopy(const Profile::Node& node, const NodeFacts& seen) {
  return seen.count > 0 && (node.kind == "upload" || node.kind == "download");
}

// For each node of a graph, whether it is a staged copy to which one by a device belongs, which then would not take its
// place but only go.
std::vector<bool> NodesWithDeviceCopy(const Facts& facts, int graph) {
  const std::vector<Profile::Node>& nodes = facts.profile().graphs[static_cast<size_t>(graph)].nodes;
  const std::vector<NodeFacts>& seen = facts.graphs()[static_cast<size_t>(graph)].nodes;
  const auto is_copy = [&](int n) {
    const auto at = static_cast<size_t>(n);
    return n >= 0 && at < nodes.size() && IsSeenCopy(nodes[at], seen[at]);
  };
  std::vector<bool> has(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    const auto& after = nodes[n].after;
    if (nodes[n].kind == "stage out") {
      if (std::any_of(after.begin(), after.end(), is_copy)) has[n] = true;
    } else if (is_copy(static_cast<int>(n))) {
      for (const int before : after) {
        if (before >= 0 && static_cast<size_t>(before) < nodes.size()) has[static_cast<size_t>(before)] = true;
      }
    }
  }
  return has;
}

// GB/s of direct copies, once they have begun.
class DirectRates {
 public:
  explicit DirectRates(const Facts& facts) {
    for (size_t g = 0; g < facts.graphs().size(); ++g) {
      const Profile::Graph& graph = facts.profile().graphs[g];
      for (size_t n = 0; n < graph.nodes.size(); ++n) {
        const NodeFacts& seen = facts.graphs()[g].nodes[n];
        if (!IsSeenCopy(graph.nodes[n], seen) || seen.batched) continue;
        const int64_t bytes = graph.nodes[n].read_bytes;
        measured_[graph.nodes[n].kind == "upload"].emplace_back(
            bytes, RateOf(static_cast<double>(bytes), std::max(seen.shortest_us - kCopyMicros, seen.shortest_us / 2)));
      }
    }
    for (auto& rates : measured_) {
      std::sort(rates.begin(), rates.end());
      for (size_t r = rates.size(); r-- > 1;) rates[r - 1].second = std::max(rates[r - 1].second, rates[r].second);
    }
    if (facts.machine() == nullptr) return;
    for (const Machine::Device& device : facts.machine()->devices) {
      calibrated_[0] = std::max(calibrated_[0], device.download);
      calibrated_[1] = std::max(calibrated_[1], device.upload);
    }
  }

  // As calibrated, or the fastest that the profile has among those not much smaller. The other direction stands in if
  // there is none of this one. 0: unknown.
  double Of(bool upload, int64_t bytes) const {
    if (calibrated_[upload] > 0) return calibrated_[upload];
    const double same = Measured(measured_[upload], bytes);
    return same > 0 ? same : Measured(measured_[!upload], bytes);
  }

 private:
  using Rates = std::vector<std::pair<int64_t, double>>;  // by bytes: the best of so many or more

  static double Measured(const Rates& rates, int64_t bytes) {
    const auto at = std::lower_bound(rates.begin(), rates.end(), std::pair(bytes / 4, 0.0));
    return at == rates.end() ? 0 : at->second;
  }

  std::array<Rates, 2> measured_;  // downloads, uploads
  std::array<double, 2> calibrated_{};
};

// How much of the idle time behind a staged copy would go.
std::optional<double> SavedByPinning(const Facts& facts, const DirectRates& rates, const IdleSum& idle,
                                     bool has_device_copy) {
  const Profile::Node& node =
      facts.profile().graphs[static_cast<size_t>(idle.graph)].nodes[static_cast<size_t>(idle.node)];
  const NodeFacts& seen = facts.graphs()[static_cast<size_t>(idle.graph)].nodes[static_cast<size_t>(idle.node)];
  if (has_device_copy) return idle.us;
  const double rate = rates.Of(node.kind == "stage in", node.read_bytes);
  if (rate <= 0 || seen.median_us <= 0) return std::nullopt;
  const double direct_us = kCopyMicros + static_cast<double>(node.read_bytes) / rate / 1000;
  return idle.us * std::max(0.0, 1 - direct_us / seen.median_us);
}

// What the graph's copies in one direction keep the link busy if all are direct; 0: unknown.
double LinkMicros(const Facts& facts, const DirectRates& rates, int g, bool upload,
                  const std::vector<bool>& has_device_copy) {
  const Profile::Graph& graph = facts.profile().graphs[static_cast<size_t>(g)];
  double us = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Profile::Node& node = graph.nodes[n];
    const bool up = node.kind == "upload" || node.kind == "stage in";
    if (up != upload || (!up && node.kind != "download" && node.kind != "stage out")) continue;
    const NodeFacts& seen = facts.graphs()[static_cast<size_t>(g)].nodes[n];
    const double rate = rates.Of(up, node.read_bytes);
    if (rate <= 0 || has_device_copy[n]) continue;
    const double each_us = (seen.batched ? 0 : kCopyMicros) + static_cast<double>(node.read_bytes) / rate / 1000;
    us += static_cast<double>(seen.count) * each_us;
  }
  return us;
}

// Without the part of the buffer that it copies.
std::string BufferOf(const Profile::Node& node) {
  std::string_view name = node.name;
  name = name.substr(0, name.rfind(" Slice({"));
  for (const std::string_view prefix : {"stage ", "unstage "}) {
    if (name.starts_with(prefix)) return absl::StrCat("'", graph::OneLine(name.substr(prefix.size())), "'");
  }
  return absl::StrCat("'", graph::OneLine(name), "'");
}

// `copies`: the idle time behind those of graph `g`.
void LookAtGraph(const Facts& facts, const DirectRates& rates, int g, std::span<const IdleSum> copies,
                 std::vector<Finding>& findings) {
  const std::vector<bool> has_device_copy = NodesWithDeviceCopy(facts, g);
  const Profile::Graph& graph = facts.profile().graphs[static_cast<size_t>(g)];
  Finding finding;
  finding.rule = "memory-not-pinned";
  finding.graph = g;
  finding.gain = 0;
  const IdleSum* most = nullptr;
  std::string buffers;
  for (const IdleSum& idle : copies) {
    if (idle.node < 0) continue;
    finding.share += facts.Share(idle.us);
    const std::optional<double> saved =
        SavedByPinning(facts, rates, idle, has_device_copy[static_cast<size_t>(idle.node)]);
    finding.gain = finding.gain && saved ? std::optional(*finding.gain + facts.Share(*saved)) : std::nullopt;
    if (most == nullptr || idle.us > most->us) most = &idle;
    if (facts.Share(idle.us) < kNoticeable / 5 || finding.evidence.size() > 3) continue;
    const Profile::Node& node = graph.nodes[static_cast<size_t>(idle.node)];
    const NodeFacts& seen = facts.graphs()[static_cast<size_t>(g)].nodes[static_cast<size_t>(idle.node)];
    absl::StrAppend(&buffers, buffers.empty() ? "" : " and ", BufferOf(node));
    finding.evidence.push_back(
        absl::StrCat("Host threads copied ", BufferOf(node), " through pinned memory ", TimesText(seen.count), ", ",
                     SizeText(node.read_bytes), " in ", TimeText(seen.median_us), " (",
                     RateText(RateOf(static_cast<double>(node.read_bytes), seen.median_us)), "); no device worked for ",
                     PercentText(facts.Share(idle.us)), " of the time meanwhile."));
  }
  if (finding.gain) {
    const double link_us = std::max(LinkMicros(facts, rates, g, true, has_device_copy),
                                    LinkMicros(facts, rates, g, false, has_device_copy));
    finding.gain = std::clamp(1 - facts.Share(link_us), 0.0, *finding.gain);
  }
  if (most == nullptr || finding.share < kNoticeable || (finding.gain && *finding.gain < kNoticeable / 2)) return;
  finding.node = most->node;
  finding.span = most->longest.span;
  finding.fix = absl::StrCat("Bind pinned memory to ",
                             buffers.empty() ? BufferOf(graph.nodes[static_cast<size_t>(most->node)]) : buffers,
                             ": make it with Runtime::MakeHostBuffer, or declare the buffer kSlot and fill a lease.");
  finding.gain_how = finding.gain
                         ? "the time in which devices waited for these copies, less what direct copies take; the link "
                           "to the device sets a limit"
                         : "unknown: no direct copy was measured to compare with";
  findings.push_back(std::move(finding));
}

}  // namespace

void FindMemoryNotPinned(const Facts& facts, std::vector<Finding>& findings) {
  const std::vector<IdleSum> copies = SumIdle(facts, IdleCause::kStaging);  // in order of their graphs
  if (copies.empty()) return;
  const DirectRates rates(facts);
  for (size_t begin = 0, end = 0; begin < copies.size(); begin = end) {
    while (end < copies.size() && copies[end].graph == copies[begin].graph) ++end;
    if (copies[begin].graph < 0) continue;
    LookAtGraph(facts, rates, copies[begin].graph, std::span(copies).subspan(begin, end - begin), findings);
  }
}

}  // namespace penstock::analysis
