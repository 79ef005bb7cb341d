#include "src/analysis/runs.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace penstock::analysis {
namespace {

struct SpanOfRun {
  size_t graph;
  const Span* span;

  bool operator<(const SpanOfRun& other) const {
    return std::tie(graph, span->run, span->begin_us, span) <
           std::tie(other.graph, other.span->run, other.span->begin_us, other.span);
  }
};

void AddSpan(const Profile& profile, const Span& span, GraphRun& run) {
  run.begin_us = std::min(run.begin_us, span.begin_us);
  run.end_us = std::max({run.end_us, span.begin_us, span.end_us});
  switch (span.kind) {
    case SpanKind::kRun: run.whole = &span; return;
    case SpanKind::kSubmit: run.submit = &span; return;
    case SpanKind::kWait: return;
    default: break;
  }
  const size_t nodes = profile.graphs[run.graph].nodes.size();
  if (span.node >= 0 && static_cast<size_t>(span.node) < nodes) run.work.push_back(&span);
}

}  // namespace

std::vector<GraphRun> RunsOf(const Profile& profile) {
  absl::flat_hash_map<int64_t, size_t> graphs;
  for (size_t g = 0; g < profile.graphs.size(); ++g) graphs[profile.graphs[g].executable] = g;
  std::vector<SpanOfRun> spans;
  for (const Span& span : profile.spans) {
    if (span.run < 0) continue;
    const auto at = graphs.find(span.executable);
    if (at != graphs.end()) spans.push_back({at->second, &span});
  }
  std::sort(spans.begin(), spans.end());
  std::vector<GraphRun> runs;
  for (const SpanOfRun& one : spans) {
    if (runs.empty() || runs.back().graph != one.graph || runs.back().number != one.span->run) {
      GraphRun& run = runs.emplace_back();
      run.graph = one.graph;
      run.number = one.span->run;
      run.begin_us = run.end_us = one.span->begin_us;
    }
    AddSpan(profile, *one.span, runs.back());
  }
  for (GraphRun& run : runs) {
    if (run.whole == nullptr) continue;
    run.begin_us = run.whole->begin_us;
    run.end_us = std::max(run.begin_us, run.whole->end_us);
  }
  return runs;
}

}  // namespace penstock::analysis
