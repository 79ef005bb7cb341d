#include "tests/conformance/driver/probe_kernels.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "penstock/detail/decision.h"

namespace penstock::driver::conformance {
namespace {

uint32_t Load(const uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
void Store(uint32_t& word, uint32_t value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }

// A device cannot ring an event count, so both sides look again and again, letting others run in between.
template <class Done>
bool Poll(std::chrono::seconds at_most, Done done) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

template <class T>
T Arg(void* const* argv, int i) {
  return *static_cast<T*>(argv[i]);
}

// A test may look at the numbers meanwhile.
void StepRange(void* const* argv, int64_t first, int64_t end) {
  auto* const data = Arg<int32_t*>(argv, 0);
  const auto k = Arg<int32_t>(argv, 2);
  for (int64_t i = first; i < end && i < Arg<int64_t>(argv, 1); ++i) {
    const auto stepped = static_cast<int32_t>(static_cast<uint32_t>(data[i]) * 3 + static_cast<uint32_t>(k));
    std::atomic_ref(data[i]).store(stepped, std::memory_order_relaxed);
  }
}

void HoldRange(void* const* argv, int64_t /*first*/, int64_t /*end*/) {
  KernelLatch& latch = *Arg<KernelLatch*>(argv, 0);
  Store(latch.started, 1);
  if (!Poll(std::chrono::seconds(20), [&latch] { return Load(latch.open) != 0; })) Store(latch.timed_out, 1);
}

void NoteRange(void* const* argv, int64_t /*first*/, int64_t /*end*/) {
  *Arg<int32_t*>(argv, 1) = Load(Arg<const KernelLatch*>(argv, 0)->open) != 0 ? kSawOpen : kSawClosed;
}

void DecideRange(void* const* argv, int64_t /*first*/, int64_t /*end*/) {
  int32_t& number = *Arg<int32_t*>(argv, 4);
  const int32_t value = number;
  number -= Arg<int32_t>(argv, 5);
  detail::Decide({.handle = Arg<uint64_t>(argv, 0),
                  .loop = Arg<detail::LoopState*>(argv, 1),
                  .most = Arg<int64_t>(argv, 2),
                  .kind = Arg<detail::DecisionKind>(argv, 3)},
                 static_cast<uint32_t>(value));
}

}  // namespace

const ProbeKernels& HostProbes() {
  static const ProbeKernels kProbes{{&StepRange, {}}, {&HoldRange, {}}, {&NoteRange, {}}, {&DecideRange, {}}};
  return kProbes;
}

bool AwaitStarted(const KernelLatch& latch) {
  return Poll(std::chrono::seconds(60), [&latch] { return Load(latch.started) != 0; });
}

void Open(KernelLatch& latch) { Store(latch.open, 1); }

}  // namespace penstock::driver::conformance
