// The measured constants of src/host. Each line has the unit and the benchmark that moves with it (docs/howto/tune.md
// says how to compare).
//
// Threads: constants.
#pragma once

#include <chrono>

namespace penstock::host {

// A thread that waits for progress (progress.h). A caller that waits for a run polls longer: a sleep ends a slice late
// or more, which shorter runs would notice. After kPollBeforeSleep it yields its core to other ready threads.
inline constexpr std::chrono::microseconds kPollBeforeSleep{200};  // us (`pipeline`)
inline constexpr std::chrono::microseconds kCallerPollBeforeSleep{5000};  // us (`pipeline`)
inline constexpr std::chrono::microseconds kSleepSlice{50};  // us (`pipeline`)

// Submission threads (submission_threads.h). A handover takes 2 us to an awake thread and 44 us to a sleeping one.
inline constexpr std::chrono::microseconds kSubmitterSpin{50};  // us after it last did something (`feeders`)
inline constexpr std::chrono::microseconds kSubmitterAwake{5000};  // us until it sleeps (`feeders`, `pipeline`)
inline constexpr std::chrono::microseconds kSubmitterAwakeWithNothing{200};  // us without clients (`pipeline`)
inline constexpr int kLooksBeforeYield = 2000;  // looks of a thread that waits for others (`feeders`)

// The hostcall poller (hostcall_poller.h), since the last hostcall.
inline constexpr std::chrono::microseconds kPollerSpin{200};  // us until it yields its core (`host_node`)
inline constexpr std::chrono::microseconds kPollerYield{5000};  // us until it naps (`host_node`)
inline constexpr std::chrono::microseconds kPollerNap{20};  // us (`host_node`)

}  // namespace penstock::host
