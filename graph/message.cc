#include "graph/message.h"

#include <cstring>

namespace penstock::graph {

std::string Where(const SourceLine& source) {
  const char* slash = std::strrchr(source.file, '/');
  return std::string(slash ? slash + 1 : source.file) + ":" + std::to_string(source.line);
}

std::string Prefix(const Model& model) { return "graph '" + std::string(model.name.view()) + "'"; }

std::string Prefix(const Model& model, std::string_view what, const Name& name, std::string_view device) {
  std::string text =
      Prefix(model) + " " + std::string(what) + " '" + std::string(name.view()) + "' (" + Where(name.source()) + ")";
  if (!device.empty()) text += " on " + std::string(device);
  return text;
}

}  // namespace penstock::graph
