// What the probe kernels (probe_kernels.h) are launched with, and what a step computes.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/detail/decision.h"
#include "tests/conformance/driver/packed_args.h"
#include "tests/conformance/driver/probe_kernels.h"

namespace penstock::driver::conformance {

using After = std::vector<int32_t>;  // the nodes that another comes behind

inline int32_t StepOf(int32_t value, int32_t k) {
  return static_cast<int32_t>(static_cast<uint32_t>(value) * 3 + static_cast<uint32_t>(k));
}

struct Step3 : PackedArgs {
  Step3(int32_t* data, int64_t n, int32_t k) { Add(data).Add(n).Add(k); }
};
struct LatchArg : PackedArgs {
  explicit LatchArg(KernelLatch& latch) { Add(&latch); }
};
struct DecideOn : PackedArgs {
  DecideOn(ConditionalHandle handle, int32_t* number, int32_t by = 0,
           detail::DecisionKind kind = detail::DecisionKind::kPick, detail::LoopState* loop = nullptr,
           int64_t most = 0) {
    Add(handle.bits).Add(loop).Add(most).Add(kind).Add(number).Add(by);
  }
};
struct NoteArgs : PackedArgs {
  NoteArgs(const KernelLatch& latch, int32_t* out) { Add(&latch).Add(out); }
};

}  // namespace penstock::driver::conformance
