// Asks the host and waits for its answer: see hostcall_slot.h. One thread.
//
// The number is the device's time, which no two questions of one slot share. The beat is looked at seldom: it
// is for a host that has gone. A store that releases and loads that
// acquire take 0.4 us less for a question than fences before and behind; without either it would be another 0.4 us, but
// who is called might not see what the device did before. More threads that poll in turns make it slower.
#include "penstock/detail/programmatic.h"
#include "src/driver/hostcall_slot.h"

namespace penstock::driver {
namespace {

constexpr unsigned kTurnsToBeat = 256;  // each takes a trip over the bus, 1 us

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
