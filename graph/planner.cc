// MakePlan: the passes in order, and their mistakes in one Status.
#include <string>
#include <utility>

#include "graph/message.h"
#include "graph/passes.h"

namespace penstock::graph {
namespace {

absl::Status ToStatus(const Model& model, const std::vector<Mistake>& mistakes) {
  if (mistakes.empty()) return absl::OkStatus();
  if (mistakes.size() == 1) return absl::Status(mistakes[0].code, OneLine(mistakes[0].text));
  std::string text = Prefix(model) + ": " + std::to_string(mistakes.size()) + " mistakes:";
  for (const Mistake& mistake : mistakes) text += "\n  " + OneLine(mistake.text);
  return absl::Status(mistakes[0].code, text);
}

constexpr Pass kPasses[] = {
    {"Validate", Validate},
    {"DeclaredEdges", DeclaredEdges},
    {"Check", Check, true},
    {"Canonical", Canonical},
    {"StructureHash", StructureHash},
    {"Place", Place},
    {"Needless", Needless},
    {"Transfers", Transfers},
    {"InstanceEdges", InstanceEdges},
    {"Order", Order},
    {"Segments", Segments},
    {"Gather", Gather},
    {"Lanes", Lanes},
    {"Reduce", Reduce},
    {"Memory", Memory, true},
    {"FindTouches", FindTouches},
    {"Events", Events},
};

}  // namespace

std::span<const Pass> Passes() { return kPasses; }

absl::StatusOr<Plan> MakePlan(const Model& model, const PlanOptions& options) {
  Draft draft(model, options);
  draft.mistakes = model.mistakes;
  for (const Pass& pass : kPasses) {
    pass.run(draft);
    if (!pass.ends_with_mistakes) continue;
    if (absl::Status status = ToStatus(model, draft.mistakes); !status.ok()) return status;
  }
  return Lower(draft);
}

}  // namespace penstock::graph
