// runs-in-order: several runs are in flight, but their work never overlaps.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/analysis/rules/enough_slots.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

// How long work of one run of the graph went on beside work of another one, on any engine.
double OverlapOfRuns(const Facts& facts, int graph) {
  std::vector<int> work;
  for (const int s : facts.graphs()[static_cast<size_t>(graph)].spans) {
    const Span& span = facts.profile().spans[static_cast<size_t>(s)];
    if (span.device >= 0 && span.kind <= SpanKind::kKernel) work.push_back(s);
  }
  std::sort(work.begin(), work.end(), [&](int a, int b) { return facts.At(a).begin < facts.At(b).begin; });
  double overlap = 0, end = 0;
  int64_t run = -1;
  for (const int s : work) {
    const Interval at = facts.At(s);
    const int64_t its = facts.profile().spans[static_cast<size_t>(s)].run;
    if (run >= 0 && its != run) overlap += std::max(0.0, std::min(end, at.end) - at.begin);
    if (run < 0 || at.end > end) {
      end = at.end;
      run = its;
    }
  }
  return overlap;
}

}  // namespace

void FindRunsInOrder(const Facts& facts, std::vector<Finding>& findings) {
  for (size_t g = 0; g < facts.graphs().size(); ++g) {
    const GraphFacts& of = facts.graphs()[g];
    const Profile::Graph& graph = facts.profile().graphs[g];
    if (of.time.empty() || of.is_body || of.most_in_flight < 2) continue;
    const OverlapBound bound = BoundOfOverlap(facts, static_cast<int>(g));
    const double lost = of.time_us - bound.us;
    if (facts.Share(lost) < 2 * kNoticeable || OverlapOfRuns(facts, static_cast<int>(g)) > 0.01 * of.time_us) continue;
    Finding finding;
    finding.rule = "runs-in-order";
    finding.share = facts.Share(lost);
    finding.graph = static_cast<int>(g);
    finding.evidence.push_back(absl::StrCat("Up to ", of.most_in_flight, " runs of ", GraphText(graph),
                                            " were in flight, but work of two runs never overlapped: a State, "
                                            "CompileOptions::in_order or Bindings::After keeps them in order."));
    finding.evidence.push_back(absl::StrCat("If they overlapped, ", bound.what, " would be the limit, with ",
                                            PercentText(facts.Share(bound.us)), " of the time."));
    finding.fix =
        "Use a State in as few nodes as possible, close to each other; give runs that need not follow each other "
        "Buffers "
        "of their own in place of a State or of bound device memory.";
    finding.gain_how = "unknown: what must stay in order is not in the profile";
    findings.push_back(std::move(finding));
  }
}

}  // namespace penstock::analysis
