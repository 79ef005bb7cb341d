// Makes a hostcall and waits for the answer: see hostcall_slot.h. One thread.
//
// The number is the device's time, which is unique per slot. The beat is checked rarely, since it only serves when the
// host has died. A release store and acquire loads take 0.4 us less per hostcall than fences before and after. Without
// either it would take another 0.4 us less, but the callee might not see the device's earlier work. Polling with more
// threads in turn makes it slower.
#include "penstock/detail/programmatic.h"
#include "src/driver/hostcall_slot.h"

namespace penstock::driver {
namespace {

constexpr unsigned kTurnsToBeat = 256;  // each is a trip across the bus, 1 us

__device__ uint64_t Nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

}  // namespace

extern "C" __global__ void PenstockHostcall(HostcallArgs args) {
  detail::AwaitDependencies();
  HostcallSlot* const question = args.question;
  const uint64_t number = Nanoseconds() & ~kGivenUp;
  asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(&question->asked), "l"(number) : "memory");
  uint64_t beat = 0, since = number;
  for (unsigned turn = 1;; ++turn) {
    uint64_t answered;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(answered) : "l"(&question->answered) : "memory");
    if ((answered & ~kGivenUp) == number) return;
    if (turn % kTurnsToBeat != 0) continue;
    const uint64_t now = Nanoseconds(), now_beat = *static_cast<volatile uint64_t*>(&question->beat);
    if (now_beat != beat) {
      beat = now_beat;
      since = now;
    } else if (now - since > args.last_resort_ns) {
      *static_cast<volatile uint64_t*>(&question->unanswered) = number;
      return;
    }
  }
}

}  // namespace penstock::driver
