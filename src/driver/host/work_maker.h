// WorkMaker: turns an operation of a host device into a Task for an engine, with addresses checked and translated.
//
// Ownership: borrows the memory of the driver.
// Threads:   thread-safe; the memory locks itself.
// Errors:    InvalidArgument for memory that the operation may not name, and for sizes that no driver accepts
//            (copy_box.h, fill_box.h); Unimplemented for kernels without host code.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/driver/host/host_memory.h"
#include "src/driver/host/peer_links.h"
#include "src/driver/host/tasks.h"

namespace penstock::driver::host {

class WorkMaker {
 public:
  // `threads`: how many chunks each device's compute engine may run at once.
  WorkMaker(const std::vector<std::unique_ptr<DeviceHeap>>& heaps, const PinnedMemory& pinned, const PeerLinks& links,
            int threads)
      : heaps_(heaps), pinned_(pinned), links_(links), threads_(threads) {}

  // Makes work for an engine of `device`. For empty operations the sizes are checked, but no address.
  absl::StatusOr<Work> Make(int device, const CopyOp& op) const;
  absl::StatusOr<Work> Make(int device, const BatchOp& op) const;
  absl::StatusOr<Work> Make(int device, const FillOp& op) const;
  absl::StatusOr<Work> Make(int device, const KernelOp& op) const;
  absl::StatusOr<Work> Make(int device, const RegionOp& op) const;
  absl::StatusOr<Work> Make(int device, const NodeOp& op) const {
    return std::visit([&](const auto* of) { return Make(device, *of); }, op);
  }

  // The tasks of all operations of a region. Addresses are translated now, and once: a graph keeps them.
  absl::StatusOr<std::shared_ptr<const RegionTasks>> MakeTasks(int device, const RegionOp& op) const;

  // Checks what is known of a batch before its pieces are written: that the table is pinned memory.
  absl::Status CheckTable(const BatchOp& op) const;
  absl::Status CheckDevice(int device) const;

 private:
  int ThreadsOf(EngineKind engine) const { return engine == EngineKind::kCompute ? threads_ : 1; }
  // The device whose memory a kernel on `device` means: its own, unless the address is another's that it has a link to.
  int HolderOf(int device, const void* memory) const;
  absl::StatusOr<std::byte*> AccessDevice(int device, const void* memory, size_t bytes, const char* what) const;
  absl::Status CheckPinned(const void* memory, size_t bytes, const char* what) const;
  absl::Status TranslateCopy(CopyOp& op, int device) const;
  absl::Status TranslateArgs(const KernelOp& op, int device, ArgBlock& args) const;

  const std::vector<std::unique_ptr<DeviceHeap>>& heaps_;
  const PinnedMemory& pinned_;
  const PeerLinks& links_;
  const int threads_;
};

}  // namespace penstock::driver::host
