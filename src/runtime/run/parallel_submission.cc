#include "src/runtime/run/parallel_submission.h"

#include "src/driver/current_device.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

// Of one thread, while it is at work on the range.
class SplitSubmission::Job {
 public:
  explicit Job(SplitSubmission& of) : core_(of.core_), slot_(of.slot_), current_(of.core_.driver()) {}
  Submitted Submit(int32_t command) { return core_.executor().SubmitOfPart(slot_, command, current_); }
  bool failed() const { return slot_.fault.failed(); }

 private:
  ExecutableCore& core_;
  Slot& slot_;
  driver::CurrentDevice current_;
};

SplitSubmission::SplitSubmission(ExecutableCore& core, Slot& slot, const Split& split)
    : core_(core), slot_(slot), board_(split) {
  for (const Split::Group& of : split.groups) {
    host::Feeders* const feeders = core.runtime().Feeders(of.device);
    if (feeders == nullptr) continue;
    Group& group = groups_.emplace_back();
    group.of = this;
    group.first = of.first;
    group.last = of.last;
    group.feeders = feeders;
  }
}

Driven SplitSubmission::Drive() {
  for (Group& group : groups_) group.added = group.feeders->Add(&group);
  Driven driven;
  {
    Job job(*this);
    driven = board_.Drive<host::SpinAndYield>(job);
  }
  for (Group& group : groups_) {
    if (group.added) group.feeders->Remove(&group);
  }
  return driven;
}

bool SplitSubmission::Group::Feed() {
  bool any = false;
  Job job(*of);
  while (of->board_.Help(job, first, last)) any = true;
  return any;
}

}  // namespace penstock::runtime
