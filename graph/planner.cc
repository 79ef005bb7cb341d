// MakePlan: the passes in order, and their mistakes in one Status.
#include <string>
#include <utility>

#include "graph/message.h"
#include "graph/passes.h"

namespace penstock::graph {
namespace {

absl::Status ToStatus(const Model& model, const std::vector<Mistake>& mistakes) {
  if (mistakes.empty()) return absl::OkStatus();
  if (mistakes.size() == 1) return absl::Status(mistakes[0].code, mistakes[0].text);
  std::string text = Prefix(model) + ": " + std::to_string(mistakes.size()) + " mistakes:";
  for (const Mistake& mistake : mistakes) text += "\n  " + mistake.text;
  return absl::Status(mistakes[0].code, text);
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const Model& model, const PlanOptions& options) {
  Draft draft(model, options);
  draft.mistakes = model.mistakes;
  Validate(draft);
  DeclaredEdges(draft);
  Check(draft);
  if (absl::Status status = ToStatus(model, draft.mistakes); !status.ok()) return status;
  Place(draft);
  Transfers(draft);
  InstanceEdges(draft);
  Order(draft);
  Segments(draft);
  Lanes(draft);
  Reduce(draft);
  Memory(draft);
  if (absl::Status status = ToStatus(model, draft.mistakes); !status.ok()) return status;
  return Lower(draft);
}

}  // namespace penstock::graph
