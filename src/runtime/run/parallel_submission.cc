#include "src/runtime/run/parallel_submission.h"

#include "src/driver/current_device.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

// Of one thread, while it is at work on the range.
class ParallelSubmission::Job {
 public:
  explicit Job(ParallelSubmission& of) : core_(of.core_), slot_(of.slot_), current_(of.core_.driver()) {}
  Submitted Submit(int32_t command) { return core_.executor().SubmitOfPart(slot_, command, current_); }
  bool failed() const { return slot_.fault.failed(); }

 private:
  ExecutableCore& core_;
  Slot& slot_;
  driver::CurrentDevice current_;
};

ParallelSubmission::ParallelSubmission(ExecutableCore& core, Slot& slot, const LanePartition& split)
    : core_(core), slot_(slot), board_(split) {
  for (const LanePartition::Group& of : split.groups) {
    host::SubmissionThreads* const submission_threads = core.runtime().SubmissionThreads(of.device);
    if (submission_threads == nullptr) continue;
    Group& group = groups_.emplace_back();
    group.of = this;
    group.first = of.first;
    group.last = of.last;
    group.submission_threads = submission_threads;
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
  while (of->board_.SubmitSome(job, first, last)) any = true;
  return any;
}

}  // namespace penstock::runtime
