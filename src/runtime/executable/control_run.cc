#include "src/runtime/executable/control_run.h"

#include <string>

#include "penstock/status_macros.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/run/run_trace.h"

namespace penstock::runtime {

ControlRun::ControlRun(RunSlot& outer, NodeId node, const CompiledControl& control)
    : outer_(outer), node_(node), control_(control.folded), parts_(control, outer, node) {
  parts_.ForEach([&](const PartSlot& part) { part.slot().follower = this; });
}

void ControlRun::Begin(void (*done)(void* context, int64_t arg), void* context, int64_t arg) {
  done_ = done;
  context_ = context;
  arg_ = arg;
  running_ = nullptr;
  done_iterations_ = 0;
  began_ = std::chrono::steady_clock::now();
  if (const absl::Status ready = Prepare(); !ready.ok()) Fail(ready);
  Drive();
}

// The memory of the construct's slot is where it was in the run before, unless a launch has bound other memory. So the
// values change only then.
absl::Status ControlRun::Prepare() {
  left_ = control_->max;
  if (control_->kind == ControlKind::kRepeat) {
    PENSTOCK_ASSIGN_OR_RETURN(left_, CountTrips(outer_, control_->trips));
  }
  return parts_.Try([&](PartSlot& part) { return part.SetValues(outer_, node_); });
}

void ControlRun::OnRunEnded(RunSlot&) { Drive(); }

std::optional<LoopTotals> ControlRun::Totals() const {
  if (!is_loop()) return std::nullopt;
  return LoopTotals{.iterations = iterations_.get(), .timed = timed_.get(), .nanos = nanos_.get()};
}

void ControlRun::CountIteration() {
  ++iterations_;
  ++done_iterations_;
  Trace* const trace = outer_.graph().trace().get();
  if (trace == nullptr) return;
  trace->Add({.name = IterationName(control_->name.view(), done_iterations_ - 1, 1),
              .track = "loop " + std::string(control_->name.view()) + " slot " + std::to_string(outer_.index),
              .begin_us = trace->ToMicros(iteration_began_),
              .end_us = trace->Now(),
              .run = outer_.progress.serial,
              .executable = outer_.graph().number(),
              .node = node_,
              .slot = outer_.index});
}

void ControlRun::CountRun() {
  if (done_iterations_ == 0) return;
  timed_ += done_iterations_;
  nanos_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - began_).count();
}

// Whoever finds a call unanswered goes on with it: a part that ends at once must not be followed by a deeper call.
void ControlRun::Drive() {
  if (turns_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  do {
    PartSlot* const next = Next();
    if (next == nullptr) {
      CountRun();
      turns_.store(0, std::memory_order_release);  // nothing runs, so nobody else calls
      return done_(context_, arg_);  // this may be gone now
    }
    Start(*next);
  } while (turns_.fetch_sub(1, std::memory_order_acq_rel) != 1);
}

// The part that runs next; null if the construct ends.
PartSlot* ControlRun::Next() {
  if (is_loop() && running_ != nullptr && running_ == parts_.bodies.data()) CountIteration();
  if (outer_.fault.failed()) return nullptr;
  if (running_ == nullptr && !parts_.condition.empty()) return parts_.condition.data();
  const int32_t* const word = running_ != nullptr ? running_->word() : nullptr;
  if (control_->kind == ControlKind::kRepeat) {
    if (word != nullptr) left_ = *word;
    return left_-- > 0 ? parts_.bodies.data() : nullptr;
  }
  return word != nullptr ? AfterCondition(*word) : nullptr;
}

PartSlot* ControlRun::AfterCondition(int32_t word) {
  size_t body = 0;
  switch (control_->kind) {
    case ControlKind::kIf: body = word != 0 ? 0 : 1; break;
    case ControlKind::kSwitch: body = static_cast<size_t>(static_cast<uint32_t>(word)); break;
    default:
      if (word == 0 || left_-- <= 0) return nullptr;
  }
  return body < parts_.bodies.size() ? &parts_.bodies[body] : nullptr;
}

void ControlRun::Start(PartSlot& part) {
  running_ = &part;
  iteration_began_ = std::chrono::steady_clock::now();
  if (control_->tells) part.SetDone(control_->max - left_, control_->max);
  const absl::StatusOr<Run> run =
      part.core().Start(&part.slot(), part.values(), Deadline(), ExecutableCore::Kind::kPartOfARun);
  if (run.ok()) return;  // without its handle the completion thread advances it
  Fail(run.status());
  running_ = nullptr;
  turns_.fetch_add(1, std::memory_order_acq_rel);  // there is no end to wait for
}

void ControlRun::Fail(const absl::Status& status) { outer_.fault.Fail(node_, status); }

}  // namespace penstock::runtime
