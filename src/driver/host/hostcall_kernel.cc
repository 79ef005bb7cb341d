#include "src/driver/host/hostcall_kernel.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "src/base/counted_time.h"
#include "src/driver/hostcall_slot.h"

namespace penstock::driver::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSpins = 1000;
constexpr std::chrono::microseconds kNap{20};

// Unique, as a device's time is.
uint64_t NextNumber() {
  static std::atomic<uint64_t> last{0};  // the number that was given out last
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

absl::Status Ask(void* /*callable*/, void* const* argv) {
  const HostcallArgs& args = *static_cast<const HostcallArgs*>(argv[0]);
  std::atomic_ref<uint64_t> answered(args.question->answered), beat(args.question->beat);
  const uint64_t number = NextNumber();
  std::atomic_ref<uint64_t>(args.question->asked).store(number, std::memory_order_release);
  uint64_t seen = beat.load(std::memory_order_relaxed);
  base::CountedTime time(Clock::now());
  std::chrono::nanoseconds since_beat{0};
  for (int spins = 0; (answered.load(std::memory_order_acquire) & ~kGivenUp) != number; ++spins) {
    if (spins > kSpins) std::this_thread::sleep_for(kNap);
    since_beat += time.Look(Clock::now());
    if (const uint64_t now = beat.load(std::memory_order_relaxed); now != seen) {
      seen = now;
      since_beat = std::chrono::nanoseconds(0);
    } else if (since_beat > std::chrono::nanoseconds(args.last_resort_ns)) {
      std::atomic_ref<uint64_t>(args.question->unanswered).store(number, std::memory_order_release);
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::driver::host
