// HostcallSlot: memory through which a kernel of one thread and the host communicate, so that work on a device can
// wait for the host.
//
// The kernel writes a number that it has never used before into `asked`, and waits for the same number in `answered`.
// The host may set kGivenUp beside the number: then no answer will come, and the kernel's successors on the device go
// on without it. A number left by an earlier run thus means nothing to a later one. The host decides when no answer
// will come, since only the host can tell whether it was stopped meanwhile. As a last resort, in case the host has
// died, the kernel has a limit of its own: if `beat`, which the host increments now and then, does not change for that
// long, the kernel writes its number into `unanswered` and ends.
//
// Ownership: lies in pinned memory of the code that launches the kernel, zero at first.
// Threads:   the device writes `asked` and `unanswered`; one host thread at a time writes `beat`. The thread that
//            answers writes `answered`; a thread that gives up writes it only if it has not changed. The host reads and
//            writes all of them with std::atomic_ref.
// Ordering:  the device's work before the request is visible to the thread that reads the number; the host's work
//            before the answer is visible to the kernel's successors.
#pragma once

#include <cstdint>

namespace penstock::driver {

// Each side writes to a cache line of its own, so that neither invalidates the other's.
struct alignas(64) HostcallSlot {
  uint64_t asked = 0, unanswered = 0, rest_of_line[6]{};
  uint64_t answered = 0, beat = 0, rest_of_other_line[6]{};
};
static_assert(sizeof(HostcallSlot) == 128);

// Set in `answered` beside a number; no number contains it.
inline constexpr uint64_t kGivenUp = uint64_t{1} << 63;

// The kernel's arguments.
struct HostcallArgs {
  HostcallSlot* question = nullptr;
  uint64_t last_resort_ns = 0;  // how long `beat` may stay unchanged
};

}  // namespace penstock::driver
