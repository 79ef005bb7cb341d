// How the workers of a resident region wait for each other, and what the kernel that runs a region reads.
//
// A region is a part of a graph that one kernel runs (docs/explanation/resident.md). Its workers, warps on a CUDA
// device, each walk a fixed list of tasks. What comes before a task on its own worker is done; for what comes before it
// on others it waits. Each worker has a progress word, which it raises when a task that others wait for has ended: to
// the task's position in the worker's list, in the epoch of this run of the list. Epochs only rise, from launch to
// launch too, so no word needs to be reset between launches: the worker that ends last leaves the highest epoch for the
// next one.
//
// All workers must be on the device at once: a worker that waits does not make room for one that it waits for. Lists
// follow one order of all tasks, so then no wait is for ever.
//
// Memory order: a task's writes come before its worker's raise of the word, which releases; whoever has seen the word
// raised acquires before its own task begins. Order on a worker is program order.
//
// The algorithm is a template over the memory it works on: a device's, or a test's.
//
// Threads: the lanes of a worker raise its word by one of them; any worker may read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/detail/host_device.h"
#include "penstock/export.h"

namespace penstock::detail {

// The progress of a worker that has ended the task at a position, counting from 1, of its list in an epoch. Later
// progress is greater.
inline constexpr int kPositionBits = 20;
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE constexpr uint64_t ProgressAt(uint64_t epoch, uint32_t position) {
  return (epoch << kPositionBits) | position;
}

// The epoch of a launch, for a worker that begins. Any worker may begin when others are far ahead.
template <class Memory>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline uint64_t EnterRegion(Memory&& memory) {
  return memory.LoadEpoch() + 1;
}

// Waits until a worker has come so far. What it did before is visible only after Memory::Acquire, which may be called
// once for several waits.
template <class Memory>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void AwaitProgress(Memory&& memory, uint32_t word, uint64_t progress) {
  while (memory.LoadProgress(word) < progress) memory.Pause();
}

// A worker's last act. The next launch begins when all workers of this one have ended.
template <class Memory>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void LeaveRegion(Memory&& memory, uint64_t epoch, uint32_t workers) {
  if (memory.CountLeaver() + 1 < workers) return;
  memory.ResetLeavers();
  memory.StoreEpoch(epoch);
}

// --- what the kernel reads ---

// A worker's tasks, and a wait among them, lie in pages, which it copies to its own part of the shared memory one
// ahead. No record straddles pages; each page ends with a record without code.
inline constexpr uint32_t kPageBytes = 2048;
inline constexpr uint32_t kWorkersOfBlock = 16, kLanes = 32;

// A progress word in the shared memory of the worker's block, read by its block; or in the region's own memory, read by
// all. Words of the latter lie so many words apart.
inline constexpr uint32_t kWordStride = 16;
inline constexpr uint32_t kInBlock = uint32_t{1} << 31;  // of ResidentWait::word
struct ResidentWait {
  uint32_t word;  // the worker's number; with kInBlock, its number in the block
  uint32_t position;
};

// A task: this record, its argument block, then its waits. The rest of a fill or a copy is in its argument block.
struct alignas(16) ResidentRecord {
  uint64_t code;  // a device function (resident_cuda.h); 0: the page ends; below kFirstFunction: ResidentCode
  uint16_t args;  // bytes of the argument block, a multiple of 16
  uint16_t next;  // bytes from this record to the next
  uint16_t waits;
  uint16_t wide;  // whether some wait is for a worker of another block
  uint32_t position;  // of the task
  uint16_t signals_block, signals_all;  // whether workers of the same block, and of others, wait for it
  uint64_t reserved;
};
static_assert(sizeof(ResidentRecord) == 32);
inline constexpr uint32_t kMostRecordBytes = kPageBytes - sizeof(ResidentRecord);  // with arguments and waits

enum class ResidentCode : uint64_t { kEndOfPage, kFill, kCopy, kFirstFunction };

// The arguments of a fill: rows of a pattern of `pattern_bytes` bytes, as in driver::FillOp; and of a copy of rows.
struct ResidentFill {
  void* to;
  uint64_t count, height, depth, pitch, slice;
  uint32_t pattern_bytes, reserved;
  uint8_t pattern[16];
};
struct ResidentCopy {
  void* to;
  const void* from;
  uint64_t width, height, depth, to_pitch, from_pitch, to_slice, from_slice;
};

struct ResidentState {
  uint64_t epoch;  // the highest one used
  uint64_t leavers;  // workers of the launch at work that have ended
};

// What workers share of their block's memory: for each its word and epoch, and where the words of all workers are. Two
// pages of each worker follow.
struct ResidentBlock {
  struct Worker {
    uint64_t progress, epoch;
  };
  Worker workers[kWorkersOfBlock];
  uint64_t* progress;
  uint64_t reserved;
};
static_assert(sizeof(ResidentBlock) % alignof(ResidentRecord) == 0);
inline constexpr uint32_t kResidentSharedBytes = uint32_t{sizeof(ResidentBlock)} + kWorkersOfBlock * 2 * kPageBytes;

// The kernel's argument. Blocks have kWorkersOfBlock workers, the last perhaps fewer.
struct ResidentArgs {
  const std::byte* pages;
  const uint32_t* first_page;  // of each worker, and one past the last
  uint64_t* progress;  // one word each, kWordStride apart
  ResidentState* state;
  uint32_t workers;
};

}  // namespace penstock::detail
