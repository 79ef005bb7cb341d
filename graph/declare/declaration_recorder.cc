// The parts of DeclarationRecorder that need no template.
#include "penstock/detail/declaration_recorder.h"

#include "graph/common/message.h"

namespace penstock::detail {

int32_t DeclarationRecorder::Param(ParamDecl decl) {
  model_.params.push_back(std::move(decl));
  return static_cast<int32_t>(model_.params.size()) - 1;
}

int32_t DeclarationRecorder::Buffer(BufferDecl decl) {
  decl.body = model_.open;
  model_.buffers.push_back(std::move(decl));
  return static_cast<int32_t>(model_.buffers.size()) - 1;
}

int32_t DeclarationRecorder::State(const std::shared_ptr<const StateRecord>& state) {
  if (state == nullptr) return -1;  // Validate reports it
  for (size_t b = 0; b < model_.buffers.size(); ++b) {
    if (model_.buffers[b].state == state) return static_cast<int32_t>(b);
  }
  BufferDecl decl{
      .name = state->name, .type = state->type, .role = BufferRole::kState, .where = kDevice, .extent = state->extent};
  decl.state = state;
  return Buffer(std::move(decl));
}

int32_t DeclarationRecorder::Append(NodeDecl&& node) {
  node.body = model_.open;
  model_.nodes.push_back(std::move(node));
  return static_cast<int32_t>(model_.nodes.size()) - 1;
}

void RecordedNode::Resolve(AccessDecl& access, const std::shared_ptr<const StateRecord>& state) {
  access.buffer = DeclarationRecorder(model_).State(state);
  access.graph = model_.serial;
}

const char* RecordedNode::NameOf(const AccessDecl& access) const {
  const bool known = access.graph == model_.serial && access.buffer >= 0 && access.buffer < model_.buffers.count();
  if (!known) return nullptr;
  Name& name = model_.buffers[access.buffer].name;
  name.Share();
  return name.c_str();
}

void RecordedNode::RefuseViews(int64_t count, int64_t most) {
  const size_t before = decl_.kind == NodeKind::kParallelFor ? 2 : 0;  // the extent and the functor
  model_.mistakes.push_back({absl::StatusCode::kInvalidArgument,
                             graph::Prefix(model_, "node", decl_.name) + ": argument " +
                                 std::to_string(decl_.args.size() - before) + " is All of " + std::to_string(count) +
                                 " accesses; the kernel has room for " + std::to_string(most) + " there; " +
                                 (before > 0 ? "name fewer of them in each of several nodes"
                                             : "give its ViewTable more room, or name fewer")});
}

// Makes one buffer per parameter, whichever nodes read it. A handle that names no parameter is reported here, where the
// argument is known.
int32_t RecordedNode::OnDevice(uint32_t graph, int32_t param, TypeInfo type) {
  const bool known = graph == model_.serial && param >= 0 && param < static_cast<int32_t>(model_.params.size());
  const ParamDecl* const of = known ? &model_.params[param] : nullptr;
  const std::string argument = "argument " + std::to_string(decl_.args.size());
  const auto add = [&](const std::string& what, int32_t index) {
    const SourceLine& source = (index < 0 ? decl_.name : of->name).source();
    BufferDecl decl{.name = Name("OnDevice(" + what + ")", source.file, source.line),
                    .type = type,
                    .role = BufferRole::kParam,
                    .where = kSlot,
                    .extent = 1};
    decl.param = index;
    return DeclarationRecorder(model_).Buffer(std::move(decl));
  };
  if (known && of->type == type) {
    for (size_t b = 0; b < model_.buffers.size(); ++b) {
      if (model_.buffers[b].param == param) return static_cast<int32_t>(b);
    }
    return add(std::string(of->name.view()), param);
  }
  const std::string what =
      known ? "'" + graph::OneLine(of->name.view()) + "' through " + graph::OtherTypeText(type, of->type)
            : std::string(param < 0 ? "no parameter; its handle was never set; "
                                    : "a parameter of another graph; a handle is good in the "
                                      "graph that made it; ") +
                  "declare the parameter in this graph";
  model_.mistakes.push_back({absl::StatusCode::kInvalidArgument,
                             graph::Prefix(model_, "node", decl_.name) + ": " + argument + " is OnDevice of " + what});
  return add(argument + " of node " + std::to_string(model_.nodes.size()), -1);
}

}  // namespace penstock::detail
