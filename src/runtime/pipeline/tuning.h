// The measured thresholds of src/runtime/pipeline. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

#include <chrono>

namespace penstock::runtime::tuning {

// How long submission threads stay called after nothing is in flight any more. Benchmark: pipeline.
inline constexpr std::chrono::milliseconds kCalledFor{5};
// How often a submission thread checks a queue that others advance. Benchmark: pipeline.
inline constexpr std::chrono::microseconds kLookEvery{5};
// How long nothing has moved in a queue before a submission thread takes it over. Benchmark: pipeline.
inline constexpr std::chrono::microseconds kStaleForSubmissionThreads{30};
// The same if another submission thread has taken over the queue. Benchmark: pipeline.
inline constexpr std::chrono::milliseconds kStaleForOthers{1};
// The interval between moves below which sleeping submission threads are woken. Benchmark: pipeline.
inline constexpr std::chrono::milliseconds kMovesOften{1};
// How often a polling thread polls, and how long nothing has moved in a queue before it does so for others. Benchmark:
// pipeline.
inline constexpr std::chrono::microseconds kPollEvery{1}, kStaleForPolls{20};
// How often a polling thread advances the rest. Benchmark: pipeline.
inline constexpr std::chrono::milliseconds kAdvanceEvery{1};
// How often the completion thread checks a busy pipeline. Benchmark: pipeline.
inline constexpr std::chrono::milliseconds kLookAfter{1};
// How long the completion thread keeps polling after runs last came to be in flight, even if none are left, so that it
// need not be woken for each item of a stream with pauses. Benchmark: pipeline.
inline constexpr std::chrono::milliseconds kLinger{100};
// A launch that takes longer is slow, and submission threads launch instead. Benchmark: many_gpus.
inline constexpr std::chrono::nanoseconds kSlow = std::chrono::microseconds(20);
// What is left to submission threads for longer begins elsewhere; waking a thread takes 50 us. Benchmark: many_gpus.
inline constexpr std::chrono::nanoseconds kTooLong = std::chrono::microseconds(200);
// How soon a submission thread looks again at items for which other devices were better: a fraction of a launch's
// duration, within these limits. Benchmark: many_gpus.
inline constexpr int kLooksALaunch = 16;
inline constexpr std::chrono::nanoseconds kSoonest = std::chrono::microseconds(10);
inline constexpr std::chrono::nanoseconds kLatest = std::chrono::microseconds(100);

}  // namespace penstock::runtime::tuning
