// Hostcalls: the questions of one slot, one for each Host node that a device asks for, and who answers them.
//
// A node's kernel asks; the poller sees it and calls the node's callable itself, or has a worker call it; then it is
// answered, whatever has come of it. A question of a run that has failed is answered without a call. One that is
// pending while the poller gives no sign for as long as the patience is given up, and fails the run.
//
// Ownership: belongs to its slot, whose operations it has; borrows the compiled graph and the runtime.
// Threads:   the poller looks; workers answer; the watchdog gives up; the rest is for whoever owns the run.
// Ordering:  what the callable did comes before what follows the node.
// Errors:    those of callables go to the slot's RunFault.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "src/driver/driver.h"
#include "src/driver/hostcall_slot.h"
#include "src/host/hostcall_poller.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class Hostcalls final : public host::HostcallPoller::Source {
 public:
  // Of the slot's Program::hostcalls, of which there are some. `questions`: memory for as many.
  Hostcalls(const CompiledGraph& graph, RuntimeCore& runtime, Slot& slot, memory::PinnedBlock questions);

  // The operation of an entry of Program::hostcalls.
  const driver::KernelOp& op(int32_t ask) const { return ops_[static_cast<size_t>(ask)]; }

  // Between them the poller looks. No work of the slot is in flight before, nor behind; the end fails the run where a
  // question was given up.
  void BeginRun(int64_t serial);
  void EndRun();
  // Whether nobody is being called.
  bool settled() const { return open_.load(std::memory_order_acquire) == 0; }

  bool Look() override;
  void Beat(const host::HostcallPoller::Sign& sign) override;
  std::string Calling() const override;

 private:
  // Of a question that has been seen, while somebody is called for it.
  struct State {
    uint64_t number = 0;  // that was asked with and seen last
    std::atomic<bool> calling{false};  // set by the poller, cleared by the answering thread, after the answer
    // The watchdog's, and once the poller watches no more, the run's owner's.
    uint64_t pending = 0, looks = 0;  // the number it waits with, and how often the poller had looked then
    std::chrono::nanoseconds waited{0};  // since
    std::string given_up{};  // why
  };

  bool IsGivenUp(size_t ask, uint64_t number) const;
  void GiveUp(size_t ask, const host::HostcallPoller::Sign& sign);
  std::string WhyNoSign(size_t ask, const host::HostcallPoller::Sign& sign) const;
  void ReportUnanswered();
  bool Begin(size_t ask);
  void CallAndAnswer(size_t ask);
  void EndCall(size_t ask);
  void Answer(size_t ask);
  static void RunTask(void* self, int64_t ask);

  const CompiledGraph& graph_;
  RuntimeCore& runtime_;
  Slot& slot_;
  const memory::PinnedBlock memory_;
  driver::HostcallSlot* const questions_;
  std::vector<driver::HostcallArgs> args_;
  std::vector<void*> argv_;
  std::vector<driver::KernelOp> ops_;
  std::vector<State> states_;
  std::atomic<int> open_{0};  // being called
  std::atomic<int32_t> inline_call_{-1};  // which ask's callable the poller is in; -1: none
  int64_t serial_ = -1;
};

}  // namespace penstock::runtime
