#include "src/runtime/program/compiled_graph.h"

#include <atomic>

#include "graph/common/message.h"
#include "src/base/status.h"

namespace penstock::runtime {

using graph::PlanKind;
using graph::PlanNode;

namespace {

// The declaration that a plan node stems from: the node itself, or the buffer that an inserted copy moves.
const Name& NameOf(const Model& model, const graph::Plan& plan, const PlanNode& node) {
  if (node.decl >= 0) return model.nodes[node.decl].name;
  return model.buffers[plan.instances[node.src].buffer].name;
}

int64_t NextNumber() {
  static std::atomic<int64_t> next{0};  // executables of all threads count here
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

CompiledGraph::CompiledGraph(std::shared_ptr<const Model> model, const std::vector<driver::DeviceRef>& devices,
                             int32_t default_device, std::shared_ptr<Trace> trace, host::EventCount& event_count)
    : devices_(devices),
      trace_(std::move(trace)),
      number_(NextNumber()),
      event_count_(event_count),
      model_(std::move(model)),
      label_(std::make_shared<const std::string>(graph::Prefix(*model_))),
      home_(default_device) {}

void CompiledGraph::SetPlan(graph::Plan plan, std::vector<PlacementReport::Candidate> placement) {
  plan_ = std::move(plan);
  placement_ = std::move(placement);
  annotations_ = GraphAnnotations(plan_);
  lane_devices_.clear();
  for (const graph::Lane& lane : plan_.lanes) lane_devices_.push_back(device(lane.device).local);
  if (!plan_.lanes.empty()) home_ = plan_.lanes[0].device;
  driver_ = device(home_).driver;
  gates_ = std::vector<base::TrySemaphore<>>(plan_.nodes.size());
}

void CompiledGraph::SetProgram(Program program) {
  program_ = std::move(program);
  device_gates_.clear();
  for (const CallEntry& call : program_.calls) {
    device_gates_.emplace_back(model_->nodes[call.decl].concurrency);
  }
}

// The other kinds run no user code on the host.
bool CompiledGraph::HasGate(int32_t node) const {
  const PlanKind kind = plan_.nodes[node].kind;
  return kind == PlanKind::kHost || kind == PlanKind::kHostcall || kind == PlanKind::kLaunch;
}

bool CompiledGraph::EnterGate(int32_t node) const {
  if (!HasGate(node)) return true;
  const int32_t decl = plan_.nodes[node].decl;
  return gates_[node].Enter(model_->nodes[decl].concurrency);
}

void CompiledGraph::LeaveGate(int32_t node) const {
  if (HasGate(node) && gates_[node].Leave()) event_count_.Notify();
}

absl::Status CompiledGraph::Describe(int32_t node, const absl::Status& cause) const {
  return base::Prefixed(node < 0 ? Label() : TextOfNode(node), cause);
}

std::string CompiledGraph::TextOfNode(int32_t node) const {
  const PlanNode& n = plan_.nodes[node];
  const Name& declared = NameOf(*model_, plan_, n);
  const Name shown(n.name, declared.source().file, declared.source().line);
  return graph::Prefix(*model_, "node", shown, n.device < 0 ? "host" : device(n.device).info.name);
}

std::string CompiledGraph::TextOfGraph(int32_t graph) const {
  const GraphProgram& replay = program_.replay;
  const EntryId begin = replay.begin[graph], end = replay.begin[graph + 1];
  const auto name = [&](EntryId entry) {
    return "'" + graph::OneLine(plan_.nodes[replay.entries[entry].node].name) + "'";
  };
  return "launching nodes " + name(begin) + " to " + name(end - 1) + ", " + std::to_string(end - begin) +
         " in one graph";
}

}  // namespace penstock::runtime
