#include "graph/control/lowering.h"

#include <algorithm>

#include "graph/common/is_asked_for.h"
#include "graph/common/message.h"

namespace penstock::graph {
namespace {

using detail::Table;

bool DependsOnParams(const Extent& extent) {
  return std::any_of(extent.dims.begin(), extent.dims.begin() + extent.rank,
                     [](const Dim& dim) { return !dim.is_constant(); });
}

bool DependsOnParams(const Box& box) {
  return !box.whole && (DependsOnParams(box.offset) || DependsOnParams(box.size));
}

// Why launches decide what an access names; empty: they do not, as far as the model tells.
std::string WhyAccessVaries(const Model& model, const AccessDecl& access) {
  bool varies = DependsOnParams(access.box.get());
  for (BufferId b = access.buffer; b >= 0 && b < model.buffers.count();) {
    const BufferDecl& buffer = model.buffers[b];
    if (varies || DependsOnParams(buffer.extent))
      return "elements of " + Quoted(buffer.name) + " that parameters decide";
    if (!buffer.is_alias) {
      const bool bound = IsBound(buffer.role) && buffer.where == Where::kDevice;
      return bound || buffer.keys > 0 ? "memory of " + Quoted(buffer.name) + ", which launches bind" : "";
    }
    varies = DependsOnParams(buffer.box.get());
    b = buffer.alias_graph == model.serial ? buffer.alias_of : BufferId();
  }
  return "";
}

// Why a Launch node must be captured again if other values are launched; empty: it need not.
std::string WhyLaunchVaries(const Model& model, const NodeDecl& node) {
  for (const ArgDecl& arg : node.args) {
    if (arg.form != ArgDecl::Form::kParam || arg.index < 0 || arg.index >= model.params.count()) continue;
    return "parameter " + Quoted(model.params[ParamId(arg.index)].name);
  }
  for (const AccessDecl& access : node.accesses) {
    if (std::string why = WhyAccessVaries(model, access); !why.empty()) return why;
  }
  return "";
}

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
    if (node.kind == NodeKind::kLaunch) {
      const std::string why = WhyLaunchVaries(model_, node);
      if (!why.empty())
        return ToHost(n, c,
                      "is a Launch node that takes " + why + ", so what it submits may differ from launch to launch");
    }
    if (node.decides && node.device < 0) return;  // it goes where the bodies are
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
