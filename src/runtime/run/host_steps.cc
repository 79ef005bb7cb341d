#include "src/runtime/run/host_steps.h"

#include <algorithm>

#include "src/runtime/calls/host_call.h"
#include "src/runtime/run/run_events.h"

namespace penstock::runtime {
namespace {

// Limits how many waiting tasks may be found running elsewhere before a check ends. Runs of one executable begin their
// nodes in one order, and at most as many run at the same time as there are workers; so tasks further back have yet to
// run there, too.
constexpr int kMostRefused = 128;

}  // namespace

HostSteps::HostSteps(const RunContext& context, RunSlot& slot, Owner& run, int workers)
    : context_(context), slot_(slot), run_(run), pool_(context.runtime->workers()), workers_(workers) {}

bool HostSteps::Start() {
  if (slot_.fault.failed()) {
    SkipAll();
    return false;
  }
  HostProgress& hosts = slot_.hosts;
  bool moved = false;
  for (int32_t task = hosts.TakeFresh(); task >= 0; task = hosts.TakeFresh()) {
    if (TaskIsNoop(task)) {
      SetStates(task, HostStepState::kDone);
      for (int32_t s = task; s < EndOfTask(task); ++s) hosts.Settle(s);
    } else if (context_.graph.program().hosts[task].runs_inline && StreamIsDone()) {
      RunSteps(task);
      hosts.TakeEnded();
    } else {
      hosts.Keep(task);
      continue;
    }
    moved = true;
  }
  if (!hosts.keeps() || !StreamIsDone()) return moved || slot_.fault.failed();
  hosts.BeginKept(kMostRefused, [this](int32_t task) {
    if (!context_.graph.EnterGate(context_.graph.plan().host_steps[task].node)) return false;
    StartTask(task);  // its end requests another look
    return true;
  });
  return moved;
}

void HostSteps::LookAtEvents() {
  slot_.hosts.LookAtEvents(slot_.progress.next_segment, [this](int32_t event) {
    if (slot_.fault.failed()) return false;
    const absl::StatusOr<bool> complete = IsComplete(context_, slot_, event);
    if (!complete.ok()) slot_.fault.Fail(-1, complete.status());
    return complete.ok() && *complete;
  });
}

bool HostSteps::Settled() {
  slot_.hosts.TakeEnded();
  return slot_.hosts.all_settled();
}

void HostSteps::SkipAll() {
  HostProgress& hosts = slot_.hosts;
  if (hosts.skips()) return;
  hosts.SkipAll();
  for (size_t s = 0; s < slot_.host_states.size(); ++s) {
    if (slot_.host_states[s].load(std::memory_order_acquire) != HostStepState::kWaiting) continue;
    slot_.host_states[s].store(HostStepState::kSkipped, std::memory_order_release);
    hosts.Skip(!slot_.tables.is_noop[s]);
  }
}

int32_t HostSteps::EndOfTask(int32_t first) const { return first + context_.graph.program().hosts[first].steps; }

void HostSteps::SetStates(int32_t first, HostStepState state) {
  for (int32_t s = first; s < EndOfTask(first); ++s) {
    slot_.host_states[s].store(state, std::memory_order_release);
  }
}

bool HostSteps::TaskIsNoop(int32_t first) const {
  const auto noop = slot_.tables.is_noop.begin();
  return std::all_of(noop + first, noop + EndOfTask(first), [](bool is_noop) { return is_noop; });
}

// Nothing else orders host steps after the application's stream: there may be no device work before them.
bool HostSteps::StreamIsDone() {
  driver::Event& stream = slot_.predecessors.stream;
  if (!stream) return true;
  const absl::StatusOr<bool> complete = QueryEvent(context_, stream);
  if (!complete.ok()) slot_.fault.Fail(-1, complete.status());
  if (!complete.ok() || !*complete) return false;
  stream = {};
  return true;
}

void HostSteps::StartTask(int32_t first) {
  SetStates(first, HostStepState::kRunning);
  run_.Ref();
  const HostEntry& entry = context_.graph.program().hosts[first];
  if (entry.ring >= 0) return PostStagedCopy(first);
  if (entry.control >= 0) return slot_.controls[entry.control]->Begin(&HostSteps::EndControl, this, first);
  pool_.Post({.run = &HostSteps::RunTask, .context = this, .arg = first, .resumes = true}, workers_);
}

// The slot and the executable stay while a step is running: the machine does not complete before it has settled.
void HostSteps::RunTask(void* self, int64_t task) {
  HostSteps& steps = *static_cast<HostSteps*>(self);
  Owner& run = steps.run_;
  steps.RunSteps(static_cast<int32_t>(task));
  run.OnHostStepsEnded();
  run.Unref();
}

void HostSteps::RunSteps(int32_t first) {
  const int32_t end = EndOfTask(first);
  for (int32_t s = first; s < end; ++s) {
    const bool skip = slot_.fault.failed();
    if (!skip && !slot_.tables.is_noop[s]) RunHostStep(context_.graph, slot_, s, slot_.progress.serial);
    EndStep(s, skip ? HostStepState::kSkipped : HostStepState::kDone);
  }
}

void HostSteps::PostStagedCopy(int32_t step) {
  const int32_t ring = context_.graph.program().hosts[step].ring;
  memory::StagedCopy& copy = slot_.staged[ring];
  copy.op = slot_.tables.host_copies[step];
  copy.device = std::max(copy.op.dst_device, copy.op.src_device);
  copy.done = &HostSteps::EndStagedCopy;
  copy.context = this;
  copy.arg = step;
  context_.trace.BeginStagedCopy(slot_, ring);
  context_.staging->Post(copy);
}

// Called by a thread of the ring, which all other copies wait for; a worker does what follows, since that may call user
// code.
void HostSteps::EndStagedCopy(void* self, int64_t copied) {
  HostSteps& steps = *static_cast<HostSteps*>(self);
  const auto step = static_cast<int32_t>(copied);
  steps.context_.trace.RecordStagedCopy(steps.slot_, step, steps.slot_.progress.serial);
  steps.EndElsewhere(step);
}

void HostSteps::EndControl(void* self, int64_t step) {
  static_cast<HostSteps*>(self)->EndElsewhere(static_cast<int32_t>(step));
}

void HostSteps::EndElsewhere(int32_t step) {
  EndStep(step, slot_.fault.failed() ? HostStepState::kSkipped : HostStepState::kDone);
  // The run may have ended: do not touch the slot or the executable.
  pool_.Post({&HostSteps::EndTask, this, 0}, workers_);
}

void HostSteps::EndTask(void* self, int64_t) {
  Owner& run = static_cast<HostSteps*>(self)->run_;
  run.OnHostStepsEnded();
  run.Unref();
}

// The run may be over after the last line, so a step reads its serial before.
void HostSteps::EndStep(int32_t step, HostStepState end) {
  const auto s = static_cast<size_t>(step);
  context_.graph.LeaveGate(context_.graph.plan().host_steps[s].node);
  slot_.host_states[s].store(end, std::memory_order_release);
  slot_.hosts.End(step, !slot_.tables.is_noop[s]);
}

}  // namespace penstock::runtime
