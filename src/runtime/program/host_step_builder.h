// HostStepBuilder: lists the host steps of a Program, and what waits for them and they for.
//
// Ownership: refers to the options, the operations, the boxes and the Program, which outlive it.
// Threads:   single-threaded.
#pragma once

#include "src/runtime/program/box_builder.h"
#include "src/runtime/program/program.h"
#include "src/runtime/program/schedule_builder.h"

namespace penstock::runtime {

class HostStepBuilder {
 public:
  HostStepBuilder(const ProgramOptions& options, const NodeOps& ops, BoxBuilder& boxes, Program& program)
      : options_(options), ops_(ops), boxes_(boxes), program_(program) {}

  // Fills Program::hosts, host_waits, staged_copies, and Schedule::watched of both schedules, which must be complete.
  void AddSteps();

 private:
  HostEntry EntryOf(const graph::HostStep& step);
  int64_t BytesOf(const graph::HostStep& step, const HostEntry& entry) const;
  void FindWaits();
  void FindWatched(Schedule& schedule) const;

  const ProgramOptions& options_;
  const NodeOps& ops_;
  BoxBuilder& boxes_;
  Program& program_;
  int32_t controls_ = 0;  // constructs so far
};

}  // namespace penstock::runtime
