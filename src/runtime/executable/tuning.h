// The measured constants of src/runtime/executable. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

namespace penstock::runtime::tuning {

// What the thread that submits a run spends on a node, on a wait or record of an event, and on a graph with each of its
// nodes: on an H100, where a node takes 3.1 us of a stream and 0.01 us of a graph. They decide which mode Mode::kAuto
// tries first. Benchmark: corners.
inline constexpr double kSubmitNodeUs = 3, kSubmitWaitUs = 0.5, kSubmitGraphUs = 4, kSubmitGraphNodeUs = 0.02;

}  // namespace penstock::runtime::tuning
