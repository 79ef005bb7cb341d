#include "graph/common/message.h"

#include <cstring>

namespace penstock::graph {

std::string Where(const SourceLine& source) {
  const char* slash = std::strrchr(source.file, '/');
  return std::string(slash ? slash + 1 : source.file) + ":" + std::to_string(source.line);
}

size_t HiddenBytes(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const auto within = [](int byte, int low, int high) { return byte >= low && byte <= high; };
  if (at(0) < 0x20 || at(0) == 0x7f) return 1;
  if (at(0) == 0xc2) return within(at(1), 0x80, 0x9f) ? 2 : 0;  // U+0080 to U+009F
  if (at(0) == 0xd8) return at(1) == 0x9c ? 2 : 0;  // U+061C
  if (at(0) != 0xe2) return 0;
  if (at(1) == 0x80) return within(at(2), 0x8e, 0x8f) || within(at(2), 0xa8, 0xae) ? 3 : 0;  // U+200E, U+2028 to U+202E
  return at(1) == 0x81 && within(at(2), 0xa6, 0xa9) ? 3 : 0;  // U+2066 to U+2069
}

std::string OneLine(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t hidden = HiddenBytes(text.substr(i));
    for (size_t end = i + hidden; i < end; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      line += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    if (hidden == 0) line += text[i++];
  }
  return line;
}

std::string Quoted(const Name& name) { return "'" + OneLine(name.view()) + "' (" + Where(name.source()) + ")"; }

std::string OutsideText(const Name& buffer, int dimension, const std::string& from, int64_t count,
                        const std::string& extent) {
  return "takes " + std::to_string(count) + " elements" + (from.empty() ? "" : " from " + from + " on") +
         " in dimension " + std::to_string(dimension) + " of " + Quoted(buffer) + ", which has " + extent +
         "; a slice lies inside its buffer; make its offset or size smaller";
}

namespace {

// The type's name as far as it is known: that of a number, else its size.
std::string TypeText(const TypeInfo& type) {
  const std::string bits = std::to_string(8 * type.size) + "_t";
  switch (type.number) {
    case NumberKind::kFloat: return type.size == sizeof(float) ? "float" : "double";
    case NumberKind::kSigned: return "int" + bits;
    case NumberKind::kUnsigned: return "uint" + bits;
    case NumberKind::kNone: break;
  }
  return "a type of " + std::to_string(type.size) + " bytes";
}

}  // namespace

std::string OtherTypeText(const TypeInfo& handle, const TypeInfo& declared) {
  return "a handle of another type (" + TypeText(handle) + "; it was declared as " + TypeText(declared) +
         "); use the handle that its declaration returned";
}

std::string TooAligned(std::string_view what, uint32_t align) {
  return std::string(what) + " aligned to " + std::to_string(align) + " bytes; memory and arguments are aligned to " +
         std::to_string(kMostAlign) + " at most; give the type a smaller alignas";
}

std::string Prefix(const Model& model) { return "graph '" + OneLine(model.name.view()) + "'"; }

std::string Prefix(const Model& model, std::string_view what, const Name& name, std::string_view device) {
  std::string text =
      Prefix(model) + " " + std::string(what) + " '" + OneLine(name.view()) + "' (" + Where(name.source()) + ")";
  if (!device.empty()) text += " on " + std::string(device);
  return text;
}

}  // namespace penstock::graph
