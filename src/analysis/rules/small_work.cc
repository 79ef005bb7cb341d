// many-tiny-nodes, many-small-copies, job-too-small: work in pieces that cost more to hand out than to do.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/analysis/rules/on_host.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

constexpr double kTinyMicros = 5;
constexpr double kTinyShare = 0.3;
constexpr int kFewNodes = 8;  // a resident region is made of at least so many
constexpr int64_t kSmallCopyBytes = int64_t{64} << 10;
constexpr int kFewCopies = 4;
constexpr double kSmallJobMicros = 20;
constexpr int64_t kSmallJobBytes = int64_t{256} << 10;

struct SomeNodes {
  int nodes = 0;
  int64_t spans = 0;
  double us = 0;  // that at least one of their spans covers
  TimeSet at;
  int first = -1;  // the node with the most time
  double bytes = 0;
};

// The nodes of graph `g` of which `counts(node, facts)` holds.
template <class Counts>
SomeNodes NodesThat(const Facts& facts, size_t g, const Counts& counts) {
  const std::vector<Profile::Node>& nodes = facts.profile().graphs[g].nodes;
  const std::vector<NodeFacts>& seen = facts.graphs()[g].nodes;
  std::vector<bool> counted(nodes.size());
  SomeNodes some;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (seen[n].count == 0 || !counts(nodes[n], seen[n])) continue;
    counted[n] = true;
    ++some.nodes;
    some.spans += seen[n].count;
    some.bytes += static_cast<double>(nodes[n].read_bytes);
    if (some.first < 0 || seen[n].total_us > seen[static_cast<size_t>(some.first)].total_us)
      some.first = static_cast<int>(n);
  }
  std::vector<Interval> at;
  for (const int s : facts.graphs()[g].spans) {
    const int node = facts.NodeOf(s);
    if (node >= 0 && counted[static_cast<size_t>(node)]) at.push_back(facts.At(s));
  }
  some.at = facts.Clip(std::move(at));
  some.us = some.at.length();
  return some;
}

// What else the devices did than work of that kind for graph g.
TimeSet OtherWork(const Facts& facts, size_t g, SpanKind kind) {
  std::vector<Interval> at;
  for (const int s : facts.working()) {
    const Span& span = facts.profile().spans[static_cast<size_t>(s)];
    const bool works = span.kind <= SpanKind::kKernel && span.device >= 0;
    if (works && !(facts.GraphOf(s) == static_cast<int>(g) && span.kind == kind)) at.push_back(facts.At(s));
  }
  return TimeSet(std::move(at));
}

void LookAtCopies(const Facts& facts, size_t g, SpanKind kind, std::vector<Finding>& findings) {
  const char* const name = kind == SpanKind::kUpload ? "upload" : "download";
  const SomeNodes copies = NodesThat(facts, g, [&](const Profile::Node& node, const NodeFacts& seen) {
    return node.kind == name && !seen.batched && node.read_bytes <= kSmallCopyBytes;
  });
  if (copies.nodes < kFewCopies || facts.Share(copies.us) < kNoticeable) return;
  // How long these copies run without other work beside them.
  const double alone = copies.at.Minus(OtherWork(facts, g, kind)).length();
  if (facts.Share(alone) < kNoticeable) return;
  const Profile::Graph& graph = facts.profile().graphs[g];
  Finding finding;
  finding.rule = "many-small-copies";
  finding.share = facts.Share(alone);
  finding.graph = static_cast<int>(g);
  finding.node = copies.first;
  finding.span = facts.graphs()[g].nodes[static_cast<size_t>(copies.first)].span;
  finding.evidence.push_back(absl::StrCat("Each run of ", GraphText(graph), " makes ", copies.nodes, " ", name, "s of ",
                                          SizeText(static_cast<int64_t>(copies.bytes / copies.nodes)),
                                          " on average, which take ",
                                          TimeText(copies.us / static_cast<double>(copies.spans)), " each; for ",
                                          PercentText(finding.share), " of the time devices did nothing else."));
  finding.fix = absl::StrCat("Put what these ", name,
                             "s move side by side in one buffer, and take parts of it with Slice or "
                             "Graph::Alias: one ",
                             name, " then moves all.");
  const double saved = alone * (1 - 1.0 / copies.nodes);
  finding.gain = facts.Share(saved);
  finding.gain_how = absl::StrCat("one ", name, " takes about as long as one of the ", copies.nodes, " small ones");
  finding.floor_cut = facts.Share(facts.FloorCut(kind, saved));
  findings.push_back(std::move(finding));
}

constexpr const char* kTryOnHost =
    "; PENSTOCK_DEVICES=host penstock doctor --exec PROGRAM says what a run takes on a host device";

// What a host device would bring. The device takes `now_us` for a run.
void AdviseOnHostDevice(const Facts& facts, int g, double now_us, Finding& finding) {
  const RunOnHost on_host = EstimateOnHost(facts, g);
  const double saved =
      facts.Share((now_us - on_host.us) * static_cast<double>(facts.graphs()[static_cast<size_t>(g)].runs));
  if (on_host.us <= 0) {
    finding.gain_how = absl::StrCat("unknown: ", on_host.why_unknown, kTryOnHost);
  } else if (saved < kNoticeable) {
    finding.gain_how = absl::StrCat("unknown: by what its nodes declare a run would take ", TimeText(on_host.us),
                                    " on a host device, and takes ", TimeText(now_us), " now",
                                    "; how many items fit into one run is not in the profile");
  } else {
    finding.gain = saved;
    finding.gain_how = absl::StrCat("by what its nodes declare and the machine file, a run would take ",
                                    TimeText(on_host.us), " on a host device, and takes ", TimeText(now_us), " now");
  }
}

}  // namespace

void FindManyTinyNodes(const Facts& facts, std::vector<Finding>& findings) {
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    const Profile::Graph& graph = facts.profile().graphs[g];
    if (graph.report.regions > 0) continue;  // their nodes have no launches of their own
    const SomeNodes tiny = NodesThat(facts, g, [](const Profile::Node& node, const NodeFacts& seen) {
      return node.kind != "conditional" && node.device >= 0 && node.kind != "upload" && node.kind != "download" &&
             !seen.batched && seen.median_us < kTinyMicros;
    });
    if (tiny.nodes < kFewNodes || facts.Share(tiny.us) < kTinyShare) continue;
    Finding finding;
    finding.rule = "many-tiny-nodes";
    finding.share = facts.Share(tiny.us);
    finding.graph = static_cast<int>(g);
    finding.node = tiny.first;
    finding.span = facts.graphs()[g].nodes[static_cast<size_t>(tiny.first)].span;
    finding.evidence.push_back(
        absl::StrCat(tiny.nodes, " nodes of ", GraphText(graph), " take less than 5 us each, ",
                     TimeText(facts.graphs()[g].nodes[static_cast<size_t>(tiny.first)].median_us), " in the case of ",
                     NodeText(graph.nodes[static_cast<size_t>(tiny.first)]), "; together ", PercentText(finding.share),
                     " of the time."));
    finding.fix =
        "Compile with Resident::kAuto (CompileOptions::resident), which runs small ParallelFor nodes in one kernel, or "
        "let each node do more.";
    finding.gain_how = "unknown: what starting a node costs is not in the profile";
    findings.push_back(std::move(finding));
  }
}

void FindManySmallCopies(const Facts& facts, std::vector<Finding>& findings) {
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    LookAtCopies(facts, g, SpanKind::kUpload, findings);
    LookAtCopies(facts, g, SpanKind::kDownload, findings);
  }
}

// On a CUDA device, where a launch costs what a processor does in the same time on a few KiB.
void FindJobTooSmall(const Facts& facts, std::vector<Finding>& findings) {
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    const GraphFacts& of = facts.graphs()[g];
    const Profile::Graph& graph = facts.profile().graphs[g];
    if (!of.steady || of.is_body || of.runs == 0 || of.submit_us <= 0) continue;
    const auto& devices = facts.profile().devices;
    const bool on_cuda = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Profile::Node& node) {
      return node.device >= 0 && static_cast<size_t>(node.device) < devices.size() &&
             devices[static_cast<size_t>(node.device)].is_cuda;
    });
    const SomeNodes work =
        NodesThat(facts, g, [](const Profile::Node& node, const NodeFacts&) { return node.device >= 0; });
    const double work_us = work.us / static_cast<double>(of.runs);
    if (!on_cuda || work.nodes == 0 || work_us > kSmallJobMicros || work.bytes > static_cast<double>(kSmallJobBytes))
      continue;
    if (facts.Share(of.time_us - work.us) < 0.5) continue;
    Finding finding;
    finding.rule = "job-too-small";
    finding.graph = static_cast<int>(g);
    finding.share = facts.Share(of.time_us - work.us);
    finding.evidence.push_back(absl::StrCat(
        "A run of ", GraphText(graph), " keeps the device at work for ", TimeText(work_us), " and reads ",
        SizeText(static_cast<int64_t>(work.bytes)), "; from launch to end it takes ", TimeText(of.run_us), "."));
    finding.fix =
        "Put many such items into one run, or run the graph on a host device (RuntimeOptions::devices = \"host\") and "
        "compare.";
    AdviseOnHostDevice(facts, static_cast<int>(g), of.time_us / static_cast<double>(of.runs), finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace penstock::analysis
