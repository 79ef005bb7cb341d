// The parts of Graph that need no template: appending records to the model.
#include "penstock/graph.h"

#include <atomic>

#include "graph/common/message.h"
#include "graph/conflicts/boxes.h"

namespace penstock {
namespace {

uint32_t NextSerial() {
  static std::atomic<uint32_t> next{1};  // the serial of the next graph; nothing else depends on it
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Graph::Graph(Name name) : model_(std::make_shared<Model>(std::move(name))) { model_->serial = NextSerial(); }

Graph::Graph(Graph&& other) noexcept : Graph(other.model_->name) {
  model_->mistakes.push_back(
      {absl::StatusCode::kFailedPrecondition,
       graph::Prefix(*model_) + ": was declared at " + graph::Where(model_->name.source()) +
           " and moved from; what is declared on it since then belongs to no graph; use the graph it was moved to"});
  std::swap(model_, other.model_);
  std::swap(matcher_, other.matcher_);
}

int32_t Graph::AddParam(ParamDecl decl) {
  PutInScope(decl.name);
  return sink().Visit([&](auto& to) { return to.Param(std::move(decl)); });
}
int32_t Graph::AddBuffer(BufferDecl decl) {
  PutInScope(decl.name);
  return sink().Visit([&](auto& to) { return to.Buffer(std::move(decl)); });
}
int32_t Graph::AddState(const std::shared_ptr<const StateRecord>& state) {
  return sink().Visit([&](auto& to) { return to.State(state); });
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

namespace {

// `text` is called only if the mistake is kept.
template <class Text>
void Refuse(const detail::DeclarationSink& sink, Text text) {
  sink.Visit([&](auto& to) { to.Refuse(text); });
}

std::string NullText(const Model& model, const Name& node, const std::string& what) {
  return graph::Prefix(model, "node", node) + ": the " + what + " is null; give one that can be called";
}

}  // namespace

NameScope Graph::Scope(Name name) {
  if (name.view().empty()) {
    Refuse(sink(), [&] {
      return graph::Prefix(*model_) + ": the scope begun at " + graph::Where(name.source()) +
             " has no name; names in it would be those outside; give it one";
    });
    return {model_, model_->scope};
  }
  PutInScope(name);
  return {model_, std::move(name)};
}

void Graph::Deterministic() {
  sink().Visit([](auto& to) { to.Deterministic(); });
}

void Graph::RefuseNull(Name name, const char* what) {
  PutInScope(name);
  Refuse(sink(), [&] { return NullText(*model_, name, what); });
}

void NodeRef::RefuseNullFallback() {
  Refuse(sink_, [&] { return NullText(sink_.model(), decl().name, "host fallback"); });
}

template <class T>
NodeRef NodeRef::Set(T NodeOptions::* option, T value) {
  sink_.Visit([&](auto& to) { to.Set(index_, option, value); });
  return *this;
}

template <class T>
NodeRef NodeRef::Add(std::vector<T> NodeDecl::* list, const T& item) {
  sink_.Visit([&](auto& to) { to.Add(index_, list, item); });
  return *this;
}

NodeRef NodeRef::On(int device) { return Set(&NodeOptions::device, device); }
NodeRef NodeRef::Priority(int priority) { return Set(&NodeOptions::priority, priority); }
NodeRef NodeRef::Concurrency(int k) { return Set(&NodeOptions::concurrency, k); }
NodeRef NodeRef::Flops(double operations) { return Set(&NodeOptions::flops, operations); }
NodeRef NodeRef::Nondeterministic() { return Set(&NodeOptions::bits, Bits::kVarying); }
NodeRef NodeRef::InAnyOrder() { return Set(&NodeOptions::bits, Bits::kAnyOrder); }
NodeRef NodeRef::Infallible() { return Set(&NodeOptions::host_way, HostWay::kHostcallWorker); }
NodeRef NodeRef::Inline() { return Set(&NodeOptions::host_way, HostWay::kHostcallInline); }
NodeRef NodeRef::InPlace(const InPlaceDecl& pair) { return Add(&NodeDecl::in_place, pair); }

NodeRef NodeRef::After(const NodeRef& other) {
  if (&other.sink_.model() == &sink_.model()) return Add(&NodeDecl::after, DeclId(other.index_));
  Refuse(sink_, [&] {
    return graph::Prefix(sink_.model(), "node", decl().name) + ": After names node '" +
           std::string(other.decl().name.view()) + "' of graph '" + std::string(other.sink_.model().name.view()) +
           "'; edges join nodes of one graph; declare both in the same graph";
  });
  return *this;
}

}  // namespace penstock
