// PartitionProgress: how far each part of a partitioned range has been submitted in a run, and which are being worked
// on.
//
// A thread takes, of the parts that are free and can proceed, the one whose next command comes first in the plan,
// submits this command, and releases the part. Thus the device gets nearly plan order with any number of threads, which
// matters where streams share a hardware queue: what is queued there for one of them holds up the other's (decision
// 081). The run's owner works until everything has been submitted or nothing can proceed; others help as they come, and
// no thread waits for one that is not at work.
//
// The work is submitted by a Job:
//   Submitted Submit(int32_t command)   one command of the schedule: done, its lane is full, or the run has failed
//   bool failed()                       whether the run has failed; then nothing more is submitted
//
// Threads:  Reset is called before the range is opened to other threads. Any thread may call the rest, as far as the
//           job allows; SubmitAll only one at a time.
// Ordering: what was done for a part is visible to the thread that takes it next; what was done for a command, to the
//           thread that continues after a wait for it; all of it, to the caller of SubmitAll when that returns kAll.
// Errors:   none of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/runtime/program/partition.h"

namespace penstock::runtime {

enum class Submitted : uint8_t { kDone, kFull, kFailed };

// The result of SubmitAll: everything is submitted, lanes are full (another call may continue), or the run has failed.
enum class SubmitResult : uint8_t { kAll, kFull, kFailed };

// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class PartitionProgress {
 public:
  explicit PartitionProgress(const LanePartition& split) : split_(&split), parts_(static_cast<size_t>(split.parts())) {}

  // Nothing has been submitted.
  void Reset() {
    for (Part& state : parts_) {
      state.done.store(0, std::memory_order_relaxed);
      state.full.store(false, std::memory_order_relaxed);
    }
  }
  // How many commands of the part have been submitted.
  int32_t done(int32_t part) const { return Of(part).done.load(std::memory_order_acquire); }

  // Submits a command of one of the parts [first, last), if one can proceed. Returns whether it did.
  template <class Job>
  bool SubmitOne(Job& job, int32_t first, int32_t last) {
    for (;;) {
      const int32_t part = Choose(first, last);
      if (part < 0) return false;
      const Submitted submitted = Work(job, part);
      if (submitted != Submitted::kFull) return submitted == Submitted::kDone;
    }
  }

  // Works on all parts as long as any can proceed. `Wait` is how it waits for threads that work on the others.
  template <class Wait, class Job>
  SubmitResult SubmitAll(Job& job) {
    Wait wait;
    for (;;) {
      wait.Look();
      if (job.failed()) return SubmitResult::kFailed;
      Left left;
      const bool worked = SubmitOne(job, 0, split_->parts()) || TryFull(job, left);
      if (worked) {
        wait = Wait();
      } else if (left.none) {
        return SubmitResult::kAll;
      } else if (left.full && !left.taken) {
        return job.failed() ? SubmitResult::kFailed : SubmitResult::kFull;
      } else {
        wait.Rest();
      }
    }
  }

 private:
  struct Part {
    Atomic<bool> taken{false};  // a thread works on it
    Atomic<bool> full{false};  // its lane was found full; only SubmitAll checks again
    Atomic<int32_t> done{0};  // how many of its commands have been submitted
    std::array<std::byte, 120> apart{};  // keeps it off the cache lines that other parts' threads write
  };
  // What is left: parts that a thread is working on, or whose lane has just been found full.
  struct Left {
    bool none = true, taken = false, full = false;
  };

  Part& Of(int32_t part) { return parts_[part]; }
  const Part& Of(int32_t part) const { return parts_[part]; }

  bool CanGoOn(const PartCommand& next) const { return next.after_part < 0 || done(next.after_part) > next.after; }

  // The free part whose next command comes first, among those that can proceed; -1: none.
  int32_t Choose(int32_t first, int32_t last) const {
    int32_t chosen = -1, least = INT32_MAX;
    for (int32_t p = first; p < last; ++p) {
      const std::span<const PartCommand> commands = split_->part(p);
      const auto at = static_cast<size_t>(done(p));
      if (at == commands.size() || commands[at].command >= least) continue;
      const Part& state = Of(p);
      if (state.taken.load(std::memory_order_relaxed) || state.full.load(std::memory_order_relaxed)) continue;
      if (!CanGoOn(commands[at])) continue;
      chosen = p;
      least = commands[at].command;
    }
    return chosen;
  }

  // Checks full lanes again for room. Returns whether a command was submitted.
  template <class Job>
  bool TryFull(Job& job, Left& left) {
    for (int32_t p = 0; p < split_->parts(); ++p) {
      if (static_cast<size_t>(done(p)) == split_->part(p).size()) continue;
      left.none = false;
      const Part& state = Of(p);
      if (state.taken.load(std::memory_order_relaxed)) {
        left.taken = true;
      } else if (state.full.load(std::memory_order_relaxed)) {
        if (Work(job, p) == Submitted::kDone) return true;
        left.full = left.full || state.full.load(std::memory_order_relaxed);
      }
    }
    return false;
  }

  // Submits the part's next command. kFailed, too, if a thread works on the part or has just submitted the command.
  template <class Job>
  Submitted Work(Job& job, int32_t part) {
    Part& state = Of(part);
    if (state.taken.exchange(true, std::memory_order_acquire)) return Submitted::kFailed;
    const std::span<const PartCommand> commands = split_->part(part);
    const int32_t at = state.done.load(std::memory_order_relaxed);
    const bool can = static_cast<size_t>(at) < commands.size() && CanGoOn(commands[at]);
    const Submitted submitted = can ? job.Submit(commands[at].command) : Submitted::kFailed;
    if (submitted == Submitted::kDone) state.done.store(at + 1, std::memory_order_release);
    state.full.store(submitted == Submitted::kFull, std::memory_order_relaxed);
    state.taken.store(false, std::memory_order_release);
    return submitted;
  }

  const LanePartition* split_;
  std::vector<Part> parts_;
};

}  // namespace penstock::runtime
