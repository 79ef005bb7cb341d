#include "src/runtime/ask_board.h"

#include <new>
#include <string>
#include <utility>

#include "src/runtime/executable_core.h"
#include "src/runtime/runtime_core.h"

namespace penstock::runtime {
namespace {

uint64_t Load(uint64_t& of) { return std::atomic_ref<uint64_t>(of).load(std::memory_order_acquire); }

}  // namespace

AskBoard::AskBoard(ExecutableCore& core, Slot& slot, memory::PinnedBlock questions)
    : core_(core),
      slot_(slot),
      memory_(std::move(questions)),
      questions_(static_cast<driver::Question*>(memory_.data())),
      states_(core.program().asks.size()) {
  const size_t count = states_.size();
  for (size_t i = 0; i < count; ++i) {
    new (&questions_[i]) driver::Question();
    args_.push_back({&questions_[i], core.runtime().ask_patience_ns()});
  }
  for (driver::AskArgs& args : args_) argv_.push_back(&args);
  for (size_t i = 0; i < count; ++i) {
    const AskEntry& entry = core.program().asks[i];
    driver::KernelOp op = driver::LibraryOp(entry.code, &argv_[i], sizeof(driver::AskArgs));
    op.tag = {&slot.fault, entry.node};
    op.uses = &slot;
    ops_.push_back(op);
  }
}

void AskBoard::BeginRun(int64_t serial) {
  serial_ = serial;
  for (size_t i = 0; i < states_.size(); ++i) states_[i].number = Load(questions_[i].asked);
  core_.runtime().poller().Watch(this);
}

void AskBoard::EndRun() {
  core_.runtime().poller().Forget(this);
  ReportUnanswered();
}

// Each pending question's beat is counted up, so that the device waits on.
bool AskBoard::Look() {
  bool asked = false;
  for (size_t i = 0; i < states_.size(); ++i) {
    driver::Question& question = questions_[i];
    State& state = states_[i];
    const bool calling = state.calling.load(std::memory_order_acquire);
    if (!calling && Load(question.asked) == state.number) continue;
    const std::atomic_ref<uint64_t> beat(question.beat);
    beat.store(beat.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!calling && Begin(i)) asked = true;
  }
  return asked;
}

// False: it is being called elsewhere as often as it may be at once; the next look tries again.
bool AskBoard::Begin(size_t ask) {
  const AskEntry& entry = core_.program().asks[ask];
  const bool call = !slot_.fault.failed();
  if (call && !core_.EnterGate(entry.node)) return false;
  State& state = states_[ask];
  state.number = Load(questions_[ask].asked);
  if (!call) {
    Answer(ask);
    return true;
  }
  open_.fetch_add(1, std::memory_order_relaxed);
  state.calling.store(true, std::memory_order_relaxed);
  if (entry.inline_call) {
    CallAndAnswer(ask);
  } else {
    core_.runtime().workers().Post({&AskBoard::RunTask, this, static_cast<int64_t>(ask), true},
                                   core_.runtime().GroupOf(core_.home()));
  }
  return true;
}

void AskBoard::RunTask(void* self, int64_t ask) {
  static_cast<AskBoard*>(self)->CallAndAnswer(static_cast<size_t>(ask));
}

// Once nobody is being called the run may end, and the board with it.
void AskBoard::CallAndAnswer(size_t ask) {
  const AskEntry& entry = core_.program().asks[ask];
  core_.CallAsked(slot_, entry, serial_);
  core_.LeaveGate(entry.node);
  Answer(ask);
  RuntimeCore& runtime = core_.runtime();
  states_[ask].calling.store(false, std::memory_order_release);
  open_.fetch_sub(1, std::memory_order_release);
  runtime.bell().Ring();  // runs that wait for the gate, or whose work has ended before
}

void AskBoard::Answer(size_t ask) {
  std::atomic_ref<uint64_t>(questions_[ask].answered).store(states_[ask].number, std::memory_order_release);
}

void AskBoard::ReportUnanswered() {
  for (size_t i = 0; i < states_.size(); ++i) {
    uint64_t& unanswered = questions_[i].unanswered;
    if (Load(unanswered) == 0) continue;
    std::atomic_ref<uint64_t>(unanswered).store(0, std::memory_order_relaxed);
    slot_.fault.Fail(core_.program().asks[i].node,
                     absl::DeadlineExceededError(
                         "the device has waited for it " + std::to_string(core_.runtime().ask_patience_ns() / 1000000) +
                         " ms without a sign of the thread that answers, and has gone on without; an Inline node takes "
                         "100 us at most, so make it Infallible, or neither, where it takes longer"));
  }
}

}  // namespace penstock::runtime
