// Decision: how the kernel of a condition tells a conditional node of its graph what to do.
//
// The body of a loop may be unrolled: it then holds several iterations, one after the other. Where the loop ends in the
// middle of a body, the kernel that finds that out switches off the nodes of the iterations that are left, so that they
// do nothing; the loop's next beginning switches them on again. The first iteration is never switched off: a body runs
// only if it has one.
//
// Bodies of few kernels of an If or a Switch need no conditional node: they stand in the graph side by side, and the
// condition's kernel switches on the nodes of the one that it picks, and off all others.
//
// Threads: one kernel at a time uses a conditional handle and its loop. One of its threads decides; all of them, or
//          that one, may then switch nodes.
#pragma once

#include <cstdint>

#include "penstock/detail/host_device.h"
#include "penstock/export.h"

#if !defined(__CUDA_ARCH__)
#include <atomic>
#include <chrono>
#endif

namespace penstock::detail {

// What the host learns of a loop. The first three count the runs of it that have ended.
struct LoopRecord {
  int64_t iterations = 0;
  int64_t runs = 0;  // that had an iteration
  int64_t nanos = 0;  // from the loop's beginning to its last decision
  int64_t marks = 0;  // written so far, the run that is at work included
};

// A time at which a loop decided, by its device's clock.
struct LoopMark {
  uint64_t nanos = 0;
  int64_t done = 0;  // iterations of this run that had ended then
};

// A loop while it runs, in memory of its device.
struct LoopState {
  int64_t most = 0;  // iterations that may begin in all
  int64_t left = 0;  // of these, after the current ones
  LoopRecord record;
  uint64_t began = 0;  // by the device's clock
  uint32_t stop = 0;  // not 0: none may; another kernel may set it meanwhile
  uint32_t at = 0;  // of kAgain: which iteration of the body is the current one
  uint32_t off = 0;  // the first iteration of the body that is switched off; 0: none is
  uint32_t reserved = 0;
};

enum class DecisionKind : uint32_t {
  kNone,  // there is no conditional node: the host decides
  kPick,  // of an If or a Switch: the node gets the condition's value
  kSwitchIf,  // there is none: the first body runs unless the value is 0, otherwise the second
  kSwitch,  // there is none: the body with this number runs
  // A loop with a condition tells the node whether there is another iteration.
  kEnter,  // before the loop
  kAgain,  // at the end of each iteration
  // The same without a condition, for a known number of iterations.
  kEnterCounted,
  kAgainCounted  // once in each body
};

// A functor that stores this for its conditional node has it at its beginning.
struct Decision {
  // The cudaGraphConditionalHandle; on host devices the address of the uint32_t that it stands for. kNone: how many
  // iterations have ended, if the condition tells it.
  uint64_t handle = 0;
  LoopState* loop = nullptr;  // of a loop
  int64_t most = 0;  // iterations; kAgain: the same as on entry, if the condition tells how many there were
  DecisionKind kind = DecisionKind::kNone;
  uint32_t unroll = 1;  // iterations of a body; kSwitchIf, kSwitch: bodies
  // In pinned memory, by which SwitchNode knows the nodes of all iterations of the body but the first, or those of all
  // bodies; 0: it is left as it is. Null: no node is switched.
  const uint64_t* switches = nullptr;
  uint32_t nodes = 0;  // of each iteration or body
  uint32_t marks = 0;  // a power of two; 0: none is written
  // In pinned memory: LoopState::record. Behind it are `marks` LoopMark, written in turn, one at each decision.
  LoopRecord* record = nullptr;
  // Not 0: the workers of a resident region obey, and there is no conditional node (resident_protocol.h). Of a loop,
  // one more than the number of loops around it in the region.
  uint64_t in_region = 0;
};

// Nodes to be switched: Decision::switches from `begin` up to `end`, on from `on_from` up to `off_from` and off
// elsewhere.
struct Switching {
  uint32_t begin, end, on_from, off_from;
};

PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline bool IsStopped(LoopState& loop) {
#if defined(__CUDA_ARCH__)
  return *static_cast<volatile uint32_t*>(&loop.stop) != 0;
#else
  return std::atomic_ref<uint32_t>(loop.stop).load(std::memory_order_relaxed) != 0;
#endif
}

// Stores what another kernel or the host may read meanwhile.
template <class T>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void Tell(T& to, T value) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile T*>(&to) = value;
#else
  std::atomic_ref<T>(to).store(value, std::memory_order_relaxed);
#endif
}

PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void StopLoop(LoopState& loop, uint32_t stop) { Tell(loop.stop, stop); }

// What a loop's state says before the condition is evaluated. Read all at once, and before what the condition reads, it
// takes no time of its own: each read takes 0.3 us.
struct Progress {
  int64_t left = 0;
  uint32_t at = 0;
  bool stopped = false;
};
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline Progress ProgressOf(const Decision& decision) {
  if (decision.kind != DecisionKind::kAgain && decision.kind != DecisionKind::kAgainCounted) return {};
  LoopState& loop = *decision.loop;
  return {loop.left, loop.at, IsStopped(loop)};
}

// How far a loop has come at an evaluation of its condition.
struct Evaluation {
  int64_t done;  // iterations that have ended
  int64_t left;  // iterations that may still begin
};

PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline Evaluation EvaluationOf(const Decision& decision,
                                                                    const Progress& progress) {
  int64_t done = 0;
  if (decision.kind == DecisionKind::kNone) done = static_cast<int64_t>(decision.handle);
  if (decision.kind == DecisionKind::kAgain) done = decision.most - progress.left;
  return {done, decision.most - done};
}

// Says that only so many iterations of the body, at least one, shall do anything, and what to switch for that. Before
// the loop, `off` may be anything, and all nodes on: at worst more is switched than need be.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline Switching KeepOn(const Decision& decision, uint32_t iterations) {
  LoopState& loop = *decision.loop;
  const uint32_t before = loop.off != 0 ? loop.off : decision.unroll;
  loop.off = iterations < decision.unroll ? iterations : 0;
  if (before == decision.unroll && loop.off == 0) return {};
  const uint32_t least = before < iterations ? before : iterations;
  return {(least - 1) * decision.nodes, (decision.unroll - 1) * decision.nodes, 0, (iterations - 1) * decision.nodes};
}

// Only this body shall run; none if there is no such body.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline Switching KeepBody(const Decision& decision, uint32_t body) {
  const uint32_t from = (body < decision.unroll ? body : decision.unroll) * decision.nodes;
  return {0, decision.unroll * decision.nodes, from, from + decision.nodes};
}

// The time by the clock of the device; its beginning is unknown.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline uint64_t DeviceNanos() {
#if defined(__CUDA_ARCH__)
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(now.count());
#endif
}

PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void Mark(const Decision& decision, int64_t done) {
  if (decision.marks == 0) return;
  int64_t& marks = decision.loop->record.marks;
  LoopMark& mark = reinterpret_cast<LoopMark*>(decision.record + 1)[marks & (int64_t{decision.marks} - 1)];
  Tell(mark.nanos, DeviceNanos());
  Tell(mark.done, done);
  Tell(decision.record->marks, ++marks);
}

// Before the loop.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void Begin(const Decision& decision) {
  LoopState& loop = *decision.loop;
  StopLoop(loop, 0);
  loop.most = decision.most;
  loop.began = DeviceNanos();
  Mark(decision, 0);
}

// The loop ends when so many iterations have not begun.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void End(const Decision& decision, int64_t left) {
  LoopState& loop = *decision.loop;
  LoopRecord& all = loop.record;
  all.iterations += loop.most - left;
  ++all.runs;
  all.nanos += static_cast<int64_t>(DeviceNanos() - loop.began);
  if (decision.record == nullptr) return;
  Tell(decision.record->iterations, all.iterations);
  Tell(decision.record->runs, all.runs);
  Tell(decision.record->nanos, all.nanos);
}

// The same as KeepOn, for the number that may still begin; 0 if the loop has ended.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline uint32_t Take(const Decision& decision, int64_t left,
                                                          Switching& switching) {
  const int64_t next = left < int64_t{decision.unroll} ? left : int64_t{decision.unroll};
  decision.loop->left = left - next;
  if (next > 0 && decision.unroll > 1) switching = KeepOn(decision, static_cast<uint32_t>(next));
  return next > 0 ? 1 : 0;
}

PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void SetConditional(uint64_t handle, uint32_t value) {
#if defined(__CUDA_ARCH__)
  cudaGraphSetConditional(handle, value);
#else
  *reinterpret_cast<uint32_t*>(handle) = value;
#endif
}

// Tells the node. `value`: what the condition says; 1 if there is none. Returns what Switch must do then.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline Switching Decide(const Decision& decision, const Progress& progress,
                                                             uint32_t value) {
  Switching switching{};
  switch (decision.kind) {
    case DecisionKind::kNone: return switching;
    case DecisionKind::kPick: break;
    case DecisionKind::kSwitchIf: return KeepBody(decision, value != 0 ? 0 : 1);
    case DecisionKind::kSwitch: return KeepBody(decision, value);
    case DecisionKind::kEnter:
      Begin(decision);
      decision.loop->left = decision.most - 1;
      decision.loop->at = 0;
      value = value != 0 && decision.most > 0 ? 1 : 0;
      if (decision.unroll > 1) switching = KeepOn(decision, decision.unroll);
      break;
    case DecisionKind::kAgain: {
      decision.loop->left = progress.left - 1;
      value = value != 0 && progress.left > 0 && !progress.stopped ? 1 : 0;
      Mark(decision, decision.most - progress.left);
      if (value == 0) End(decision, progress.left);
      if (decision.unroll == 1) break;
      const uint32_t done = progress.at + 1;
      decision.loop->at = done < decision.unroll ? done : 0;
      if (value != 0 && done < decision.unroll) return switching;  // the value is 1 already
      if (value == 0) switching = KeepOn(decision, done);
      break;
    }
    case DecisionKind::kEnterCounted:
      Begin(decision);
      value = Take(decision, decision.most, switching);
      break;
    case DecisionKind::kAgainCounted:
      value = Take(decision, progress.stopped ? 0 : progress.left, switching);
      Mark(decision, decision.loop->most - progress.left);
      if (value == 0) End(decision, progress.left);
      break;
  }
  SetConditional(decision.handle, value);
  return switching;
}

PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline Switching Decide(const Decision& decision, uint32_t value) {
  return Decide(decision, ProgressOf(decision), value);
}

// `node`: the cudaGraphDeviceNode_t; on host devices the address of a uint32_t that is 1 if the node is on.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void SwitchNode(uint64_t node, bool on) {
#if defined(__CUDA_ARCH__)
  (void)cudaGraphKernelNodeSetEnabled(reinterpret_cast<cudaGraphDeviceNode_t>(node), on);
#else
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(node)).store(on ? 1 : 0, std::memory_order_relaxed);
#endif
}

// How the code of a condition decides by the functions above; in a resident region by others (resident_cuda.h).
struct DecideByGraph {
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static Progress ProgressOf(const Decision& decision) {
    return detail::ProgressOf(decision);
  }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static Switching Decide(const Decision& decision, const Progress& progress,
                                                               uint32_t value) {
    return detail::Decide(decision, progress, value);
  }
};

// By one of `threads`. Each call takes 0.4 us on an H100.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void Switch(const Decision& decision, const Switching& what,
                                                        uint32_t thread = 0, uint32_t threads = 1) {
  if (what.begin >= what.end) return;
  for (uint32_t i = what.begin + thread; i < what.end; i += threads) {
    if (decision.switches[i] != 0) SwitchNode(decision.switches[i], i >= what.on_from && i < what.off_from);
  }
#if defined(__CUDA_ARCH__)
  __threadfence();  // a node may begin while this kernel ends
#endif
}

}  // namespace penstock::detail
