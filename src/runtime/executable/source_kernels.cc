#include "src/runtime/executable/source_kernels.h"

#include <algorithm>
#include <string>

#include "penstock/status_macros.h"
#include "src/base/status.h"

namespace penstock::runtime {
namespace {

// "20 bytes in 3 parameters (4, 8, 8)".
std::string TextOfSizes(const std::vector<uint32_t>& sizes, const char* what) {
  uint64_t sum = 0;
  std::string each;
  for (const uint32_t size : sizes) {
    sum += size;
    each += (each.empty() ? "" : ", ") + std::to_string(size);
  }
  const std::string count = std::to_string(sizes.size()) + " " + what + (sizes.size() == 1 ? "" : "s");
  return std::to_string(sum) + " bytes in " + count + (each.empty() ? "" : " (" + each + ")");
}

absl::Status CheckParameters(const NodeDecl& node, const std::vector<uint32_t>& parameters) {
  std::vector<uint32_t> given;
  for (const ArgDecl& arg : node.args) given.push_back(arg.size);
  if (given == parameters) return absl::OkStatus();
  return absl::InvalidArgumentError("kernel '" + node.code.source->kernel + "' takes " +
                                    TextOfSizes(parameters, "parameter") + ", and the node gives " +
                                    TextOfSizes(given, "argument") +
                                    "; an access gives a pointer, a parameter or value its own type; give it the types "
                                    "that the kernel takes, in their order");
}

}  // namespace

void SourceKernels::Collect() {
  std::map<std::pair<const Source::Parts*, std::string>, int32_t> known;
  of_node_.assign(graph_.plan().nodes.size(), -1);
  for (const NodeId n : graph_.plan().nodes.ids()) {
    const graph::PlanNode& node = graph_.plan().nodes[n];
    if (node.kind != graph::PlanKind::kKernel && node.kind != graph::PlanKind::kParallelFor) continue;
    const Source::Parts* const source = graph_.model().nodes[node.decl].code.source.get();
    const std::string& architecture = graph_.device(node.device).info.architecture;
    if (source == nullptr || architecture.empty()) continue;
    const auto [at, is_new] = known.try_emplace({source, architecture});
    if (is_new) at->second = IndexOf(*source, architecture);
    of_node_[n] = at->second;
    if (static_cast<size_t>(at->second) < wanted_.size()) continue;
    wanted_.push_back({source, architecture});
    first_.push_back(n);
  }
}

// Of an equal source that is wanted already, or the next one.
int32_t SourceKernels::IndexOf(const Source::Parts& source, const std::string& architecture) const {
  const auto at = std::find_if(wanted_.begin(), wanted_.end(), [&](const jit::WantedKernel& wanted) {
    return wanted.architecture == architecture && *wanted.source == source;
  });
  return static_cast<int32_t>(at - wanted_.begin());
}

absl::Status SourceKernels::Compile(const std::function<absl::Status(size_t done, size_t total)>& tell) {
  Collect();
  if (wanted_.empty()) return absl::OkStatus();
  const auto log = [this](LogLevel level, std::string_view text) {
    runtime_.Log(level, graph_.Label() + ": " + std::string(text));
  };
  PENSTOCK_ASSIGN_OR_RETURN(auto results, jit::CompileSources(wanted_, {.tell = tell, .log = log}));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) return graph_.Describe(first_[i], results[i].status());
    compiled_.push_back(*std::move(results[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<driver::KernelCode> SourceKernels::Load(NodeId node) {
  const NodeDecl& decl = graph_.model().nodes[graph_.plan().nodes[node].decl];
  const driver::DeviceRef& device = graph_.device(graph_.plan().nodes[node].device);
  const jit::KernelImage& image = *compiled_[static_cast<size_t>(of_node_[node])];
  const bool awaits = decl.shape.programmatic;
  const auto [at, is_new] = loaded_.try_emplace({&image, device.driver, device.local, awaits});
  if (is_new) {
    PENSTOCK_ASSIGN_OR_RETURN(at->second,
                              device.driver->LoadImage(device.local, image.image, image.symbol.c_str(), awaits));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckParameters(decl, at->second.parameters));
  return at->second.code;
}

std::vector<std::shared_ptr<const void>> SourceKernels::TakeImages() {
  std::vector<std::shared_ptr<const void>> images;
  for (auto& [key, kernel] : loaded_) images.push_back(std::move(kernel.image));
  loaded_.clear();
  return images;
}

}  // namespace penstock::runtime
