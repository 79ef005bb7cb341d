// The measured thresholds of src/runtime/program. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

namespace penstock::runtime::tuning {

// Commands outstanding on a lane; see ExecCommand::FlowControl. Benchmark: feeders.
inline constexpr int kMostOutstanding = 512;
// Commands that a Launch node counts as, which may submit any number: a guess.
inline constexpr int kLaunchCommands = 16;

}  // namespace penstock::runtime::tuning
