// MemoryRules: what operations may do to memory, asked of the blocks that were handed out and of the order of streams.
//
// A broken rule is told to the Witness and comes back as its Status. A device of -1 is pinned memory; memory that the
// application made itself is asked for below, by Inspect.
//
// Threads: not thread-safe; CheckedDriver locks.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/checked/memory_map.h"
#include "src/driver/checked/stream_book.h"
#include "src/driver/checked/witness.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

class MemoryRules {
 public:
  // All outlive it.
  MemoryRules(Driver& inner, Witness& witness, const StreamBook& book)
      : inner_(inner), witness_(witness), book_(book) {}

  void Add(const void* memory, size_t bytes, int device) { map_.Add(memory, bytes, device); }
  // Forgets the block that begins at `memory`, before the driver below can give its place to another. False where it is
  // not to be freed: there is none, or work may still use it.
  bool Free(const void* memory, int device, const char* what);

  // An access of memory of `device` by the last operation of its stream.
  absl::Status Use(const Access& access, int device, const char* what);
  // The accesses of a kernel, which sees pinned memory too.
  absl::Status UseAll(const std::vector<Access>& accesses, int device);
  // Every pointer among the arguments points to memory that the kernel may see. Where nobody says what it does there
  // (no op.uses), `any` is its access to all of the block.
  absl::Status UsePointers(const KernelOp& op, Access any, int device);

  // Whether a box may be poisoned before the kernel with these accesses: it is written and, by this kernel, not read.
  bool IsPoisonable(const std::vector<Access>& accesses, const Access& access);

 private:
  absl::Status Violated(const char* rule, const std::string& what) { return witness_.Violated(rule, what); }
  absl::StatusOr<Block*> BlockOf(const Footprint& box, int device, const char* what);
  absl::Status CheckForeign(const Footprint& box, int device, const char* what);

  Driver& inner_;
  Witness& witness_;
  const StreamBook& book_;
  MemoryMap map_;
};

}  // namespace penstock::driver::checked
