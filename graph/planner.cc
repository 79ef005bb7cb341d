// MakePlan: the passes in order, and their mistakes in one Status.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/common/message.h"
#include "graph/passes/passes.h"
#include "penstock/status_macros.h"

namespace penstock::graph {
namespace {

constexpr int kMostAlike = 8;

// The text of a mistake without its subject. If a name contains the marks searched for here, the mistake
// equals no other.
std::string_view WithoutSubject(std::string_view text) {
  const size_t end = std::min(text.find("): "), text.find(") on "));
  return end == std::string_view::npos ? text : text.substr(end);
}

// A mistake shared by many records is listed for the first of them, with their number.
std::string Listed(const Model& model, const std::vector<Mistake>& mistakes) {
  std::unordered_map<std::string_view, int> alike;
  for (const Mistake& mistake : mistakes) ++alike[WithoutSubject(mistake.text)];
  std::unordered_map<std::string_view, int> told;
  std::string text;
  for (const Mistake& mistake : mistakes) {
    const std::string_view what = WithoutSubject(mistake.text);
    const int count = ++told[what], more = alike[what] - count;
    if (count > kMostAlike) continue;
    text += "\n  " + OneLine(mistake.text);
    if (count < kMostAlike || more == 0) continue;
    text += "\n  " + Prefix(model) + ": the last mistake is made " + std::to_string(more) + " times more";
  }
  return text;
}

absl::Status ToStatus(const Model& model, const std::vector<Mistake>& mistakes) {
  if (mistakes.empty()) return absl::OkStatus();
  if (mistakes.size() == 1) return absl::Status(mistakes[0].code, OneLine(mistakes[0].text));
  return absl::Status(mistakes[0].code,
                      Prefix(model) + ": " + std::to_string(mistakes.size()) + " mistakes:" + Listed(model, mistakes));
}

constexpr Pass kPasses[] = {
    {"Validate", [](Draft& d) { Validate(d.records, d.findings); }},
    {"DeclaredEdges", [](Draft& d) { DeclaredEdges(d.records, d.checked); }},
    {"Check", [](Draft& d) { Check(d.records, d.checked, d.findings); }, true},
    {"Canonical", [](Draft& d) { Canonical(d.records, d.checked); }},
    {"StructureHash", [](Draft& d) { StructureHash(d.records, d.checked); }},
    {"Place", [](Draft& d) { d.placed = Place(d.records, d.checked); }},
    {"EliminateCopies", [](Draft& d) { EliminateCopies(d.records, d.checked, d.placed, d.findings); }},
    {"InsertTransfers", [](Draft& d) { d.ordered = InsertTransfers(d.records, d.checked, d.placed, d.findings); }},
    {"InstanceEdges", [](Draft& d) { InstanceEdges(d.records, d.checked, d.placed, d.ordered); }},
    {"PrioritizeBoundaries", [](Draft& d) { PrioritizeBoundaries(d.records, d.ordered); }},
    {"ListSchedule", [](Draft& d) { ListSchedule(d.records, d.ordered); }},
    {"Segments", [](Draft& d) { Segments(d.ordered); }},
    {"BatchCopies", [](Draft& d) { BatchCopies(d.records, d.ordered); }},
    {"Lanes", [](Draft& d) { Lanes(d.records, d.ordered, d.findings); }},
    {"ReduceWaits", [](Draft& d) { d.reduced = ReduceWaits(d.ordered, d.findings); }},
    {"Memory", [](Draft& d) { d.packed = Memory(d.records, d.ordered, d.reduced, d.findings); }, true},
    {"FindFirstLastUses", [](Draft& d) { FindFirstLastUses(d.ordered, d.reduced, d.packed); }},
    {"Events", [](Draft& d) { Events(d.records, d.ordered, d.reduced, d.packed); }},
};

}  // namespace

std::span<const Pass> Passes() { return kPasses; }

absl::Status CheckGraph(const Model& model, const PlanOptions& options) {
  Draft draft(model, options);
  draft.findings.mistakes = model.mistakes;
  for (const Pass& pass : kPasses) {
    pass.run(draft);
    if (pass.ends_with_mistakes) break;
  }
  return ToStatus(model, draft.findings.mistakes);
}

absl::StatusOr<Plan> MakePlan(const Model& model, const PlanOptions& options, const BeforePass& before_pass) {
  Draft draft(model, options);
  draft.findings.mistakes = model.mistakes;
  int done = 0;
  for (const Pass& pass : kPasses) {
    if (before_pass) PENSTOCK_RETURN_IF_ERROR(before_pass(done++, static_cast<int>(std::size(kPasses))));
    pass.run(draft);
    if (!pass.ends_with_mistakes) continue;
    if (absl::Status status = ToStatus(model, draft.findings.mistakes); !status.ok()) return status;
  }
  return Lower(draft);
}

}  // namespace penstock::graph
