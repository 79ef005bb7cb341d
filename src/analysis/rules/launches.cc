// launch-bound and made-again: devices wait while runs are submitted.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/rules/idle_sums.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

// The launch of a graph costs about as much as that many nodes on streams.
constexpr double kNodesAGraphLaunchCosts = 3;

// A kernel on a stream that takes less, while its run is still being submitted, mostly waits for its own submission.
constexpr double kTinyOnStreamMicros = 10;
// What a tiny one takes in a graph (docs/performance.md).
constexpr double kTinyInGraphMicros = 1;

struct MadeAgain {
  double graphs = 0, captures = 0;  // beyond one for each slot and each part of a run
  double us = 0;  // of the wall time: what they took, by the mean
};

MadeAgain SurplusOf(const Facts& facts, int g) {
  const Profile::Graph& graph = facts.profile().graphs[static_cast<size_t>(g)];
  const SubmissionReport& report = graph.report;
  if (graph.launches <= 0) return {};
  const double slots = std::max(1, graph.slots);
  // Graphs also stand for conditions and bodies of constructs, which a launch does not count.
  const auto constructs = std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [](const Profile::Node& node) { return node.kind == "conditional"; });
  const int64_t parts = (report.graph_launches + graph.launches - 1) / graph.launches + 4 * constructs;
  const auto made = static_cast<double>(report.graphs), captures = static_cast<double>(report.captures);
  const auto captured = std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                      [](const Profile::Node& node) { return node.kind == "launch"; });
  MadeAgain surplus{std::max(0.0, made - slots * static_cast<double>(std::max<int64_t>(1, parts))),
                    std::max(0.0, captures - slots * static_cast<double>(captured)), 0};
  const double seen =
      static_cast<double>(facts.graphs()[static_cast<size_t>(g)].runs) / static_cast<double>(graph.launches);
  if (surplus.graphs > 0) {
    surplus.us += report.instantiating_us * surplus.graphs / made;
  }
  if (surplus.captures > 0) {
    surplus.us += report.capturing_us * surplus.captures / captures;
  }
  surplus.us *= std::min(1.0, seen);
  return surplus;
}

bool IsMadeTooOften(const Facts& facts, int g, const MadeAgain& surplus) {
  const auto launches = static_cast<double>(facts.profile().graphs[static_cast<size_t>(g)].launches);
  return surplus.graphs + surplus.captures > launches / 10 && facts.Share(surplus.us) >= kNoticeable;
}

void AddNotes(const SubmissionReport& report, Finding& finding) {
  constexpr size_t kMost = 3;
  for (size_t n = 0; n < std::min(report.notes.size(), kMost); ++n) {
    finding.evidence.push_back(absl::StrCat("The submission report says: ", graph::OneLine(report.notes[n]), "."));
  }
}

int64_t DeviceNodes(const Profile::Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const Profile::Node& node) { return node.device >= 0; });
}

bool IsOnCuda(const Profile& profile, const Span& span) {
  return span.device >= 0 && static_cast<size_t>(span.device) < profile.devices.size() &&
         profile.devices[static_cast<size_t>(span.device)].is_cuda;
}

// How much longer than in a graph the graph's tiny kernels seem to take, since they wait for their own submissions.
double WaitsInKernels(const Facts& facts, int g) {
  std::vector<Interval> launches;
  for (const int s : facts.graphs()[static_cast<size_t>(g)].spans) {
    if (facts.profile().spans[static_cast<size_t>(s)].kind == SpanKind::kSubmit) launches.push_back(facts.At(s));
  }
  std::vector<Interval> kernels;
  for (const int s : facts.graphs()[static_cast<size_t>(g)].spans) {
    const Span& span = facts.profile().spans[static_cast<size_t>(s)];
    const Interval at = facts.At(s);
    if (span.kind != SpanKind::kKernel || !IsOnCuda(facts.profile(), span) || at.length() > kTinyOnStreamMicros)
      continue;
    kernels.push_back({std::min(at.begin + kTinyInGraphMicros, at.end), at.end});
  }
  return facts.Clip(std::move(kernels)).And(TimeSet(std::move(launches))).length();
}

void AdviseOnLaunch(const Facts& facts, int g, double idle_us, Finding& finding) {
  const Profile::Graph& graph = facts.profile().graphs[static_cast<size_t>(g)];
  const auto nodes = static_cast<double>(DeviceNodes(graph));
  const SubmissionReport& report = graph.report;
  const bool lost = report.graph_us > 0 && report.stream_us > 0 && report.graph_us >= report.stream_us;
  const std::string why_none = report.mode == Mode::kStream ? WhyNoGraphs(report) : "";
  if (!why_none.empty()) {
    finding.fix =
        absl::StrCat("Graphs would submit all nodes of ", GraphText(graph), " at once, but there are none: ", why_none,
                     ". Change that if you can; otherwise give each launch more to do.");
    finding.gain_how = "unknown: it depends on whether that can be changed";
    return;
  }
  if (report.mode == Mode::kStream && nodes > kNodesAGraphLaunchCosts && !lost) {
    finding.fix = absl::StrCat("Compile ", GraphText(graph),
                               " with Mode::kGraph or Mode::kAuto, which submit all its nodes at "
                               "once.");
    const double waits_us = WaitsInKernels(facts, g);
    finding.gain = facts.Share(idle_us * (1 - kNodesAGraphLaunchCosts / nodes) + waits_us);
    finding.floor_cut = facts.Share(facts.FloorCut(SpanKind::kKernel, waits_us));
    finding.gain_how =
        absl::StrCat("the time in which devices waited for launches, less what a graph launch costs, taken as ",
                     kNodesAGraphLaunchCosts, " of the ", nodes, " nodes");
    if (waits_us > 0) {
      absl::StrAppend(&finding.gain_how, "; a kernel of less than ", kTinyOnStreamMicros,
                      " us that began while its run was being submitted counts as ", kTinyInGraphMicros, " us");
    }
    return;
  }
  finding.gain_how = "unknown: it depends on how much work one launch can be given";
  finding.fix = absl::StrCat("Give each launch of ", GraphText(graph),
                             " more to do: several items in one run, or several steps in "
                             "a Repeat or While.");
}

}  // namespace

void FindLaunchBound(const Facts& facts, std::vector<Finding>& findings) {
  for (const IdleSum& idle : SumIdle(facts, IdleCause::kLaunch)) {
    if (idle.graph < 0 || facts.Share(idle.us) < kNoticeable) continue;
    if (IsMadeTooOften(facts, idle.graph, SurplusOf(facts, idle.graph))) continue;  // made-again says it
    const Profile::Graph& graph = facts.profile().graphs[static_cast<size_t>(idle.graph)];
    const GraphFacts& of = facts.graphs()[static_cast<size_t>(idle.graph)];
    Finding finding;
    finding.rule = "launch-bound";
    finding.share = facts.Share(idle.us);
    finding.graph = idle.graph;
    finding.span = idle.longest.span;
    finding.evidence.push_back(
        absl::StrCat("A launch of ", GraphText(graph), " took ", TimeText(of.submit_us), " for ", DeviceNodes(graph),
                     " nodes on devices, submitted ", graph.report.mode == Mode::kStream ? "one by one" : "as graphs",
                     "; no device worked for ", PercentText(finding.share), " of the time meanwhile."));
    if (graph.report.mode == Mode::kStream) AddNotes(graph.report, finding);  // why no graph
    AdviseOnLaunch(facts, idle.graph, idle.us, finding);
    findings.push_back(std::move(finding));
  }
}

void FindMadeAgain(const Facts& facts, std::vector<Finding>& findings) {
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    if (!facts.graphs()[g].steady) continue;
    const Profile::Graph& graph = facts.profile().graphs[g];
    const MadeAgain surplus = SurplusOf(facts, static_cast<int>(g));
    if (!IsMadeTooOften(facts, static_cast<int>(g), surplus)) continue;
    Finding finding;
    finding.rule = "made-again";
    finding.graph = static_cast<int>(g);
    finding.share = facts.Share(surplus.us);
    finding.evidence.push_back(absl::StrCat("In ", graph.launches, " launches of ", GraphText(graph), ", ",
                                            surplus.graphs, " CUDA graphs were instantiated again and ",
                                            surplus.captures, " Launch nodes captured again, which took about ",
                                            TimeText(surplus.us), "."));
    AddNotes(graph.report, finding);
    finding.fix = surplus.captures >= surplus.graphs ? "Pass values that change from run to run to Launch nodes by "
                                                       "OnDevice, so that the captured calls stay valid."
                                                     : "Keep what the graphs were made for: the same kind of memory, "
                                                       "sizes and devices in all bindings. The report's "
                                                       "remarks name what changed.";
    finding.gain = finding.share;
    finding.gain_how = "the time that the submission report gives for them, by the mean";
    findings.push_back(std::move(finding));
  }
}

}  // namespace penstock::analysis
