// MemoryRules: what operations may do to memory, decided from the blocks handed out and the order of all work.
//
// A violation is reported to the CallRecorder and returned as a Status. Device -1 is pinned memory; memory that the
// application made itself is looked up with the Inspect of the driver below.
//
// Threads: not thread-safe; CheckedDriver locks.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/checked/call_recorder.h"
#include "src/driver/checked/memory_map.h"
#include "src/driver/checked/stream_book.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

// The non-null pointers among the arguments.
std::vector<const void*> PointersOf(const KernelOp& op);

class MemoryRules {
 public:
  // All three must outlive it.
  MemoryRules(Driver& inner, CallRecorder& witness, const StreamBook& book)
      : inner_(inner), witness_(witness), book_(book) {}

  void Add(const void* memory, size_t bytes, int device) { map_.Add(memory, bytes, device); }
  // From now on kernels on `device` may read the memory of `peer`.
  void AddLink(int device, int peer) { links_.insert({device, peer}); }
  // Forgets the block that begins at `memory`, before the driver below can reuse its address. Returns false if it must
  // not be freed: there is none, or work may still use it.
  bool Free(const void* memory, int device, const char* what);

  // Checks and records what an operation on `device` does to memory. `work` belongs to the last operation of its line.
  absl::Status Use(const CopyOp& op, const Work& work, int device);
  absl::Status Use(const BatchOp& op, const Work& work, int device);
  absl::Status Use(const FillOp& op, const Work& work, int device);
  // Checks that every pointer points to memory that a kernel may see. If its use is not declared (`declared` is null),
  // the kernel may do anything to the whole block. Returns the boxes that it writes and does not read.
  absl::StatusOr<std::vector<Footprint>> UseKernel(const std::vector<const void*>& pointers,
                                                   const std::vector<MemoryUse>* declared, const Work& work,
                                                   int device);

 private:
  absl::Status Violated(const char* rule, const std::string& what) { return witness_.Violated(rule, what); }
  absl::Status Use(const Access& access, int device, const std::string& what);
  absl::Status UseCopy(const CopyOp& op, const Work& work, int device, const std::string& what);
  absl::StatusOr<Block*> BlockOf(const Access& access, int device, const std::string& what);
  absl::Status CheckLaunchCall(const Access& access, int device, const std::string& what);
  bool IsWrittenOnly(const Access& access, const std::vector<Access>& accesses);

  Driver& inner_;
  CallRecorder& witness_;
  const StreamBook& book_;
  MemoryMap map_;
  std::set<std::pair<int, int>> links_;
};

}  // namespace penstock::driver::checked
