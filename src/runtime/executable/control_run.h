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
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/control/fold.h"
#include "penstock/compile_options.h"
#include "penstock/detail/bound_values.h"
#include "src/runtime/run/control_step.h"
#include "src/runtime/run/run_owner.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class ExecutableCore;

// Compiles a graph, which may have constructs: an executable for what is outside of them, and one for each condition
// and body, whose slots belong to slots of the one around it.
absl::StatusOr<std::shared_ptr<ExecutableCore>> CreateExecutable(const std::shared_ptr<RuntimeCore>& runtime,
                                                                 const Model& model, const CompileOptions& options);

class ControlRun final : public ControlStep, public RunOwner {
 public:
  // A condition or a body, in one slot.
  struct Part {
    std::shared_ptr<ExecutableCore> core;
    RunSlot* slot = nullptr;
    std::span<const graph::BoundByControl> bound{};
    const int32_t* word = nullptr;  // what its condition has written; null: there is none
    detail::BoundValues values{};
  };
  struct Parts {
    std::vector<Part> condition, bodies;
  };

  // `node`: of the plan of `outer`, the construct's slot. `control` stays.
  ControlRun(RunSlot& outer, NodeId node, std::shared_ptr<const graph::FoldedControl> control, Parts parts);

  void Begin(void (*done)(void* context, int64_t arg), void* context, int64_t arg) override;
  void OnRunEnded(RunSlot& slot) override;

 private:
  absl::Status Bind(Part& part);
  absl::Status CountTrips();
  void Drive();
  Part* Next();
  Part* AfterCondition(int32_t word);
  void Start(Part& part);
  void Fail(const absl::Status& status);

  RunSlot& outer_;
  const NodeId node_;
  const std::shared_ptr<const graph::FoldedControl> control_;
  Parts parts_;

  std::atomic<int32_t> turns_{0};  // calls of Drive that have yet to be answered
  Part* running_ = nullptr;  // the part that runs, or ran last; null: none has
  int64_t left_ = 0;  // iterations of a loop that may still begin
  void (*done_)(void* context, int64_t arg) = nullptr;
  void* context_ = nullptr;
  int64_t arg_ = 0;
};

}  // namespace penstock::runtime
