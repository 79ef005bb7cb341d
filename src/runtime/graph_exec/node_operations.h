// NodeOperations: what the nodes of a slot's graphs are to do in the slot's next run, and what they were last set to.
//
// If no launch has decided a node's operation yet, the node is made with a placeholder, which names memory that exists.
// CUDA accepts new addresses only for copies of contiguous lines. A copy that varies and may have rows with gaps is
// therefore a batch of one piece; so is a small copy to or from the host, which takes half the time that way
// (docs/adr/003).
//
// Ownership: owns the memory of placeholders, of the parameters on the device, and of the tables of batches; borrows
//            the slot and its hostcalls.
// Threads:   used only by the slot's owner.
// Errors:    the driver's and the pool's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/node_op.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/calls/hostcalls.h"
#include "src/runtime/graph_exec/region_operations.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class NodeOperations {
 public:
  // `hostcalls`: null if no node calls the host.
  NodeOperations(Slot& slot, const Hostcalls* hostcalls);
  NodeOperations(const NodeOperations&) = delete;
  NodeOperations& operator=(const NodeOperations&) = delete;
  ~NodeOperations();

  // Must be called first. The graphs are launched by runs, whose nodes have times or not, or are for an exported graph:
  // then small copies stay copies, and no parameter is read by reference.
  enum class Use : uint8_t { kRuns, kTimedRuns, kExport };
  absl::Status Make(Use use);

  // The operation of an entry for the slot's next run, valid until the next call; `disabled`: it has nothing to do.
  // `indirect`: the kernel reads its parameters from device memory.
  struct Wanted {
    driver::NodeOp op;
    bool disabled = false;
  };
  absl::StatusOr<Wanted> Of(EntryId entry, bool indirect);
  // Calls `add` with an operation that is harmless but must be set before it runs, unless it is switched off.
  // `disabled`: as Of returned it.
  template <class Add>
  auto WithPlaceholder(EntryId entry, bool disabled, Add add);

  // IsSet: whether the node is set to what the slot holds now. Keep: records that it is.
  bool IsSet(EntryId entry) const;
  void Keep(EntryId entry);
  // Whether a copy engine does the copy, that is, whether it is not a batch.
  bool IsEngineCopy(EntryId entry) const;

  // Copies what regions read to the device, before a graph is launched on the stream.
  absl::Status RefreshRegions(driver::Stream stream) { return regions_.Refresh(stream); }
  const RegionOperations& regions() const { return regions_; }
  // Whether SetNode accepts the entry's next operation in place of the one that its node has.
  bool CanBeSet(EntryId entry) const;

  // Returns the devices on which the graphs have nodes, or from which their nodes copy.
  const std::vector<DeviceId>& devices() const { return devices_; }
  // Returns the copy that brings the slot's parameters to where the device's kernels read them by reference.
  const driver::BatchOp& refresh(DeviceId device) const { return on_device_[device].refresh; }

 private:
  using PieceId = Id<struct PieceTag>;  // in `piece_ops_`
  struct SetKernel {
    std::array<uint32_t, 3> grid{};
    int64_t rows = 0;
    const void* callable = nullptr;
    friend bool operator==(const SetKernel&, const SetKernel&) = default;
  };
  static SetKernel KernelOf(const driver::KernelOp& op) { return {op.grid, op.rows, op.callable}; }

  // What the graphs have on a device.
  struct OnDevice {
    std::byte* scratch = nullptr;  // memory for placeholders, then the parameters; null if the graphs do not use it
    driver::BatchOp refresh{};  // a batch of one piece
  };

  void FindDevices();
  void FindPieces(Use use);
  void MakeRefs();
  std::byte* ParamsOn(DeviceId device) const;
  const driver::KernelOp* Indirect(CallId call);
  bool IsNodeSet(const GraphNodeEntry& node, PieceId piece) const;
  void KeepNode(const GraphNodeEntry& node, PieceId piece);
  driver::CopyOp PlaceholderOf(EntryId entry, const driver::CopyOp& copy);
  DeviceId DeviceOf(EntryId entry) const;
  DeviceId SourceOf(EntryId entry) const;
  const GraphNodeEntry& EntryAt(EntryId entry) const { return program_.replay.entries[entry]; }

  Slot& slot_;
  SlotTables& tables_;
  const Program& program_;
  const Hostcalls* const hostcalls_;
  memory::PinnedBlock pinned_;  // memory for placeholders, then the tables of `piece_ops_` and of each refresh
  std::vector<DeviceId> devices_;
  Table<DeviceId, OnDevice> on_device_;
  Table<EntryId, PieceId> piece_of_;  // of entries that copy by a batch; none: it does not
  driver::CopyPiece* pieces_ = nullptr;
  Table<PieceId, driver::BatchOp> piece_ops_;
  std::vector<void*> ref_argv_;  // like SlotTables::argv, for calls by reference
  driver::KernelOp indirect_;  // the operation that Of returned
  RegionOperations regions_;
  Table<EntryId, bool> has_line_;  // of copies: the node copies a line now
  // What the nodes are set to. Parallel to SlotTables::copies, `piece_ops_`, SlotTables::batches, fills, kernels, args.
  Table<CopyId, driver::CopyOp> set_copies_;
  Table<PieceId, driver::BatchSize> set_pieces_;
  Table<BatchId, driver::BatchOp> set_batches_;
  Table<FillId, driver::FillOp> set_fills_;
  Table<CallId, SetKernel> set_kernels_;
  std::vector<std::byte> set_args_;
};

template <class Add>
auto NodeOperations::WithPlaceholder(EntryId e, bool disabled, Add add) {
  const GraphNodeEntry& entry = EntryAt(e);
  const int32_t i = entry.index;
  std::byte* const scratch = on_device_[DeviceOf(e)].scratch;
  switch (entry.op) {
    case ExecCommand::Op::kKernel: {
      driver::KernelOp op = tables_.kernels[i];
      if (disabled) op.grid = {1, 1, 1}, op.rows = 1;
      return add(&op);
    }
    case ExecCommand::Op::kBatch: {
      driver::BatchOp op = tables_.batches[i];
      if (disabled) op.count = 1, op.size = {1, 1};
      return add(&op);
    }
    case ExecCommand::Op::kFill: {
      driver::FillOp op = tables_.fills[i];
      op.dst = scratch;
      op.count = op.height = op.depth = 1;
      return add(&op);
    }
    case ExecCommand::Op::kRegion: {
      const driver::FillOp byte{.dst = scratch, .count = 1};
      return add(&regions_.Placeholder(i, byte));
    }
    default: break;
  }
  if (const PieceId piece = piece_of_[e]; piece >= 0) {
    return add(&piece_ops_[piece]);
  }
  driver::CopyOp op = PlaceholderOf(e, tables_.copies[i]);
  return add(&op);
}

}  // namespace penstock::runtime
