// The library's kernels of one block that a loop in a graph consists of besides its body, and their arguments.
//
// Ownership: `state` is device memory and `stop` pinned memory of the code that launches the kernels.
// Ordering:  a look may run beside all other nodes of an iteration: what it finds counts from this iteration's end or
//            the next one's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/detail/decision.h"

namespace penstock::driver {

// Decides without a condition, for loops of a known number of iterations.
struct DecideArgs {
  detail::Decision decision{};
};

// Takes what the host has written into `stop` over to the loop.
struct LookArgs {
  detail::LoopState* state = nullptr;
  const uint32_t* stop = nullptr;  // written by the host at any time
};

// Where their pointers are (KernelOp::pointer_offsets).
inline constexpr uint32_t kDecidePointers[] = {offsetof(DecideArgs, decision) + offsetof(detail::Decision, loop),
                                               offsetof(DecideArgs, decision) + offsetof(detail::Decision, switches),
                                               offsetof(DecideArgs, decision) + offsetof(detail::Decision, record)};
inline constexpr uint32_t kLookPointers[] = {offsetof(LookArgs, state), offsetof(LookArgs, stop)};

}  // namespace penstock::driver
