// Question: what a kernel of one thread and the host write to each other, so that work on a device waits for the host.
//
// The kernel writes a number into `asked` that it has never asked with before, and waits for the same number in
// `answered`. Until that comes whoever answers counts `beat` up now and then; where it stays the same for too long the
// kernel writes its number into `unanswered`, waits no longer, and what follows it on the device goes on. So a number
// that an earlier run left means nothing to a later one, and nothing waits for a host that has gone.
//
// Ownership: in pinned memory of whoever launches the kernel, zero at first.
// Threads:   `asked` and `unanswered` are written by the device, the others by one thread at a time of the host. All
// are
//            read and written with std::atomic_ref on the host.
// Ordering:  what the device did before it asked is visible to who reads the number; what the host did before it
//            answered, to what follows the kernel.
#pragma once

#include <cstdint>

namespace penstock::driver {

// Each side writes a line of its own, so that neither takes the other's away.
struct alignas(64) Question {
  uint64_t asked = 0, unanswered = 0, rest_of_line[6]{};
  uint64_t answered = 0, beat = 0, rest_of_other_line[6]{};
};
static_assert(sizeof(Question) == 128);

// The kernel's arguments.
struct AskArgs {
  Question* question = nullptr;
  uint64_t patience_ns = 0;  // how long `beat` may stay the same
};

}  // namespace penstock::driver
