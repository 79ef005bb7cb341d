// The measured thresholds of src/runtime/program. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

#include <cstdint>

namespace penstock::runtime::tuning {

// Parts of a partitioned range for each thread that may submit them: with a part a lane, the device gets nearly plan
// order, and a thread looks at all parts before each command. Benchmark: feeders.
inline constexpr int32_t kPartsForEachThread = 4;
// Commands of a range on a device for each submission thread that helps with it; one may help with fewer. Benchmarks:
// bands, feeders.
inline constexpr int32_t kCommandsForEachThread = 64;

// Commands outstanding on a lane; see ExecCommand::FlowControl. Benchmark: feeders.
inline constexpr int kMostOutstanding = 512;
// Commands that a Launch node counts as, which may submit any number: a guess.
inline constexpr int kLaunchCommands = 16;

// Bytes of host memory that a task copies where the run is advanced. A handover to a worker takes as long as copying
// several times as many. Benchmark: training_step.
inline constexpr int64_t kMostInlineCopyBytes = 64 << 10;

// What a functor in a region is taken to need, beside what a task costs there: if it needs more, a region of fewer
// workers would lose much; if it needs nothing, one of more loses little. Benchmark: resident.
inline constexpr double kUnknownTaskUs = 0.7;
// From the end of a task to the begin of one on another worker that waits for it: in the same block, and in another. On
// an H100. Benchmark: resident.
inline constexpr double kHandoverInBlockUs = 0.4, kHandoverUs = 0.9;

}  // namespace penstock::runtime::tuning
