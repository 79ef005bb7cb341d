// The parts of Graph that need no template: appending records to the model.
#include "penstock/graph.h"

#include <atomic>

#include "graph/common/message.h"
#include "graph/conflicts/boxes.h"
#include "penstock/replicated_state.h"

namespace penstock {
namespace {

uint32_t NextSerial() {
  static std::atomic<uint32_t> next{1};  // the serial of the next graph; nothing else depends on it
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Name detail::OnDeviceName(const Name& name, int device) {
  return Name(std::string(name.view()) + " " + std::to_string(device), name.source().file, name.source().line);
}

Graph::Graph(Name name) : model_(std::make_shared<Model>(std::move(name))) { model_->serial = NextSerial(); }

Graph::Graph(Graph&& other) noexcept : Graph(other.model_->name) {
  model_->mistakes.push_back(
      {absl::StatusCode::kFailedPrecondition,
       graph::Prefix(*model_) + ": was declared at " + graph::Where(model_->name.source()) +
           " and moved from; what is declared on it since then belongs to no graph; use the graph it was moved to"});
  std::swap(model_, other.model_);
  std::swap(again_, other.again_);
}

int32_t Graph::AddParam(ParamDecl decl) {
  if (again_ != nullptr) return again_->Param(decl);
  model_->params.push_back(std::move(decl));
  return static_cast<int32_t>(model_->params.size()) - 1;
}

int32_t Graph::AddBuffer(BufferDecl decl) {
  if (again_ != nullptr) return again_->Buffer(decl);
  model_->buffers.push_back(std::move(decl));
  return static_cast<int32_t>(model_->buffers.size()) - 1;
}

int32_t Graph::AddAlias(BufferDecl decl, uint32_t base_graph, int32_t base, const Box& box) {
  decl.is_alias = true;
  decl.alias_of = base;
  decl.alias_graph = base_graph;
  decl.box = box;
  if (!box.whole) {
    decl.extent = box.size;
  } else if (base_graph == serial() && base >= 0 && base < static_cast<int32_t>(model_->buffers.size())) {
    decl.extent = graph::ReadAs(model_->buffers[base], decl.type.size);
  }
  return AddBuffer(std::move(decl));
}

NodeDecl Graph::NodeOf(Name name, NodeKind kind) { return {.name = std::move(name), .kind = kind}; }

void Graph::AppendRange(NodeDecl& node) {
  ArgDecl decl;
  decl.form = ArgDecl::Form::kRange;
  decl.offset = detail::Reserve(node, sizeof(detail::Range), alignof(detail::Range));
  decl.size = sizeof(detail::Range);
  node.args.push_back(decl);
}

int32_t Graph::AddState(const std::shared_ptr<const StateRecord>& state) {
  if (again_ != nullptr) return again_->State(state.get());
  if (state == nullptr) return -1;  // Validate reports it
  for (size_t b = 0; b < model_->buffers.size(); ++b) {
    if (model_->buffers[b].state == state) return static_cast<int32_t>(b);
  }
  BufferDecl decl{
      .name = state->name, .type = state->type, .role = BufferRole::kState, .where = kDevice, .extent = state->extent};
  decl.state = state;
  return AddBuffer(std::move(decl));
}

// Makes one buffer per parameter, whichever nodes read it. A handle that names no parameter is reported here, where the
// argument is known.
int32_t Graph::AddOnDevice(const NodeDecl& node, uint32_t graph, int32_t param, TypeInfo type) {
  const bool known = graph == serial() && param >= 0 && param < static_cast<int32_t>(model_->params.size());
  const ParamDecl* const of = known ? &model_->params[param] : nullptr;
  const std::string argument = "argument " + std::to_string(node.args.size());
  const auto add = [&](const std::string& what, int32_t index) {
    const SourceLine& source = (index < 0 ? node.name : of->name).source();
    BufferDecl decl{.name = Name("OnDevice(" + what + ")", source.file, source.line),
                    .type = type,
                    .role = BufferRole::kParam,
                    .where = kSlot,
                    .extent = 1};
    decl.param = index;
    return AddBuffer(std::move(decl));
  };
  if (known && of->type == type) {
    for (size_t b = 0; b < model_->buffers.size(); ++b) {
      if (model_->buffers[b].param == param) return static_cast<int32_t>(b);
    }
    return add(std::string(of->name.view()), param);
  }
  const std::string what = known ? "'" + graph::OneLine(of->name.view()) + "' through a handle of another type (" +
                                       std::to_string(type.size) + " and " + std::to_string(of->type.size) +
                                       " bytes); use the handle that declaring it returned"
                                 : std::string(param < 0 ? "no parameter; its handle was never set; "
                                                         : "a parameter of another graph; a handle is good in the "
                                                           "graph that made it; ") +
                                       "declare the parameter in this graph";
  model_->mistakes.push_back({absl::StatusCode::kInvalidArgument,
                              graph::Prefix(*model_, "node", node.name) + ": " + argument + " is OnDevice of " + what});
  return add(argument + " of node " + std::to_string(model_->nodes.size()), -1);
}

NodeRef Graph::AddNode(NodeDecl node) {
  model_->nodes.push_back(std::move(node));
  return Ref(static_cast<int32_t>(model_->nodes.size()) - 1);
}

namespace {
void NoteNull(Model& model, const Name& name, const std::string& what) {
  model.mistakes.push_back({absl::StatusCode::kInvalidArgument, graph::Prefix(model, "node", name) + ": the " + what +
                                                                    " is null; give one that can be called"});
}
}  // namespace

void Graph::RefuseNull(const Name& name, const char* what) {
  again_ != nullptr ? again_->Mismatch() : NoteNull(*model_, name, what);
}

void NodeRef::RefuseNullFallback() {
  again_ != nullptr ? again_->Mismatch() : NoteNull(*model_, decl().name, "host fallback");
}

NodeRef NodeRef::After(const NodeRef& other) {
  if (again_ != nullptr) {
    other.model_ == model_ ? again_->After(index_, other.index_) : again_->Mismatch();
  } else if (other.model_ == model_) {
    decl().after.push_back(other.index_);
  } else {
    model_->mistakes.push_back(
        {absl::StatusCode::kInvalidArgument, graph::Prefix(*model_, "node", decl().name) + ": After names node '" +
                                                 std::string(other.decl().name.view()) + "' of graph '" +
                                                 std::string(other.model_->name.view()) +
                                                 "'; edges join nodes of one graph; declare both in the same graph"});
  }
  return *this;
}

NodeRef NodeRef::On(int device) {
  if (again_ != nullptr) again_->On(index_, device);
  else decl().device = device;
  return *this;
}

NodeRef NodeRef::Priority(int priority) {
  if (again_ != nullptr) again_->Priority(index_, priority);
  else decl().priority = priority;
  return *this;
}

NodeRef NodeRef::Concurrency(int k) {
  if (again_ != nullptr) again_->Concurrency(index_, k);
  else decl().concurrency = k;
  return *this;
}

NodeRef NodeRef::Asked(HostWay way) {
  if (again_ != nullptr) again_->Asked(index_, way);
  else decl().host_way = way;
  return *this;
}

NodeRef NodeRef::InPlace(const InPlaceDecl& pair) {
  if (again_ != nullptr) again_->InPlace(index_, pair);
  else decl().in_place.push_back(pair);
  return *this;
}

}  // namespace penstock
