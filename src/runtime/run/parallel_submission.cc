#include "src/runtime/run/parallel_submission.h"

#include <algorithm>

#include "src/driver/current_device.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/program/tuning.h"
#include "src/runtime/run/run_slot.h"
#include "src/runtime/run/submitter.h"

namespace penstock::runtime {

// The state of one thread while it works on the range.
class ParallelSubmission::Job {
 public:
  explicit Job(ParallelSubmission& of)
      : submitter_(of.submitter_), slot_(of.slot_), current_(of.slot_.graph().driver()) {}
  Submitted Submit(int32_t command) { return submitter_.SubmitOfPart(slot_, command, current_); }
  bool failed() const { return slot_.fault.failed(); }

 private:
  const Submitter& submitter_;
  RunSlot& slot_;
  driver::CurrentDevice current_;
};

// Threads that contend for few commands cost more than they help, above all if the system puts one of them aside while
// it holds what the others need.
ParallelSubmission::Group::Group(ParallelSubmission* range, const LanePartition& split,
                                 const LanePartition::Group& parts)
    : SubmissionClient(std::max(
          (split.part_begin[static_cast<size_t>(parts.last)] - split.part_begin[static_cast<size_t>(parts.first)]) /
              tuning::kCommandsForEachThread,
          1)),
      of(range),
      first(parts.first),
      last(parts.last) {}

ParallelSubmission::ParallelSubmission(const Submitter& submitter, RuntimeCore& runtime, RunSlot& slot,
                                       const LanePartition& split)
    : submitter_(submitter), slot_(slot), board_(split) {
  for (const LanePartition::Group& of : split.groups) {
    host::SubmissionThreads* const submission_threads = runtime.submission().Of(of.device);
    if (submission_threads == nullptr) continue;
    groups_.emplace_back(this, split, of).submission_threads = submission_threads;
  }
}

SubmitResult ParallelSubmission::SubmitAll() {
  for (Group& group : groups_) group.added = group.submission_threads->Add(&group);
  SubmitResult driven;
  {
    Job job(*this);
    driven = board_.SubmitAll<host::SpinAndYield>(job);
  }
  for (Group& group : groups_) {
    if (group.added) group.submission_threads->Remove(&group);
  }
  return driven;
}

bool ParallelSubmission::Group::Feed() {
  bool any = false;
  Job job(*of);
  while (of->board_.SubmitOne(job, first, last)) any = true;
  return any;
}

}  // namespace penstock::runtime
