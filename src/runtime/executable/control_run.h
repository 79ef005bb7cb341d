// ControlRun: a construct (control.h) in one slot, driven by the host: it has the condition and the bodies run, each as
// a run of an executable of its own on memory of the construct's slot, one after the other.
//
// Ownership: belongs to the slot; holds the executables of its parts, and a slot of each.
// Threads:   see ControlStep. One thread at a time decides what runs next: whoever begins the step, then whoever sees
//            a part's run end. A part that ends while it is started is seen by the thread that starts it.
// Ordering:  a part begins when all work of the one before has ended.
// Errors:    a part's failure, with its node, becomes that of the construct's node.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/runtime/executable/part_slot.h"
#include "src/runtime/graph_exec/owner_count.h"
#include "src/runtime/run/control_step.h"
#include "src/runtime/run/run_owner.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class ControlRun final : public ControlStep, public RunOwner {
 public:
  // `node`: of the plan of `outer`, the construct's slot.
  ControlRun(RunSlot& outer, NodeId node, const CompiledControl& control);

  void Begin(void (*done)(void* context, int64_t arg), void* context, int64_t arg) override;
  NodeId node() const override { return node_; }
  absl::Status Failure() const override { return parts_.Failure(); }
  std::optional<LoopTotals> Totals() const override;
  void UseStop(const uint32_t* stop) override { parts_.UseStop(stop); }
  void OnRunEnded(RunSlot& slot) override;

 private:
  bool is_loop() const { return control_->kind == ControlKind::kWhile || control_->kind == ControlKind::kRepeat; }
  absl::Status Prepare();
  void Drive();
  PartSlot* Next();
  PartSlot* AfterCondition(int32_t word);
  void Start(PartSlot& part);
  void CountIteration();
  void CountRun();
  void Fail(const absl::Status& status);

  RunSlot& outer_;
  const NodeId node_;
  const std::shared_ptr<const graph::FoldedControl> control_;
  PartSlots parts_;

  std::atomic<int32_t> turns_{0};  // calls of Drive that have yet to be answered
  PartSlot* running_ = nullptr;  // the part that runs, or ran last; null: none has
  int64_t left_ = 0;  // iterations of a loop that may still begin
  int64_t done_iterations_ = 0;  // of this run
  std::chrono::steady_clock::time_point began_, iteration_began_;
  OwnerCount iterations_, timed_, nanos_;  // of all runs
  void (*done_)(void* context, int64_t arg) = nullptr;
  void* context_ = nullptr;
  int64_t arg_ = 0;
};

}  // namespace penstock::runtime
