#include "src/analysis/roofline.h"

namespace penstock::analysis {

Roof RoofOf(const Machine::Device& device, const Profile::Node& node) {
  const auto read = static_cast<double>(node.read_bytes);
  if (node.kind == "upload") return {.bytes = read, .gbs = device.upload};
  if (node.kind == "download") return {.bytes = read, .gbs = device.download};
  return {.bytes = read + static_cast<double>(node.written_bytes),
          .gbs = device.memory,
          .flops = node.flops,
          .gflops = device.fp32};
}

bool TellsItsWork(const Profile::Node& node) {
  for (const char* kind : {"upload", "download", "fill", "device copy", "parallel for"}) {
    if (node.kind == kind) return true;
  }
  return node.flops > 0;
}

}  // namespace penstock::analysis
