#include "src/runtime/graph_exec/unrolled_part.h"

#include <cstddef>

#include "penstock/status_macros.h"

namespace penstock::runtime {

absl::Status UnrolledPart::Unroll(int32_t iterations, int32_t nodes, memory::PinnedPool& pinned, int pinned_node) {
  handles_.resize(static_cast<size_t>(iterations - 1) * static_cast<size_t>(nodes));
  PENSTOCK_ASSIGN_OR_RETURN(list_, pinned.Allocate(handles_.size() * sizeof(uint64_t), pinned_node));
  iterations_ = iterations;
  nodes_ = nodes;
  return absl::OkStatus();
}

absl::Status UnrolledPart::AddSwitches(driver::Driver& driver, driver::Graph graph, int32_t iteration, int32_t first) {
  auto* const list = static_cast<uint64_t*>(list_.data());
  for (int32_t node = 0; node < nodes_; ++node) {
    PENSTOCK_ASSIGN_OR_RETURN(const driver::NodeSwitch added, driver.AddSwitch(graph, first + node));
    const auto at = static_cast<size_t>((iteration - 1) * nodes_ + node);
    list[at] = handles_[at] = added.bits;
  }
  return absl::OkStatus();
}

void UnrolledPart::Switched(int32_t node, bool on) {
  auto* const list = static_cast<uint64_t*>(list_.data());
  for (auto at = static_cast<size_t>(node - first_); at < handles_.size(); at += static_cast<size_t>(nodes_)) {
    list[at] = on ? handles_[at] : 0;
  }
}

}  // namespace penstock::runtime
