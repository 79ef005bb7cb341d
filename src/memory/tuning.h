// The measured constants of src/memory. Each line has the unit and the benchmark that moves with it
// (docs/howto/tune.md says how to compare).
//
// Threads: constants.
#pragma once

#include <chrono>
#include <cstddef>

namespace penstock::memory {

// Staging. Downloads are kept under way so that the link never waits; with more, a block would leave the caches before
// it is read.
inline constexpr size_t kBytesUnderWay = size_t{16} << 20;  // bytes for each device (`copies`)
inline constexpr int kFewestBlocksUnderWay = 4;  // blocks for each device, however large (`copies`)
inline constexpr int kMostBlocksUnderWay = 8;  // blocks for each device, however small (`copies`)
inline constexpr int kBlocksToFill = 2;  // blocks of each copying thread (`copies`)
inline constexpr int kThreadsOfCopyingFeeder = 3;  // threads up to which the feeding thread copies, too (`copies`)
inline constexpr int kWorkersWokenByPost = 4;  // threads; each wakes another while there is work (`copies`)
inline constexpr int kPausesBetweenLooks = 40;  // pauses of a spinning thread, a few microseconds (`copies`)
inline constexpr std::chrono::microseconds kWorkerSpin{100};  // us; waking a thread takes less (`copies`)
inline constexpr int kPausesBetweenPolls = 10;  // pauses; polling without any slows other submitters (`copies`)

// The choice of a ring's threads and chunks (staging_tuning.h).
inline constexpr double kHostReserve =
    1.3;  // what threads can copy, per what the link takes (`copies`, `copy_pipeline`)
inline constexpr double kPausesAtMost = 0.1;  // share of the link that pauses may cost (`copies`)
inline constexpr double kPausesOfLarge = 0.03;  // the same for large copies (`copies`)
inline constexpr size_t kSmallestChunk = size_t{256} << 10;  // bytes (`copies`, `copy_pipeline`)
inline constexpr size_t kLargestChunk = size_t{16} << 20;  // bytes (`copies`, `copy_pipeline`)

// The pinned pool. The next slab is pinned when less than this part of one is free.
inline constexpr size_t kSlabBytes = size_t{32} << 20;  // bytes; pinning one takes about 10 ms (no benchmark)
inline constexpr size_t kSlabPartKeptFree = 4;  // a slab divided by this (no benchmark)

// Rows of fewer bytes are copied through the caches.
inline constexpr size_t kStreamedRow = 4096;  // bytes (`copies`)

}  // namespace penstock::memory
