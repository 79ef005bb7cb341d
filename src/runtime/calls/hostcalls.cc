#include "src/runtime/calls/hostcalls.h"

#include <new>
#include <string>
#include <utility>

#include "src/base/catch_all.h"
#include "src/runtime/calls/host_call.h"

namespace penstock::runtime {
namespace {

using driver::kGivenUp;

constexpr std::chrono::minutes kLastResort{10};  // a device gives up after this; the process may have been stopped

uint64_t Load(uint64_t& of) { return std::atomic_ref<uint64_t>(of).load(std::memory_order_acquire); }

std::string Ms(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
}

}  // namespace

Hostcalls::Hostcalls(const CompiledGraph& graph, RuntimeCore& runtime, Slot& slot, memory::PinnedBlock questions)
    : graph_(graph),
      runtime_(runtime),
      slot_(slot),
      memory_(std::move(questions)),
      calls_(static_cast<driver::HostcallSlot*>(memory_.data())),
      states_(graph.program().hostcalls.size()) {
  const size_t count = states_.size();
  for (size_t i = 0; i < count; ++i) {
    new (&calls_[i]) driver::HostcallSlot();
    args_.push_back({&calls_[i], static_cast<uint64_t>(std::chrono::nanoseconds(kLastResort).count())});
  }
  for (driver::HostcallArgs& args : args_) argv_.push_back(&args);
  for (size_t i = 0; i < count; ++i) {
    const HostcallEntry& entry = graph.program().hostcalls[i];
    driver::KernelOp op = driver::LibraryOp(entry.code, &argv_[i], sizeof(driver::HostcallArgs));
    op.tag = {&slot.fault, entry.node};
    op.uses = &slot;
    ops_.push_back(op);
  }
}

void Hostcalls::BeginRun(int64_t serial) {
  serial_ = serial;
  for (size_t i = 0; i < states_.size(); ++i) states_[i].number = Load(calls_[i].asked);
  runtime_.hostcalls().poller().Watch(this);
}

void Hostcalls::EndRun() {
  runtime_.hostcalls().poller().Forget(this);
  runtime_.observed().counts.hostcalls += std::exchange(called_, 0);
  ReportUnanswered();
}

bool Hostcalls::Look() {
  bool asked = false;
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    if (state.calling.load(std::memory_order_acquire) || Load(calls_[i].asked) == state.number) continue;
    if (Begin(i)) asked = true;
  }
  return asked;
}

// A callable may take any time on a worker; only what the poller leaves undone is given up. A hostcall waits while the
// poller has not looked since it was first seen pending.
void Hostcalls::Beat(const host::HostcallPoller::Sign& sign) {
  for (size_t i = 0; i < states_.size(); ++i) {
    driver::HostcallSlot& call = calls_[i];
    State& state = states_[i];
    const uint64_t asked = Load(call.asked);
    if ((Load(call.answered) & ~kGivenUp) == asked) continue;
    const std::atomic_ref<uint64_t> beat(call.beat);
    beat.store(beat.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const bool on_worker = state.calling.load(std::memory_order_acquire) && !graph_.program().hostcalls[i].inline_call;
    if (on_worker || state.pending != asked || state.looks != sign.looks) {
      state.pending = asked;
      state.looks = sign.looks;
      state.waited = std::chrono::nanoseconds(0);
      continue;
    }
    state.waited += sign.counted;
    if (state.waited > runtime_.hostcalls().patience()) GiveUp(i, sign);
  }
}

// Unless it is answered meanwhile.
void Hostcalls::GiveUp(size_t hostcall, const host::HostcallPoller::Sign& sign) {
  State& state = states_[hostcall];
  const std::atomic_ref<uint64_t> answered(calls_[hostcall].answered);
  uint64_t before = answered.load(std::memory_order_acquire);
  if (before == state.pending) return;
  std::string why = WhyNoSign(hostcall, sign);
  if (!answered.compare_exchange_strong(before, state.pending | kGivenUp, std::memory_order_acq_rel)) return;
  if (slot_.fault.is_inside()) Fail(hostcall, why);
  state.given_up = std::move(why);
}

void Hostcalls::Fail(size_t hostcall, const std::string& why) {
  slot_.fault.Fail(graph_.program().hostcalls[hostcall].node, absl::DeadlineExceededError(why));
}

std::string Hostcalls::WhyNoSign(size_t hostcall, const host::HostcallPoller::Sign& sign) const {
  const std::string time = Ms(runtime_.hostcalls().patience());
  const std::string what_to_do = "an Inline node takes 100 us at most, so make ";
  if (sign.looking_at == this && inline_call_.load(std::memory_order_relaxed) == static_cast<int32_t>(hostcall)) {
    return "its callable has kept the thread that answers devices for " + time +
           ", and the device has gone on without it; " + what_to_do +
           "it Infallible, or neither, where it takes longer";
  }
  const std::string holder = sign.looking_at == nullptr ? "" : sign.looking_at->Calling();
  if (holder.empty()) {
    return "the thread that answers devices has had no turn for " + time +
           ", and the device has gone on without it; leave this process more processor time";
  }
  return "the callable of " + holder + " has kept the thread that answers devices for " + time +
         ", and the device has gone on without this one; " + what_to_do +
         "that node Infallible, or neither, where it takes longer";
}

std::string Hostcalls::Calling() const {
  const int32_t hostcall = inline_call_.load(std::memory_order_relaxed);
  return hostcall < 0 ? "" : graph_.TextOfNode(graph_.program().hostcalls[hostcall].node);
}

bool Hostcalls::IsGivenUp(size_t hostcall, uint64_t number) const {
  return Load(calls_[hostcall].answered) == (number | kGivenUp);
}

// Returns false if the callable already runs as often as it may at once; the next look tries again.
bool Hostcalls::Begin(size_t hostcall) {
  const HostcallEntry& entry = graph_.program().hostcalls[hostcall];
  if (const uint64_t number = Load(calls_[hostcall].asked); IsGivenUp(hostcall, number)) {
    // The device has continued: the callable must not run concurrently with what follows.
    states_[hostcall].number = number;
    return false;
  }
  const bool call = !slot_.fault.failed();
  if (call && !graph_.EnterGate(entry.node)) return false;
  State& state = states_[hostcall];
  state.number = Load(calls_[hostcall].asked);
  if (!call) {
    Answer(hostcall);
    return true;
  }
  open_.fetch_add(1, std::memory_order_relaxed);
  ++called_;
  state.calling.store(true, std::memory_order_relaxed);
  if (entry.inline_call) {
    inline_call_.store(static_cast<int32_t>(hostcall), std::memory_order_relaxed);
    CallAndAnswer(hostcall);
  } else {
    runtime_.workers().Post({&Hostcalls::RunTask, this, static_cast<int64_t>(hostcall), true},
                            runtime_.GroupOf(graph_.home()));
  }
  return true;
}

void Hostcalls::RunTask(void* self, int64_t hostcall) {
  static_cast<Hostcalls*>(self)->CallAndAnswer(static_cast<size_t>(hostcall));
}

// Once no callable is running, the run may end and this object with it.
void Hostcalls::CallAndAnswer(size_t hostcall) {
  const HostcallEntry& entry = graph_.program().hostcalls[hostcall];
  base::WhenThreadEnds ended([&] { EndCall(hostcall); });
  RunHostcall(graph_, slot_, entry, serial_);
  ended.Cancel();
  EndCall(hostcall);
}

void Hostcalls::EndCall(size_t hostcall) {
  const HostcallEntry& entry = graph_.program().hostcalls[hostcall];
  graph_.LeaveGate(entry.node);
  Answer(hostcall);
  if (entry.inline_call) inline_call_.store(-1, std::memory_order_relaxed);
  RuntimeCore& runtime = runtime_;  // this may be gone after the decrement
  states_[hostcall].calling.store(false, std::memory_order_release);
  open_.fetch_sub(1, std::memory_order_release);
  runtime.event_count().Notify();  // for runs that wait for the gate, or whose work ended earlier
}

void Hostcalls::Answer(size_t hostcall) {
  std::atomic_ref<uint64_t>(calls_[hostcall].answered).store(states_[hostcall].number, std::memory_order_release);
}

// Nothing is pending any more, so from now on what was given up counts as answered.
void Hostcalls::ReportUnanswered() {
  for (size_t i = 0; i < states_.size(); ++i) {
    driver::HostcallSlot& call = calls_[i];
    std::string why = std::exchange(states_[i].given_up, {});
    if (why.empty() && Load(call.unanswered) != 0) {
      why = "the device has seen no sign of this process for " + std::to_string(kLastResort.count()) +
            " minutes and has gone on without it; launch again if the process was stopped for so long";
    }
    std::atomic_ref<uint64_t>(call.unanswered).store(0, std::memory_order_relaxed);
    std::atomic_ref<uint64_t>(call.answered).store(Load(call.asked), std::memory_order_relaxed);
    if (!why.empty()) Fail(i, why);
  }
}

}  // namespace penstock::runtime
