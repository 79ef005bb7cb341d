// ParallelSubmission: one partitioned range of a slot, submitted by the run's owner and submission threads.
//
// Ownership: belongs to the slot; borrows the submitter, the slot and the devices' submission threads.
// Threads:   the run's owner calls SubmitAll, Reset and done; during SubmitAll the devices' submission threads call
//            Feed.
// Ordering:  see partition.h. When SubmitAll has returned, no submission thread is inside any more.
// Errors:    the first call that fails fails the run with its node; a thread that has seen that submits nothing more.
//            No user code is called.
#pragma once

#include <memory>
#include <vector>

#include "src/host/submission_threads.h"
#include "src/runtime/program/partition.h"
#include "src/runtime/run/partition_progress.h"

namespace penstock::runtime {

struct RunSlot;
class RuntimeCore;
class Submitter;

class ParallelSubmission {
 public:
  ParallelSubmission(const Submitter& submitter, RuntimeCore& runtime, RunSlot& slot, const LanePartition& split);
  ParallelSubmission(const ParallelSubmission&) = delete;

  // Begins a run.
  void Reset() { board_.Reset(); }
  SubmitResult SubmitAll();
  // How many commands of the part this run has submitted.
  int32_t done(int32_t part) const { return board_.done(part); }

 private:
  // The parts of one device, for its submission threads.
  struct Group final : host::SubmissionClient {
    Group(ParallelSubmission* range, const LanePartition& split, const LanePartition::Group& parts);
    bool Feed() override;

    ParallelSubmission* const of;
    const int32_t first, last;
    host::SubmissionThreads* submission_threads = nullptr;
    bool added = false;
  };
  class Job;

  const Submitter& submitter_;
  RunSlot& slot_;
  PartitionProgress<> board_;
  std::vector<Group> groups_;  // one for each device with submission threads
};

}  // namespace penstock::runtime
