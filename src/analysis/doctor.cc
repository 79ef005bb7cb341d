#include "src/analysis/doctor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/facts.h"
#include "src/analysis/rules/rules.h"
#include "src/analysis/rules/words.h"

namespace penstock::analysis {
namespace {

constexpr double kWorthSaying = 0.02;
constexpr int64_t kFewRuns = 10;

struct RankedFinding {
  Finding finding;
  size_t rule;  // its place among the rules
};

bool ComesFirst(const RankedFinding& a, const RankedFinding& b) {
  const double gain_a = a.finding.gain.value_or(0), gain_b = b.finding.gain.value_or(0);
  if (gain_a != gain_b) return gain_a > gain_b;
  if (a.finding.share != b.finding.share) return a.finding.share > b.finding.share;
  if (a.rule != b.rule) return a.rule < b.rule;
  return a.finding.graph != b.finding.graph ? a.finding.graph < b.finding.graph : a.finding.node < b.finding.node;
}

std::vector<RankedFinding> FindAll(const Facts& facts) {
  std::vector<RankedFinding> all;
  for (size_t r = 0; r < AllRules().size(); ++r) {
    std::vector<Finding> found;
    AllRules()[r].find(facts, found);
    for (Finding& finding : found) all.push_back({std::move(finding), r});
  }
  std::sort(all.begin(), all.end(), ComesFirst);
  return all;
}

// Lets the findings claim what is to be gained, in their order, and drops those for which too little is left.
void CapGains(double to_gain, std::vector<RankedFinding>& all) {
  for (RankedFinding& ranked : all) {
    if (!ranked.finding.gain) continue;
    double& gain = *ranked.finding.gain;
    gain = std::min(gain, to_gain + ranked.finding.floor_cut);
    to_gain -= std::max(0.0, gain - ranked.finding.floor_cut);
  }
  std::erase_if(all, [](const RankedFinding& r) { return r.finding.gain && *r.finding.gain < kWorthSaying; });
  std::sort(all.begin(), all.end(), ComesFirst);
}

void FillIn(const Facts& facts, Finding& finding) {
  const Profile& profile = facts.profile();
  if (finding.graph >= 0) {
    const Profile::Graph& graph = profile.graphs[static_cast<size_t>(finding.graph)];
    finding.graph_name = graph::OneLine(graph.name);
    if (finding.node < 0) finding.where = graph::OneLine(graph.where);
    if (finding.node >= 0) {
      finding.node_name = graph::OneLine(graph.nodes[static_cast<size_t>(finding.node)].name);
      finding.where = graph::OneLine(graph.nodes[static_cast<size_t>(finding.node)].where);
    }
  }
  if (finding.span >= 0 && finding.begin_us == 0 && finding.end_us == 0) {
    finding.begin_us = facts.At(finding.span).begin;
    finding.end_us = facts.At(finding.span).end;
  }
}

void AddNotes(const Facts& facts, Diagnosis& diagnosis) {
  const Profile& profile = facts.profile();
  int64_t once = 0, runs = 0;
  for (size_t g = 0; g < profile.graphs.size(); ++g) {
    if (!facts.graphs()[g].steady && profile.graphs[g].launches > 0 && ++once == 1) {
      diagnosis.notes.push_back(absl::StrCat(
          GraphText(profile.graphs[g]), " is left out: of its runs fewer than two are in the profile, and the first ",
          "run is not like the others."));
    }
  }
  for (const GraphFacts& graph : facts.graphs()) runs += graph.runs;
  if (runs > 0 && runs < kFewRuns) {
    diagnosis.notes.push_back(absl::StrCat("Only ", runs, " runs lie behind this; more make it firmer."));
  }
  if (once > 1) {
    diagnosis.notes.push_back(once == 2 ? "So is one more graph." : absl::StrCat("So are ", once - 1, " more graphs."));
  }
  if (profile.lost_spans > 0) {
    diagnosis.notes.push_back(absl::StrCat("The oldest ", profile.lost_spans, " spans are no longer in the profile."));
  }
}

}  // namespace

Diagnosis Diagnose(const Profile& profile, const Machine* machine) {
  const Facts facts(profile, machine);
  Diagnosis diagnosis;
  diagnosis.wall_us = facts.wall_us();
  diagnosis.floor_us = facts.floor_us();
  diagnosis.efficiency = 100 * facts.Share(facts.floor_us());
  if (facts.busiest() != nullptr) diagnosis.busiest = graph::OneLine(facts.busiest()->name);
  AddNotes(facts, diagnosis);
  NoteFlops(facts, diagnosis.notes);
  if (diagnosis.wall_us <= 0) return diagnosis;
  std::vector<RankedFinding> all = FindAll(facts);
  CapGains(facts.Share(facts.wall_us() - facts.floor_us()), all);
  for (RankedFinding& ranked : all) {
    FillIn(facts, ranked.finding);
    diagnosis.findings.push_back(std::move(ranked.finding));
  }
  return diagnosis;
}

}  // namespace penstock::analysis
