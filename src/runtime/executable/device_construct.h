// DeviceConstruct: what is common to the ways in which a device decides a construct (control.h) in one slot: by nodes
// of graphs (device_control.h), or in a resident region (resident_control.h).
//
// Ownership: belongs to the slot; holds the executables of its parts, a slot of each, the loop's memory, and a graph of
//            the construct alone for runs that are submitted on streams.
// Threads:   see GraphConstruct.
// Errors:    the driver's; a part's failure, with its node, becomes that of the construct's node.
#pragma once

#include <cstdint>
#include <memory>

#include "src/runtime/executable/loop_memory.h"
#include "src/runtime/executable/part_slot.h"
#include "src/runtime/graph_exec/graph_construct.h"

namespace penstock::runtime {

class DeviceConstruct : public GraphConstruct {
 public:
  DeviceConstruct(const DeviceConstruct&) = delete;
  DeviceConstruct& operator=(const DeviceConstruct&) = delete;
  ~DeviceConstruct() override;

  NodeId node() const final { return node_; }
  absl::Status Bind() final;
  absl::Status MakeGraph() final;
  absl::Status Launch(driver::Stream stream) final;
  absl::Status Failure() const final { return parts_.Failure(); }
  void UseStop(const uint32_t* stop) final;
  void TakeIterations(AddIterations add) final;

 protected:
  // `node`: of the plan of `outer`, the construct's slot.
  DeviceConstruct(RunSlot& outer, NodeId node, const CompiledControl& control);
  bool is_loop() const { return control_->kind == ControlKind::kWhile || control_->kind == ControlKind::kRepeat; }
  absl::Status MakeLoopMemory(bool traced);
  // A decision that no node has been given yet.
  detail::Decision DecisionOf(detail::DecisionKind kind) const;

  RunSlot& outer_;
  const NodeId node_;
  const std::shared_ptr<const graph::FoldedControl> control_;
  driver::Driver& driver_;
  const driver::DeviceRef& device_;
  PartSlots parts_;
  std::unique_ptr<LoopMemory> loop_;  // null: it is no loop
  const uint32_t* stop_ = nullptr;
  int64_t trips_ = 0;  // of a Repeat without a condition, in the slot's next run

 private:
  absl::Status BindInner();

  uint64_t bound_ = 0;  // SlotBinding::changes when the parts were bound last; 0: they never were
  driver::GraphExec alone_;
};

}  // namespace penstock::runtime
