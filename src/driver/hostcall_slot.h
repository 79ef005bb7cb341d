// HostcallSlot: what a kernel of one thread and the host write to each other, so that work on a device waits for the
// host.
//
// The kernel writes a number into `asked` that it has never asked with before, and waits for the same number in
// `answered`. The host may answer with kGivenUp beside the number: then no answer is to come, and what follows the
// kernel on the device goes on without. So a number that an earlier run left means nothing to a later one. It is the
// host that decides when nobody will answer, since only the host can tell whether it stood still meanwhile. As a last
// resort, should the host have gone, the kernel has a limit of its own: where `beat`, which the host counts up now and
// then, stays the same for that long, the kernel writes its number into `unanswered` and ends.
//
// Ownership: in pinned memory of whoever launches the kernel, zero at first.
// Threads:   `asked` and `unanswered` are written by the device, `beat` by one thread at a time of the host; `answered`
//            by whoever answers, and by who gives up only where it is still as it was. All are read and written with
//            std::atomic_ref on the host.
// Ordering:  what the device did before it asked is visible to who reads the number; what the host did before it
//            answered, to what follows the kernel.
#pragma once

#include <cstdint>

namespace penstock::driver {

// Each side writes a line of its own, so that neither takes the other's away.
struct alignas(64) HostcallSlot {
  uint64_t asked = 0, unanswered = 0, rest_of_line[6]{};
  uint64_t answered = 0, beat = 0, rest_of_other_line[6]{};
};
static_assert(sizeof(HostcallSlot) == 128);

// In `answered`, beside a number; no number has it.
inline constexpr uint64_t kGivenUp = uint64_t{1} << 63;

// The kernel's arguments.
struct HostcallArgs {
  HostcallSlot* question = nullptr;
  uint64_t last_resort_ns = 0;  // how long `beat` may stay the same
};

}  // namespace penstock::driver
