// SplitSubmission: one split range of a slot, submitted by the owner of the run with the help of feeders.
//
// Ownership: of the slot; borrows the executable, the slot and the devices' feeders.
// Threads:   Drive, Reset and done by the run's owner; inside Drive the feeders of each device call Feed.
// Ordering:  as split.h says. When Drive has returned no feeder is inside any more.
// Errors:    the first call that fails fails the run with the node it belongs to; nothing is submitted by who has seen
//            that. Nobody calls user code.
#pragma once

#include <memory>
#include <vector>

#include "src/host/feeders.h"
#include "src/runtime/program/partition.h"
#include "src/runtime/run/partition_progress.h"

namespace penstock::runtime {

class ExecutableCore;
struct Slot;

class SplitSubmission {
 public:
  SplitSubmission(ExecutableCore& core, Slot& slot, const Split& split);
  SplitSubmission(const SplitSubmission&) = delete;

  // A run begins.
  void Reset() { board_.Reset(); }
  Driven Drive();
  // How many commands of the part this run has submitted.
  int32_t done(int32_t part) const { return board_.done(part); }

 private:
  // The parts of one device, for its feeders.
  struct Group final : host::Fed {
    bool Feed() override;

    SplitSubmission* of = nullptr;
    int32_t first = 0, last = 0;
    host::Feeders* feeders = nullptr;
    bool added = false;
  };
  class Job;

  ExecutableCore& core_;
  Slot& slot_;
  PartBoard<> board_;
  std::vector<Group> groups_;  // of devices with feeders
};

}  // namespace penstock::runtime
