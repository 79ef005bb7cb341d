#include "graph/control/lowering.h"

#include "graph/common/is_asked_for.h"
#include "graph/common/message.h"

namespace penstock::graph {
namespace {

using detail::Table;

class LoweringChoice {
 public:
  LoweringChoice(const Model& model, const LoweringDevices& devices)
      : model_(model), devices_(devices), lowerings_(model), device_(model.controls.size(), -1) {}

  Lowerings Choose() {
    ForEach([&](DeclId n, ControlId c) { Look(n, c); });
    for (const ControlId c : model_.controls.ids()) {
      if (model_.controls[c].condition >= 0) Look(model_.controls[c].condition, c);
    }
    ForEach([&](DeclId n, ControlId c) {
      if (model_.nodes[n].kind == NodeKind::kHost) LookAtHost(n, c);
    });
    return std::move(lowerings_);
  }

 private:
  ControlId Around(BodyId body) const { return body >= 0 ? model_.bodies[body].of : ControlId(); }

  // Calls f(node, construct) for each node and the constructs around it.
  template <class F>
  void ForEach(F f) const {
    for (const DeclId n : model_.nodes.ids()) {
      for (ControlId c = Around(model_.nodes[n].body); c >= 0; c = Around(model_.controls[c].in)) f(n, c);
    }
  }

  void ToHost(DeclId n, ControlId c, const std::string& why) {
    lowerings_.ToHost(c, "node " + Quoted(model_.nodes[n].name) + " in it " + why);
  }

  void Look(DeclId n, ControlId c) {
    const NodeDecl& node = model_.nodes[n];
    if (node.kind == NodeKind::kHost) return;
    if (node.kind == NodeKind::kLaunch) return ToHost(n, c, "is a Launch node");
    const int32_t device = node.device >= 0 ? node.device : devices_.by_default;
    if (device_[c] < 0) device_[c] = device;
    if (device_[c] != device) ToHost(n, c, "is on another device than those before");
  }

  // Once it is known which device would ask.
  void LookAtHost(DeclId n, ControlId c) {
    const HostWay way = model_.nodes[n].host_way;
    if (way == HostWay::kWorker) {
      return ToHost(n, c, "is a Host node that may fail or wait; mark it Infallible or Inline if it does neither");
    }
    const auto device = static_cast<size_t>(device_[c] >= 0 ? device_[c] : devices_.by_default);
    if (device >= devices_.no_hostcalls.size()) return;  // a mistake, which Compile tells
    const std::string& why = devices_.no_hostcalls[device];
    if (!IsAskedFor(way, why)) ToHost(n, c, "cannot be asked for by device " + std::to_string(device) + ": " + why);
  }

  const Model& model_;
  const LoweringDevices& devices_;
  Lowerings lowerings_;
  Table<ControlId, int32_t> device_;  // that of what has been looked at; -1: nothing has been
};

}  // namespace

Lowerings ChooseLowerings(const Model& model, const LoweringDevices& devices, const std::string& host_why) {
  if (host_why.empty()) return LoweringChoice(model, devices).Choose();
  Lowerings lowerings(model);
  for (const ControlId c : model.controls.ids()) lowerings.ToHost(c, host_why);
  return lowerings;
}

}  // namespace penstock::graph
