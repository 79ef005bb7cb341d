// Decision: how the kernel of a condition tells a conditional node of its graph what to do.
//
// Threads: one thread of one kernel at a time uses a conditional handle and its loop.
#pragma once

#include <cstdint>

#include "penstock/detail/host_device.h"
#include "penstock/export.h"

#if !defined(__CUDA_ARCH__)
#include <atomic>
#endif

namespace penstock::detail {

// A loop while it runs, in memory of its device.
struct LoopState {
  int64_t left = 0;  // iterations that may begin after the current one
  uint32_t stop = 0;  // not 0: none may; another kernel may set it meanwhile
  uint32_t reserved = 0;
};

enum class DecisionKind : uint32_t {
  kNone,  // there is no conditional node: the host decides
  kPick,  // of an If or a Switch: the node gets the condition's value
  kEnter,  // before a loop: it gets whether there is a first iteration, and `loop` how many may follow
  kAgain  // at the end of an iteration: it gets whether there is another one
};

// A functor that stores this for its conditional node has it at its beginning.
struct Decision {
  // The cudaGraphConditionalHandle; on host devices the address of the uint32_t that it stands for. kNone: how many
  // iterations have ended, if the condition tells it.
  uint64_t handle = 0;
  LoopState* loop = nullptr;  // of a loop
  int64_t most = 0;  // iterations; kAgain: the same as on entry, if the condition tells how many there were
  DecisionKind kind = DecisionKind::kNone;
  uint32_t reserved = 0;
};

PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline bool IsStopped(LoopState& loop) {
#if defined(__CUDA_ARCH__)
  return *static_cast<volatile uint32_t*>(&loop.stop) != 0;
#else
  return std::atomic_ref<uint32_t>(loop.stop).load(std::memory_order_relaxed) != 0;
#endif
}

PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void StopLoop(LoopState& loop, uint32_t stop) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile uint32_t*>(&loop.stop) = stop;
#else
  std::atomic_ref<uint32_t>(loop.stop).store(stop, std::memory_order_relaxed);
#endif
}

// How far a loop has come at an evaluation of its condition.
struct Evaluation {
  int64_t done;  // iterations that have ended
  int64_t left;  // iterations that may still begin
};

// Called before Decide, which goes on to the next iteration.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline Evaluation EvaluationOf(const Decision& decision) {
  int64_t done = 0;
  if (decision.kind == DecisionKind::kNone) done = static_cast<int64_t>(decision.handle);
  if (decision.kind == DecisionKind::kAgain) done = decision.most - decision.loop->left;
  return {done, decision.most - done};
}

// Tells the node. `value`: what the condition says.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void Decide(const Decision& decision, uint32_t value) {
  if (decision.kind == DecisionKind::kNone) return;
  if (decision.kind != DecisionKind::kPick) {
    LoopState& loop = *decision.loop;
    const int64_t left = decision.kind == DecisionKind::kEnter ? decision.most : loop.left;
    if (decision.kind == DecisionKind::kEnter) StopLoop(loop, 0);
    loop.left = left - 1;
    value = value != 0 && left > 0 && !IsStopped(loop) ? 1 : 0;
  }
#if defined(__CUDA_ARCH__)
  cudaGraphSetConditional(decision.handle, value);
#else
  *reinterpret_cast<uint32_t*>(decision.handle) = value;
#endif
}

}  // namespace penstock::detail
