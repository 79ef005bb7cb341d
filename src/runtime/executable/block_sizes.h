// BlockSizes: how many threads the blocks of a plan's kernels have where the device's occupancy decides it (kOccupancy
// in penstock/graph.h), and the checks of shapes that need the loaded kernel; the planner has made the others.
//
// Ownership: borrows the model.
// Threads:   used by one thread, while it compiles the graph.
// Errors:    InvalidArgument for a shape that the kernel or the device cannot have; the driver's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "penstock/detail/model.h"
#include "src/driver/device_ref.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

class BlockSizes {
 public:
  explicit BlockSizes(const Model& model) : model_(model) {}

  // The size of the node's blocks by occupancy, for which a driver is asked once for each kernel, device and number of
  // shared bytes. Of a node that does not ask for it the default, which nothing uses.
  absl::StatusOr<driver::BlockSize> Get(const NodeDecl& node, const driver::DeviceRef& device,
                                        const driver::KernelCode& code);
  // Puts a remark on each node of a size by occupancy before the others, whose last says what matters most.
  void TellOf(const graph::Plan& plan, std::vector<std::string>& notes) const;

 private:
  using Key = std::tuple<driver::Driver*, int, const void*, uint32_t>;
  struct Told {
    const NodeDecl* node;
    const driver::DeviceRef* device;
    driver::BlockSize size;
  };

  // Whether the grid of so many threads has few enough of these blocks.
  absl::Status CheckBlocks(const NodeDecl& node, const driver::DeviceRef& device, uint32_t threads) const;

  const Model& model_;
  std::map<Key, driver::BlockSize> known_;
  std::vector<Told> told_;
};

}  // namespace penstock::runtime
