#include "tests/graph/oracle/model_text.h"

#include "graph/plan/plan_names.h"

namespace penstock::graph {
namespace {

std::string DimText(const Model& model, const Dim& dim) {
  if (dim.is_constant()) return std::to_string(dim.value);
  const ParamDecl& param = model.params[dim.param];
  return std::string(param.name.view()) + "<=" + std::to_string(param.max);
}

std::string ExtentText(const Model& model, const Extent& extent) {
  std::string text;
  for (int i = 0; i < extent.rank; ++i) {
    text += (i > 0 ? "," : "{") + DimText(model, extent.dims[i]);
  }
  return text + "}";
}

std::string BoxText(const Model& model, const Box& box) {
  return box.whole ? "" : "[" + ExtentText(model, box.offset) + "+" + ExtentText(model, box.size) + "]";
}

std::string BufferText(const Model& model, const BufferDecl& decl) {
  static const char* const kRoles[] = {"input", "output", "inout", "internal", "state", "param"};
  std::string text(decl.name.view());
  text += " " + ExtentText(model, decl.extent) + " of " + std::to_string(decl.type.size) + " bytes";
  if (!decl.is_alias) return text + ", " + kRoles[static_cast<size_t>(decl.role)] + "\n";
  const BufferDecl& base = model.buffers[decl.alias_of];
  return text + ", alias of " + std::string(base.name.view()) + BoxText(model, decl.box) + "\n";
}

std::string NodeText(const Model& model, const NodeDecl& node) {
  static const char* const kKinds[] = {"copy", "fill", "parallel for", "kernel", "launch", "host"};
  std::string text = std::string(node.name.view()) + " (" + kKinds[static_cast<size_t>(node.kind)] + ")";
  if (node.device >= 0) text += " on " + std::to_string(node.device);
  for (const AccessDecl& a : node.accesses) {
    text += std::string(", ") + (a.unordered ? "unordered " : "") + ModeName(a.mode) + " " +
            std::string(model.buffers[a.buffer].name.view()) + BoxText(model, a.box);
  }
  for (const int32_t other : node.after) {
    text += ", after " + std::string(model.nodes[other].name.view());
  }
  for (const InPlaceDecl& pair : node.in_place) {
    text += ", in place: " + std::string(model.buffers[pair.in].name.view()) + " and " +
            std::string(model.buffers[pair.out].name.view());
  }
  return text + "\n";
}

}  // namespace

std::string ModelText(const Model& model) {
  std::string text;
  for (const BufferDecl& decl : model.buffers) text += BufferText(model, decl);
  for (const NodeDecl& node : model.nodes) text += NodeText(model, node);
  return text;
}

}  // namespace penstock::graph
