// DeviceControl: a construct (control.h) in one slot that the device decides: the kernel of its condition sets the
// value of a conditional node, in whose bodies the nodes of its bodies are. A loop's condition is evaluated before it
// and at the end of each iteration; a kernel in each body looks at the word by which the host ends the loop.
//
// Before a body of a conditional node CUDA takes 4 us. So a loop's body of few kernels holds several iterations:
// UnrollBody. Bodies of few kernels of an If or a Switch need no such node: SwitchBodies.
//
// Ownership, threads, errors: see DeviceConstruct.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/driver/loop_kernels.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/executable/device_construct.h"

namespace penstock::runtime {

class DeviceControl final : public DeviceConstruct {
 public:
  // `node`: of the plan of `outer`, the construct's slot.
  static absl::StatusOr<std::unique_ptr<DeviceControl>> Create(RunSlot& outer, NodeId node,
                                                               const CompiledControl& control);
  ~DeviceControl() override;

  std::optional<Refusal> Capture() override;
  absl::StatusOr<NodeNumbers> AddTo(driver::Graph to, std::span<const int32_t> after) override;
  absl::Status SetExec(driver::GraphExec exec, driver::GraphExec root) override;
  void DropExec() override;
  absl::Status Update() override;
  absl::Status Refresh(driver::Stream stream) override;
  std::optional<LoopTotals> Totals() const override;
  std::string Note(const std::string& name) const override;

 private:
  using Decision = detail::Decision;
  // The nodes that kernels of the construct switch, and what these tell.
  struct Switches {
    memory::PinnedBlock pinned;
    int32_t groups = 1;  // iterations of a loop's body, or bodies of an If or a Switch
    int32_t nodes = 0;  // of each; 0: none is switched
    std::span<uint64_t> list;  // Decision::switches, in `pinned`
  };
  // A kernel of the library with its argument.
  template <class Args>
  struct LibraryNode {
    Args args{};
    void* argv[1] = {&args};
    driver::KernelOp op;
    int32_t number = -1;
  };

  DeviceControl(RunSlot& outer, NodeId node, const CompiledControl& control);
  absl::Status MakeLoop(bool traced);
  // To decide beside the body takes no time of its own, but then the times of decisions are not those of iterations.
  bool decides_beside_body() const {
    return control_->kind == ControlKind::kRepeat && switches_.nodes == 0 && !loop_->traced();
  }
  bool picks_by_switches() const { return !is_loop() && switches_.nodes > 0; }
  absl::Status UnrollBody();
  absl::Status SwitchBodies();
  absl::Status MakeSwitches(int32_t groups, int32_t nodes, int32_t switched);
  Decision DecisionOf(uint64_t handle, detail::DecisionKind kind) const;
  std::optional<Refusal> CapturePart(const PartSlot& part) const;
  absl::Status UpdateLoop();
  template <class Args>
  void Make(LibraryNode<Args>& node, const driver::LibraryCode& code, std::span<const uint32_t> pointers) const;
  absl::StatusOr<NodeNumbers> AddSwitchedBodies(driver::Graph to, std::span<const int32_t> after);
  absl::StatusOr<NodeNumbers> AddEntry(driver::Graph to, std::span<const int32_t> after, uint64_t handle);
  absl::Status AddBody(PartSlot& part, driver::Graph to, uint64_t handle);
  absl::Status AddLoopBody(PartSlot& part, driver::Graph to, uint64_t handle);

  Switches switches_;
  LibraryNode<driver::DecideArgs> enter_, again_;  // of a Repeat; `enter_` unless it has a condition
  LibraryNode<driver::LookArgs> look_;

  std::vector<driver::Graph> body_graphs_;
  std::vector<driver::GraphExec> body_execs_;
  driver::GraphExec exec_;  // has the node `enter_`, if there is one
  int64_t set_trips_ = 0;
  const uint32_t* set_stop_ = nullptr;
};

}  // namespace penstock::runtime
