// MemoryRules: what operations may do to memory, asked of the blocks that were handed out and of the order of all work.
//
// A broken rule is told to the CallRecorder and comes back as its Status. A device of -1 is pinned memory; memory that
// the application made itself is asked for below, by Inspect.
//
// Threads: not thread-safe; CheckedDriver locks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/checked/call_recorder.h"
#include "src/driver/checked/memory_map.h"
#include "src/driver/checked/stream_book.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

// The pointers among the arguments that are not null.
std::vector<const void*> PointersOf(const KernelOp& op);

class MemoryRules {
 public:
  // All outlive it.
  MemoryRules(Driver& inner, CallRecorder& witness, const StreamBook& book)
      : inner_(inner), witness_(witness), book_(book) {}

  void Add(const void* memory, size_t bytes, int device) { map_.Add(memory, bytes, device); }
  // Forgets the block that begins at `memory`, before the driver below can give its place to another. False where it is
  // not to be freed: there is none, or work may still use it.
  bool Free(const void* memory, int device, const char* what);

  // Checks what an operation on `device` does to memory and keeps it. `work` is of the last operation of its line.
  absl::Status Use(const CopyOp& op, const Work& work, int device);
  absl::Status Use(const BatchOp& op, const Work& work, int device);
  absl::Status Use(const FillOp& op, const Work& work, int device);
  // Every pointer points to memory that a kernel may see. Where nobody says what it does there (`declared` is null) it
  // may do anything to all of the block. Returns the boxes that it writes and does not read.
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
};

}  // namespace penstock::driver::checked
