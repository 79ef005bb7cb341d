// The measured constants of src/runtime/executable. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::runtime::tuning {

// What the thread that submits a run spends on a node, on a wait or record of an event, and on a graph with each of its
// nodes: on an H100, where a node takes 3.1 us of a stream and 0.01 us of a graph. They decide which mode Mode::kAuto
// tries first. Benchmark: corners.
inline constexpr double kSubmitNodeUs = 3, kSubmitWaitUs = 0.5, kSubmitGraphUs = 4, kSubmitGraphNodeUs = 0.02;

// Slots where CompileOptions::slots is 0: for most graphs, and for those that stage large copies of memory that is not
// pinned or whose runs are in order, if they have few nodes and the slots' arenas take at most this part of the memory.
// Benchmarks: copy_pipeline, corners.
inline constexpr int kSlots = 2, kManySlots = 16, kLittleMemory = 64;
inline constexpr size_t kFewNodes = 64;  // of the plan

// A loop that the device decides holds so many iterations in a body, if these have no more kernels: on an H100 a body
// costs 4 us besides its kernels, and each kernel that the last iterations have left out up to 0.7 us. Benchmark:
// loops.
inline constexpr int32_t kMostUnroll = 8, kMostUnrolledNodes = 48;

// An If or a Switch that the device decides needs no conditional node if it has few and short bodies: on an H100 such a
// node costs 6 us if a body runs and 2 us if none does, and each kernel of the longest body that is switched off 0.5
// us. Benchmark: loops.
inline constexpr int32_t kMostPickedNodes = 4, kMostPickedBodies = 4;

// What may run resident: a ParallelFor of so many elements, a fill or a copy of so many bytes. A worker has 32 lanes.
// Resident::kAuto takes nodes that give a lane one element, or a few bytes, and regions of so many nodes. Benchmark:
// resident.
inline constexpr int64_t kMostResidentElements = 1024, kMostResidentBytes = 4096;
inline constexpr int64_t kMostAutoElements = 32, kMostAutoBytes = 256;
inline constexpr int32_t kLeastAutoNodes = 8;

// A trace has the times of at most so many iterations of a loop that the device decides, the newest of a run: 16 bytes
// of pinned memory each in each slot.
inline constexpr uint32_t kMostMarks = 4096;  // a power of two

}  // namespace penstock::runtime::tuning
