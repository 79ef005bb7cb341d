// How the workers of a resident region wait for each other, and what the kernel that runs a region reads.
//
// A region is a part of a graph that one kernel runs (docs/explanation/resident.md). Its workers, warps on a CUDA
// device, each walk a fixed list of tasks. What comes before a task on its own worker is done; for what comes before it
// on others it waits. Each worker has a progress word, which it raises when a task that others wait for has ended: to
// the task's position in the worker's list, in the epoch of this run of the list. Epochs only rise, from launch to
// launch too, so no word needs to be reset between launches: the worker that ends last leaves the highest epoch for the
// next one.
//
// A region with constructs is cut into sections. In each of them one worker decides which section is next, after all
// that the section does, and publishes the choice; all others wait for it, also those with nothing else to do. Each
// section has an epoch of its own, so loops need no reset either, and all workers leave in the same epoch. The worker
// that decides first waits until all others have entered the section. So all of them have read the previous choice
// before it overwrites that.
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
inline constexpr int kPositionBits = 16;
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE constexpr uint64_t ProgressAt(uint64_t epoch, uint32_t position) {
  return (epoch << kPositionBits) | position;
}

inline constexpr uint64_t kPositionMask = (uint64_t{1} << kPositionBits) - 1;

// The epoch of a launch, for a worker that begins. Any worker may begin when others are far ahead.
template <class Memory>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline uint64_t EnterRegion(Memory&& memory) {
  return memory.LoadEpoch() + 1;
}

// Waits until a worker has come so far. What it did before is visible only after Memory::Acquire, which may be called
// once for several waits. All lanes of a worker call it together, each for its wait, of which several may be the same;
// Memory::Any says whether something is so for any of them.
template <class Memory, class Word>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void AwaitProgress(Memory&& memory, Word word, uint64_t progress) {
  while (memory.Any(memory.LoadProgress(word) < progress)) memory.Pause();
}

// Ends a section: the worker that decides has waited until all others had ended their tasks in it, or entered it if
// they had none. Its writes, and those that it has waited for, are visible to whoever has awaited the choice.
template <class Memory>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void PublishChoice(Memory&& memory, uint64_t epoch, uint32_t choice) {
  memory.RaiseChoice(ProgressAt(epoch, choice));
}
// What the others get. As with AwaitProgress, all lanes call it together, and Memory::Acquire comes after it.
template <class Memory>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline uint32_t AwaitChoice(Memory&& memory, uint64_t epoch) {
  for (;;) {
    const uint64_t found = memory.LoadChoice();
    if (!memory.Any(found < ProgressAt(epoch, 0))) return static_cast<uint32_t>(found & kPositionMask);
    memory.Pause();
  }
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

// A task, or what ends a section: this record, its argument block, then its waits. The rest of a fill or a copy is in
// its argument block.
struct alignas(16) ResidentRecord {
  uint64_t code;  // a device function (resident_cuda.h); 0: the page ends; below kFirstFunction: ResidentCode
  uint16_t args;  // bytes of the argument block, a multiple of 16
  uint16_t next;  // bytes from this record to the next
  uint16_t waits;
  uint16_t flags;  // ResidentFlag
  uint32_t position;  // of the task in its section
  uint32_t goes_on;  // of a page's first record: whether the next page comes after this one
  uint64_t reserved;
};
enum ResidentFlag : uint16_t {
  kWaits = 1,  // it has waits
  kWaitsForAll = 2,  // some wait is for a worker of another block
  kSignalsBlock = 4,  // workers of the same block wait for it
  kSignalsAll = 8,  // workers of other blocks do
  kRepeatsCode = 16,  // the next record, in the same page, has the same code
  kIsTimed = 32,  // the worker records when the task begins and ends
};
static_assert(sizeof(ResidentRecord) == 32);
inline constexpr uint32_t kMostRecordBytes = kPageBytes - sizeof(ResidentRecord);  // with arguments and waits

// kDecide: decides in place of a condition's task, or only waits; kBranch: goes to another section.
enum class ResidentCode : uint64_t { kEndOfPage, kFill, kCopy, kDecide, kBranch, kFirstFunction };

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

// The argument block of a kBranch. Of a worker that has nothing to do in the section the record signals position 0:
// that it has come so far. `choices` + 1 targets follow, of which the last is for every other choice: offsets from the
// first page of all.
struct ResidentBranch {
  uint32_t choices;
  uint16_t decides;  // this worker does
  uint16_t in_block;  // it waits for a worker of its block; if it decides: some wait there
  uint16_t elsewhere;  // some wait in other blocks
  uint16_t again;  // the end of an iteration; otherwise the beginning of a loop
  uint32_t loop;  // one more than the number of loops around it; 0: neither
};

struct ResidentState {
  uint64_t epoch;  // the highest one used
  uint64_t leavers;  // workers of the launch at work that have ended
  uint64_t choice;  // the last one, as the word of a worker
  uint64_t reserved;
};

inline constexpr uint32_t kMostLoopDepth = 16;

// What workers share of their block's memory: what each has, the choice, and where those of all blocks are. Two pages
// of each worker follow, then kTaskBytes of each.
struct ResidentBlock {
  struct alignas(16) Worker {
    uint32_t landing[4];  // a copy of what `stop` names, which may be under way
    uint64_t progress, epoch;
    uint64_t* word;  // its progress, for all blocks
    uint32_t choice;  // of its last decision
    uint32_t stopped;  // not 0: the host has ended the loops
    uint32_t looked;  // when the copy began, by the multiprocessor's clock
    uint32_t reserved;
    uint64_t* times;  // when its tasks began and ended, two words each
    int64_t iterations[kMostLoopDepth];  // of the loops that it is in, from the outermost on, that have begun
  };
  Worker workers[kWorkersOfBlock];
  uint64_t choice;
  uint64_t* progress;
  ResidentState* state;
  const uint32_t* stop;
};
static_assert(sizeof(ResidentBlock) % alignof(ResidentRecord) == 0);
// A worker's memory for the Task that it runs, if some Task of the region takes any: as much as 32 rows of 33 floats
// take. A multiprocessor (sm_90) then gives a block 164 KiB, and keeps 92 KiB for its first cache.
inline constexpr uint32_t kTaskBytes = 4224;
inline constexpr uint32_t kTaskMemoryAt = uint32_t{sizeof(ResidentBlock)} + kWorkersOfBlock * 2 * kPageBytes;
inline constexpr uint32_t kResidentSharedBytes = kTaskMemoryAt + kWorkersOfBlock * kTaskBytes;

// The kernel's argument. Blocks have kWorkersOfBlock workers, the last perhaps fewer.
struct ResidentArgs {
  const std::byte* pages;
  const uint32_t* first_page;  // of each worker, and one past the last
  uint64_t* progress;  // one word each, kWordStride apart
  ResidentState* state;
  const uint32_t* stop;  // a host word by which the host ends loops, the first of 16 bytes; null: there is none
  uint32_t workers;
  // When tasks began and ended, in nanoseconds of the device's clock, two words each: all of a worker together, from
  // `first_time` of it on, in the order of its list. A worker that leaves copies its own to `times_of_host`, which is
  // pinned: to write there at once would delay the raise of its word. Null: nothing is timed.
  uint64_t* times;
  uint64_t* times_of_host;
  const uint32_t* first_time;
};

}  // namespace penstock::detail
