// PartSlot: a condition or a body of a construct in one slot of the graph around it, which has a slot of the part's
// executable for itself.
//
// Ownership: holds the executable, and its slot until it is destroyed.
// Threads:   used only by the owner of the slot around it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "graph/control/fold.h"
#include "penstock/detail/bound_values.h"
#include "penstock/detail/decision.h"
#include "penstock/status_macros.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class ExecutableCore;

// A part, for all slots.
struct CompiledPart {
  std::shared_ptr<ExecutableCore> core;
  const graph::FoldedPart* folded;
};
struct CompiledControl {
  std::shared_ptr<const graph::FoldedControl> folded;
  bool traced = false;  // the executable around it has a trace
  bool within_region = false;  // the construct around it is in a region, or is to be
  std::vector<CompiledPart> condition, bodies;
};

class PartSlot {
 public:
  explicit PartSlot(const CompiledPart& part);
  PartSlot(PartSlot&&) = default;
  PartSlot& operator=(PartSlot&&) = delete;
  ~PartSlot();

  // Sets `values` to what is bound in the construct's slot, and to its memory that the part uses. `node`: the
  // construct's, in the plan of that slot. What has not changed costs comparisons.
  absl::Status SetValues(const RunSlot& outer, NodeId node);

  // Writes those addresses into the slot that are known before the first launch.
  void SetKnown(const RunSlot& outer, NodeId node) const;

  ExecutableCore& core() const { return *core_; }
  RunSlot& slot() const { return *slot_; }
  const detail::BoundValues& values() const { return values_; }
  // What its condition has written, if the host reads it; null: there is none.
  const int32_t* word() const { return word_; }
  // Has the kernel of its condition tell a conditional node.
  void SetDecision(const detail::Decision& decision);
  // For the next run of a part that a host drives: how many of at most `most` iterations will have ended when its
  // condition is evaluated.
  void SetDone(int64_t done, int64_t most);

 private:
  void* functor_of_condition() const;

  std::shared_ptr<ExecutableCore> core_;
  RunSlot* slot_;
  std::span<const graph::BoundByControl> bound_;
  const int32_t* word_ = nullptr;
  CallId condition_;  // the call of its condition; none: there is none
  std::vector<uint32_t> condition_pointers_;  // KernelOp::pointer_offsets of that call with a decision
  detail::BoundValues values_;
};

// All parts of a construct in one slot. `node`: the construct's, in the plan of `outer`, whose run fails with a part.
struct PartSlots {
  PartSlots(const CompiledControl& control, RunSlot& outer, NodeId node);

  template <class F>
  void ForEach(F f) const {
    for (const PartSlot& part : condition) f(part);
    for (const PartSlot& part : bodies) f(part);
  }
  // The same until a call fails, whose Status it returns.
  template <class F>
  absl::Status Try(F f) {
    for (PartSlot& part : condition) PENSTOCK_RETURN_IF_ERROR(f(part));
    for (PartSlot& part : bodies) PENSTOCK_RETURN_IF_ERROR(f(part));
    return absl::OkStatus();
  }
  // As in ControlStep and GraphConstruct.
  absl::Status Failure() const;
  void UseStop(const uint32_t* stop) const;

  std::vector<PartSlot> condition, bodies;
};

// The number of iterations of a Repeat in this run; InvalidArgument if it is negative.
absl::StatusOr<int64_t> CountTrips(const RunSlot& outer, const Dim& trips);

}  // namespace penstock::runtime
