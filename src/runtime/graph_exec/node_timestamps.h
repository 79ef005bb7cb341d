// NodeTimestamps: when the nodes of one slot's graphs began and ended, if the executable has a trace.
//
// A timestamp node (src/driver/timestamp.h) follows each node, on the same device, and marks its end; whatever follows
// the node follows the timestamp instead. A node with exactly one predecessor in its graph, if that is on its device,
// begins at the end of that one; any other node has a timestamp before it, too: devices have clocks of their own. A
// chain thus costs one timestamp for each node. Nothing follows the last timestamps: a graph ends when all its nodes
// have. Timestamps have the highest priority: of another run's kernel that fills the device, one block has to end
// before a timestamp is taken, not all.
//
// Ownership: owns the memory of the timestamps, which is pinned, and the operations that write it; graphs borrow these.
//            Belongs to the slot's SlotGraphs.
// Threads:   as SlotGraphs.
// Ordering:  graphs write while they run. A thread that reads or forgets times has seen the slot's run end.
// Errors:    the driver's, and those of pinned memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/graph_exec/timestamp_op.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

class RegionOperations;

class NodeTimestamps {
 public:
  struct Options {
    const CompiledGraph* compiled;
    const RegionOperations* regions;
    memory::PinnedPool* pinned;
    int pinned_node;
    driver::RunFault* fault;
  };
  static absl::StatusOr<std::unique_ptr<NodeTimestamps>> Create(const Options& options);
  NodeTimestamps(const NodeTimestamps&) = delete;
  NodeTimestamps& operator=(const NodeTimestamps&) = delete;

  // Called before the node of an entry is added to a graph after the nodes `after`: adds the timestamp of its beginning
  // and puts it into `after` in place of the others. Returns false if the node needs none.
  // `device`: of the node, an index in the driver.
  absl::StatusOr<bool> AddBegin(int32_t entry, driver::Graph to, std::vector<int32_t>& after, int device) const;
  // Called after the nodes of the entry have been added, with those that are last. Returns the number of the node that
  // others come after instead.
  absl::StatusOr<int32_t> AddEnd(int32_t entry, driver::Graph to, std::span<const int32_t> ends, int device) const;

  // In nanoseconds on the device's clock; 0 if not written since Forget.
  struct Times {
    uint64_t begin = 0, end = 0;
  };
  Times Of(int32_t entry) const;
  void Forget();
  // Where the nodes of regions have theirs.
  const RegionOperations& regions() const { return regions_; }

 private:
  NodeTimestamps(const Options& options, std::vector<size_t> begin, memory::PinnedBlock places);
  absl::Status Make(const Options& options, const std::vector<NodeId>& nodes);
  absl::StatusOr<int32_t> Add(size_t timestamp, driver::Graph to, std::span<const int32_t> after, int device) const;
  static size_t EndOf(int32_t entry) { return static_cast<size_t>(entry); }

  driver::Driver& driver_;
  const RegionOperations& regions_;
  const std::vector<size_t> begin_;  // for each entry: the timestamp that it begins with
  const size_t first_begin_;  // the first timestamp that is no entry's end
  const memory::PinnedBlock memory_;
  std::vector<TimestampOp> timestamps_;  // the end of each entry, then the beginnings of some
};

}  // namespace penstock::runtime
