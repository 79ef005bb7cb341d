// synchronizing-host-node and host-bound: devices wait while a host node runs.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/analysis/rules/idle_sums.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

// A callable that takes longer than that should not be Inline (node.h).
constexpr double kMostInlineMicros = 100;

struct HostNode {
  const Profile::Graph& graph;
  const Profile::Node& node;
  const NodeFacts& seen;
  IdleSum idle;
};

bool OnDevice(const Profile::Graph& graph, int node) {
  return node >= 0 && static_cast<size_t>(node) < graph.nodes.size() &&
         graph.nodes[static_cast<size_t>(node)].device >= 0;
}

bool HasWorkBefore(const HostNode& host) {
  return std::any_of(host.node.after.begin(), host.node.after.end(),
                     [&](int before) { return OnDevice(host.graph, before); });
}

bool HasWorkBehind(const HostNode& host) {
  for (size_t n = 0; n < host.graph.nodes.size(); ++n) {
    const auto& after = host.graph.nodes[n].after;
    if (OnDevice(host.graph, static_cast<int>(n)) &&
        std::find(after.begin(), after.end(), host.idle.node) != after.end()) {
      return true;
    }
  }
  return false;
}

// The downloads that only host nodes read.
std::vector<bool> DownloadsForHostNodes(const Profile::Graph& graph) {
  std::vector<bool> host(graph.nodes.size()), others(graph.nodes.size());  // follow it
  for (const Profile::Node& node : graph.nodes) {
    for (const int before : node.after) {
      if (OnDevice(graph, before)) (node.kind == "host" ? host : others)[static_cast<size_t>(before)] = true;
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    host[n] = host[n] && !others[n] && graph.nodes[n].kind == "download";
  }
  return host;
}

// How long devices did nothing but download for the graph's host nodes.
double DownloadedForHostNodes(const Facts& facts, int graph) {
  const std::vector<bool> only = DownloadsForHostNodes(facts.profile().graphs[static_cast<size_t>(graph)]);
  std::vector<Interval> downloads, others;
  for (const int s : facts.working()) {
    const Span& span = facts.profile().spans[static_cast<size_t>(s)];
    if (span.device < 0 || span.kind > SpanKind::kKernel) continue;
    const int node = facts.GraphOf(s) == graph ? facts.NodeOf(s) : -1;
    (node >= 0 && only[static_cast<size_t>(node)] ? downloads : others).push_back(facts.At(s));
  }
  return facts.Clip(std::move(downloads)).Minus(TimeSet(std::move(others))).length();
}

// The callable is called once at a time, nearly always.
bool IsBound(const Facts& facts, const HostNode& host) {
  return host.graph.slots > 1 && facts.Share(host.seen.total_us) > 0.8 && facts.floor_us() < host.seen.total_us * 0.8;
}

Finding AboutHostNode(const Facts& facts, const HostNode& host) {
  Finding finding;
  finding.share = facts.Share(host.idle.us);
  finding.graph = host.idle.graph;
  finding.node = host.idle.node;
  finding.span = host.idle.longest.span;
  finding.evidence.push_back(absl::StrCat("Host node ", NodeText(host.node), " ran ", TimesText(host.seen.count),
                                          ", for ", TimeText(host.seen.median_us), " as a rule; no device worked for ",
                                          PercentText(finding.share), " of the time meanwhile."));
  return finding;
}

// About a node that declares no writes. The callable may still write memory that it declares nowhere; then After keeps
// the order, and what follows waits for good reason.
std::string WhatNeedNotWait(const HostNode& host) {
  const std::string name = NodeText(host.node);
  if (host.node.read_bytes == 0) {
    return absl::StrCat(name,
                        " declares no buffers, so only After keeps its order: leave it out where what follows needs "
                        "nothing that ",
                        name, " does, or declare what it reads and writes.");
  }
  return absl::StrCat("By what it declares ", name,
                      " writes nothing. If what follows waits only because it writes what ", name,
                      " reads, let that read a copy (Graph::Copy into a Buffer), so that the device goes on meanwhile; "
                      "if After makes it wait, leave that out where it is not needed.");
}

void AdviseOnTheMiddle(const Facts& facts, const HostNode& host, Finding& finding) {
  const std::string name = NodeText(host.node);
  finding.evidence.push_back(
      absl::StrCat("Before each call the device has to come to a stop, and after it to start "
                   "again: that took ",
                   PercentText(facts.Share(host.idle.absorbed_us)), " of the time, beside the callable itself."));
  const double callable_us = host.idle.us - host.idle.absorbed_us;
  if (host.idle.absorbed_us > callable_us && host.seen.median_us <= kMostInlineMicros) {
    finding.fix = absl::StrCat("If ", name,
                               " cannot fail, declare it NodeRef::Inline: the device then asks for the call, and "
                               "the run is not cut.");
    finding.gain = facts.Share(host.idle.absorbed_us);
    finding.gain_how = "the time between the device's work and the callable";
  } else if (host.node.written_bytes == 0) {
    finding.fix = WhatNeedNotWait(host);
    const double waited = finding.share + facts.Share(DownloadedForHostNodes(facts, host.idle.graph));
    finding.gain = std::min(waited, std::max(0.0, 1 - facts.Share(host.seen.total_us)));
    finding.gain_how =
        "the time in which the device waited for it, or did nothing but download for it; but runs take as long as the "
        "callable, called once at a time";
  } else {
    finding.fix = absl::StrCat("Compute on the device what ", name,
                               " computes (ParallelFor, Reduce, Task), or move it to the "
                               "end of the graph and use its result in the next run.");
    finding.gain = finding.share;
    finding.gain_how =
        "the time in which the device waited for it, less what the device then takes, which is not known";
  }
}

// With k calls at once the node takes a k-th of the time.
void AdviseOnBound(const Facts& facts, const HostNode& host, Finding& finding) {
  finding.evidence.push_back(absl::StrCat("It ran ", PercentText(facts.Share(host.seen.total_us)),
                                          " of the time, one call at a time: it sets the pace of all runs."));
  const double floor = std::max(facts.floor_us(), host.seen.total_us / 4);
  const int calls = static_cast<int>(std::clamp(std::ceil(host.seen.total_us / floor), 2.0, 4.0));
  finding.fix = absl::StrCat("Let several runs call ", NodeText(host.node),
                             " at once, if it is thread-safe: NodeRef::", "Concurrency(", calls,
                             "), with as many slots, workers and cores.");
  finding.gain = facts.Share(std::min(host.idle.us, host.seen.total_us * (1 - 1.0 / calls)));
  finding.gain_how = absl::StrCat("what ", calls, " calls at once save of it while devices wait");
}

template <class Look>
void ForEachHostNode(const Facts& facts, const Look& look) {
  for (const IdleSum& idle : SumIdle(facts, IdleCause::kHostStep)) {
    if (idle.graph < 0 || idle.node < 0 || facts.Share(idle.us) < kNoticeable) continue;
    const Profile::Graph& graph = facts.profile().graphs[static_cast<size_t>(idle.graph)];
    const auto node = static_cast<size_t>(idle.node);
    if (graph.nodes[node].kind != "host") continue;
    look(HostNode{graph, graph.nodes[node], facts.graphs()[static_cast<size_t>(idle.graph)].nodes[node], idle});
  }
}

}  // namespace

void FindSynchronizingHostNodes(const Facts& facts, std::vector<Finding>& findings) {
  ForEachHostNode(facts, [&](const HostNode& host) {
    if (IsBound(facts, host) || !HasWorkBefore(host) || !HasWorkBehind(host)) return;
    Finding finding = AboutHostNode(facts, host);
    finding.rule = "synchronizing-host-node";
    AdviseOnTheMiddle(facts, host, finding);
    findings.push_back(std::move(finding));
  });
}

void FindHostBound(const Facts& facts, std::vector<Finding>& findings) {
  ForEachHostNode(facts, [&](const HostNode& host) {
    if (!IsBound(facts, host)) return;
    Finding finding = AboutHostNode(facts, host);
    finding.rule = "host-bound";
    AdviseOnBound(facts, host, finding);
    findings.push_back(std::move(finding));
  });
}

}  // namespace penstock::analysis
