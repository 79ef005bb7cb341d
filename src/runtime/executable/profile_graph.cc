#include "src/runtime/executable/profile_graph.h"

#include <algorithm>

#include "graph/common/message.h"
#include "graph/plan/plan_names.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {
namespace {

// The most bytes of a box, of `all` that the buffer has.
int64_t BytesOf(const Model& model, const AccessDecl& access, int64_t all) {
  const Box& box = access.box;
  if (box.whole) return all;
  int64_t bytes = model.buffers[access.buffer].type.size;
  for (int i = 0; i < box.size.rank; ++i) {
    const Dim& dim = box.size.dims[i];
    const int64_t most = dim.is_constant() ? dim.value : model.params[dim.param].max;
    if (most > 0 && bytes > all / most) return all;
    bytes *= most;
  }
  return bytes;
}

void AddBytes(const CompiledGraph& graph, const graph::PlanNode& from, Profile::Node& to) {
  const Model& model = graph.model();
  const auto& instances = graph.plan().instances;
  if (from.src >= 0 && from.dst >= 0) {
    int64_t bytes = std::min(instances[from.src].bytes, graph::MostBytes(graph.plan(), from));
    if (from.copy >= 0) {
      for (const AccessDecl& access : model.nodes[from.copy].accesses) bytes = BytesOf(model, access, bytes);
    }
    to.read_bytes = to.written_bytes = bytes;
    return;
  }
  for (size_t u = 0; u < from.uses.size(); ++u) {
    const graph::Use& use = from.uses[u];
    const int64_t all = instances[use.instance].bytes;
    const int64_t bytes = from.decl >= 0 ? BytesOf(model, model.nodes[from.decl].accesses[u], all) : all;
    const bool reads = use.mode == AccessMode::kRead || use.mode == AccessMode::kReadWrite;
    const bool writes = use.mode != AccessMode::kRead && use.mode != AccessMode::kScratch;
    if (reads) to.read_bytes += bytes;
    if (writes) to.written_bytes += bytes;
  }
}

Profile::Graph ProfileGraphOf(const CompiledGraph& graph, int slots) {
  const graph::Plan& plan = graph.plan();
  Profile::Graph to;
  to.executable = graph.number();
  to.name = plan.graph;
  to.where = graph::Where(graph.model().name.source());
  to.slots = slots;
  for (const graph::Arena& arena : plan.arenas) {
    (arena.device < 0 ? to.slot_pinned_bytes : to.slot_device_bytes) += arena.bytes;
  }
  to.placement = graph.placement();
  for (const graph::Lane& lane : plan.lanes) to.lanes.push_back({lane.device, graph::LaneName(lane.kind)});
  for (const graph::PlanNode& from : plan.nodes) {
    Profile::Node node;
    node.name = from.name;
    node.kind = graph::KindName(from.kind);
    const DeclId decl = from.decl >= 0 ? from.decl : from.copy;
    if (decl >= 0) node.where = graph::Where(graph.model().nodes[decl].name.source());
    node.device = from.device;
    node.lane = from.lane;
    for (const NodeId before : from.preds) node.after.push_back(before);
    AddBytes(graph, from, node);
    if (from.decl >= 0) node.flops = graph.model().nodes[from.decl].flops;
    to.nodes.push_back(std::move(node));
  }
  return to;
}

}  // namespace

void UseProfile(RuntimeCore& runtime, CompileOptions& options) {
  options.profile = options.profile || runtime.observed().profile.records_all();
  if (options.profile && options.trace == nullptr) options.trace = runtime.observed().profile.trace();
}

void AddToProfile(const std::shared_ptr<ExecutableCore>& core) {
  if (!core->context().trace.for_profile()) return;
  core->runtime().observed().profile.Add(ProfileGraphOf(core->graph(), core->slots()), core->profiled_,
                                         core->graph().trace());
  for (const ControlPart& part : core->parts()) AddToProfile(part.core);
}

void ProfiledExecutable::UpdateProfile(Profile::Graph& graph) const {
  graph.launches = core_.launches();
  graph.report = core_.submission_report();
}

}  // namespace penstock::runtime
