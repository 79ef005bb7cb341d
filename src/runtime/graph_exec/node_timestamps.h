// NodeTimestamps: when the nodes of one slot's graphs began and ended, where the executable has a trace.
//
// Behind each node stands a stamp (src/driver/timestamp.h), its end, and what comes behind the node comes behind that.
// A node behind one other of its graph begins with the end of that; any other has a stamp in front of it, too. So a
// chain costs a stamp a node. Nothing follows the last stamps: a graph ends with all of its nodes.
//
// Ownership: owns the stamps' places, in pinned memory, and the operations that write there; graphs borrow these.
//            Belongs to the slot's SlotGraphs.
// Threads:   as SlotGraphs.
// Ordering:  graphs write while they run. Who reads times, or forgets them, has seen the slot's run end.
// Errors:    the driver's, and those of pinned memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/driver/timestamp.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/program/program.h"

namespace penstock::runtime {

class NodeTimestamps {
 public:
  struct Options {
    const GraphProgram* replay;
    driver::Driver* driver;
    int device;  // of the driver
    memory::PinnedPool* pinned;
    int pinned_node;
    driver::RunFault* fault;
  };
  static absl::StatusOr<std::unique_ptr<NodeTimestamps>> Create(const Options& options);
  NodeTimestamps(const NodeTimestamps&) = delete;
  NodeTimestamps& operator=(const NodeTimestamps&) = delete;

  // Before the node of an entry is added to a graph, behind `after`: adds the stamp that it begins with, and puts that
  // into `after` in place of what was there. False: the node needs none.
  absl::StatusOr<bool> AddBegin(int32_t entry, driver::Graph to, std::vector<int32_t>& after, int priority) const;
  // Behind the node, which is number `node` of its graph. Returns the number of what others come behind instead.
  absl::StatusOr<int32_t> AddEnd(int32_t entry, driver::Graph to, int32_t node, int priority) const;

  // In nanoseconds of the device; 0: not since Forget.
  struct Times {
    uint64_t begin = 0, end = 0;
  };
  Times Of(int32_t entry) const;
  void Forget();

  // A stamp that is no node's, to relate the device's clock to another.
  const driver::KernelOp& base() const { return timestamps_[0].op; }
  uint64_t base_time() const { return At(0); }

 private:
  // Says what it writes.
  struct Stamp final : driver::UseSource {
    driver::TimestampArgs args;
    void* argv = &args;
    driver::KernelOp op;

    void AppendUses(int32_t node, std::vector<driver::MemoryUse>& out) const override;
  };

  NodeTimestamps(const Options& options, const driver::LibraryCode& code, const std::vector<int32_t>& nodes,
                 std::vector<size_t> begin, memory::PinnedBlock places);
  static size_t EndOf(int32_t entry) { return static_cast<size_t>(entry) + 1; }
  uint64_t At(size_t stamp) const;

  driver::Driver& driver_;
  const std::vector<size_t> begin_;  // of each entry: the stamp that it begins with
  const size_t first_begin_;  // the first that is no entry's end
  const memory::PinnedBlock memory_;
  uint64_t* const places_;  // a stamp each
  std::vector<Stamp> timestamps_;  // the base, the end of each entry, then what stands in front of some
};

}  // namespace penstock::runtime
