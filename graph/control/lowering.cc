#include "graph/control/lowering.h"

#include "graph/common/message.h"

namespace penstock::graph {
namespace {

using detail::Table;

class LoweringChoice {
 public:
  LoweringChoice(const Model& model, int32_t default_device)
      : model_(model), default_device_(default_device), lowerings_(model), device_(model.controls.size(), -1) {}

  Lowerings Choose() {
    for (const DeclId n : model_.nodes.ids()) {
      for (ControlId c = Around(model_.nodes[n].body); c >= 0; c = Around(model_.controls[c].in)) Look(n, c);
    }
    for (const ControlId c : model_.controls.ids()) {
      if (model_.controls[c].condition >= 0) Look(model_.controls[c].condition, c);
    }
    return std::move(lowerings_);
  }

 private:
  ControlId Around(BodyId body) const { return body >= 0 ? model_.bodies[body].of : ControlId(); }

  void Look(DeclId n, ControlId c) {
    const NodeDecl& node = model_.nodes[n];
    const auto to_host = [&](const char* why) { lowerings_.ToHost(c, "node " + Quoted(node.name) + why); };
    if (node.kind == NodeKind::kHost) return to_host(" in it calls the host");
    if (node.kind == NodeKind::kLaunch) return to_host(" in it is a Launch node");
    const int32_t device = node.device >= 0 ? node.device : default_device_;
    if (device_[c] < 0) device_[c] = device;
    if (device_[c] != device) to_host(" in it is on another device than those before");
  }

  const Model& model_;
  const int32_t default_device_;
  Lowerings lowerings_;
  Table<ControlId, int32_t> device_;  // that of what has been looked at; -1: nothing has been
};

}  // namespace

Lowerings ChooseLowerings(const Model& model, int32_t default_device, const std::string& host_why) {
  if (host_why.empty()) return LoweringChoice(model, default_device).Choose();
  Lowerings lowerings(model);
  for (const ControlId c : model.controls.ids()) lowerings.ToHost(c, host_why);
  return lowerings;
}

}  // namespace penstock::graph
