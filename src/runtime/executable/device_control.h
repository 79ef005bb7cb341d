// DeviceControl: a construct (control.h) in one slot that the device decides: the kernel of its condition sets the
// value of a conditional node, in whose bodies the nodes of its bodies are. A loop's condition is evaluated before it
// and at the end of each iteration; a kernel in each body looks at the word by which the host ends the loop.
//
// A body of few kernels holds several iterations (unrolled_part.h), since between two bodies CUDA takes 4 us: UnrollOf.
//
// Ownership: belongs to the slot; holds the executables of its parts, a slot of each, and the loop's state on the
//            device.
// Threads:   see GraphConstruct.
// Errors:    the driver's; a part's failure, with its node, becomes that of the construct's node.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/driver/loop_kernels.h"
#include "src/runtime/executable/part_slot.h"
#include "src/runtime/graph_exec/graph_construct.h"

namespace penstock::runtime {

class DeviceControl final : public GraphConstruct {
 public:
  // `node`: of the plan of `outer`, the construct's slot.
  static absl::StatusOr<std::unique_ptr<DeviceControl>> Create(RunSlot& outer, NodeId node,
                                                               const CompiledControl& control);
  DeviceControl(const DeviceControl&) = delete;
  DeviceControl& operator=(const DeviceControl&) = delete;
  ~DeviceControl() override;

  NodeId node() const override { return node_; }
  std::optional<Refusal> Capture() override;
  absl::StatusOr<int32_t> AddTo(driver::Graph to, std::span<const int32_t> after) override;
  absl::Status SetExec(driver::GraphExec exec, driver::GraphExec root) override;
  void DropExec() override;
  absl::Status Bind() override;
  absl::Status Update() override;
  absl::Status MakeGraph() override;
  absl::Status Launch(driver::Stream stream) override;
  absl::Status Failure() const override { return parts_.Failure(); }
  void UseStop(const uint32_t* stop) override;
  int32_t unroll() const override { return unroll_; }

 private:
  using Decision = detail::Decision;
  // A kernel of the library with its argument.
  template <class Args>
  struct LibraryNode {
    Args args{};
    void* argv[1] = {&args};
    driver::KernelOp op;
    int32_t number = -1;
  };

  DeviceControl(RunSlot& outer, NodeId node, const CompiledControl& control);
  bool is_loop() const { return control_->kind == ControlKind::kWhile || control_->kind == ControlKind::kRepeat; }
  absl::Status MakeLoop();
  absl::Status UnrollBody();
  Decision DecisionOf(uint64_t handle, detail::DecisionKind kind) const;
  std::optional<Refusal> CapturePart(const PartSlot& part) const;
  absl::Status BindInner();
  template <class Args>
  void Make(LibraryNode<Args>& node, const driver::LibraryCode& code, std::span<const uint32_t> pointers) const;
  absl::StatusOr<std::vector<int32_t>> AddEntry(driver::Graph to, std::span<const int32_t> after, uint64_t handle);
  absl::Status AddBody(PartSlot& part, driver::Graph to, uint64_t handle);
  absl::Status AddLoopBody(PartSlot& part, driver::Graph to, uint64_t handle);

  RunSlot& outer_;
  const NodeId node_;
  const std::shared_ptr<const graph::FoldedControl> control_;
  driver::Driver& driver_;
  const driver::DeviceRef& device_;
  PartSlots parts_;

  detail::LoopState* state_ = nullptr;
  int32_t unroll_ = 1;  // iterations of a body
  const uint32_t* stop_ = nullptr;
  LibraryNode<driver::DecideArgs> enter_, again_;  // of a Repeat; `enter_` unless it has a condition
  LibraryNode<driver::LookArgs> look_;
  int64_t trips_ = 0;  // of the slot's next run
  uint64_t bound_ = 0;  // SlotBinding::changes when the parts were bound last; 0: they never were

  std::vector<driver::Graph> body_graphs_;
  std::vector<driver::GraphExec> body_execs_;
  driver::GraphExec exec_;  // has the node `enter_`, if there is one
  int64_t set_trips_ = 0;
  const uint32_t* set_stop_ = nullptr;
  driver::GraphExec alone_;  // of a graph of the construct alone
};

}  // namespace penstock::runtime
