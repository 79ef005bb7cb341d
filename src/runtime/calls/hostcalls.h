// Hostcalls: the hostcalls of one slot, one for each Host node that a device calls, and the threads that answer them.
//
// A node's kernel posts a hostcall. The poller sees it and calls the node's callable itself or has a worker do so; then
// the hostcall is answered, whatever the outcome. If the run has failed, it is answered without a call. A hostcall that
// stays pending for as long as the patience while the poller shows no sign of life is given up, which fails the run: at
// its end, or at once in a construct that the device decides, where a loop would go on to ask.
//
// Ownership: belongs to its slot, whose operations it uses; borrows the compiled graph and the runtime.
// Threads:   the poller looks, workers answer, the watchdog gives up; only the run's owner calls the rest.
// Ordering:  what the callable did happens before what follows the node.
// Errors:    callables' errors go to the slot's RunFault.
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
  // For the slot's Program::hostcalls, of which there is at least one. `memory`: room for that many hostcalls.
  Hostcalls(const CompiledGraph& graph, RuntimeCore& runtime, Slot& slot, memory::PinnedBlock memory);

  // The operation of an entry of Program::hostcalls.
  const driver::KernelOp& op(int32_t hostcall) const { return ops_[hostcall]; }

  // The poller looks between these two calls. No work of the slot is in flight before BeginRun or after EndRun, which
  // fails the run if a hostcall was given up.
  void BeginRun(int64_t serial);
  void EndRun();
  // Whether no callable is being called.
  bool settled() const { return open_.load(std::memory_order_acquire) == 0; }

  bool Look() override;
  void Beat(const host::HostcallPoller::Sign& sign) override;
  std::string Calling() const override;

 private:
  // A hostcall that has been seen, while a thread calls its callable.
  struct State {
    uint64_t number = 0;  // the number of the hostcall seen last
    std::atomic<bool> calling{false};  // set by the poller, cleared by the answering thread after the answer
    // Used by the watchdog, and once the poller no longer watches by the run's owner.
    uint64_t pending = 0, looks = 0;  // the number that waits, and the poller's count of looks then
    std::chrono::nanoseconds waited{0};  // since then
    std::string given_up{};  // the reason why it was given up
  };

  bool IsGivenUp(size_t hostcall, uint64_t number) const;
  void GiveUp(size_t hostcall, const host::HostcallPoller::Sign& sign);
  std::string WhyNoSign(size_t hostcall, const host::HostcallPoller::Sign& sign) const;
  void Fail(size_t hostcall, const std::string& why);
  void ReportUnanswered();
  bool Begin(size_t hostcall);
  void CallAndAnswer(size_t hostcall);
  void EndCall(size_t hostcall);
  void Answer(size_t hostcall);
  static void RunTask(void* self, int64_t hostcall);

  const CompiledGraph& graph_;
  RuntimeCore& runtime_;
  Slot& slot_;
  const memory::PinnedBlock memory_;
  driver::HostcallSlot* const calls_;
  std::vector<driver::HostcallArgs> args_;
  std::vector<void*> argv_;
  std::vector<driver::KernelOp> ops_;
  std::vector<State> states_;
  std::atomic<int> open_{0};  // hostcalls whose callables are being called
  std::atomic<int32_t> inline_call_{-1};  // the entry whose callable the poller is in; -1: none
  int64_t serial_ = -1;
  int64_t called_ = 0;  // hostcalls in this run; the poller's, and once it no longer looks the owner's
};

}  // namespace penstock::runtime
