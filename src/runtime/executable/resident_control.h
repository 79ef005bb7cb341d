// ResidentControl: a construct (control.h) in one slot whose conditions and bodies, and those of the constructs in
// them, run in one resident region: its workers decide, without a launch an iteration (resident_protocol.h).
//
// Entries of a part, regions and constructs, are done one after the other.
//
// Ownership, threads, errors: see DeviceConstruct. A construct within another is asked for its sections only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/detail/decision.h"
#include "src/driver/driver.h"
#include "src/runtime/executable/device_construct.h"
#include "src/runtime/graph_exec/resident_image.h"
#include "src/runtime/graph_exec/resident_section.h"

namespace penstock::runtime {

class ResidentControl final : public DeviceConstruct {
 public:
  static absl::StatusOr<std::unique_ptr<ResidentControl>> Create(RunSlot& outer, NodeId node,
                                                                 const CompiledControl& control);
  // Why not all that is in it can be in one region; empty: it can.
  std::string WhyNotResident() const;

  std::optional<Refusal> Capture() override { return std::nullopt; }  // it has no Launch nodes
  absl::StatusOr<NodeNumbers> AddTo(driver::Graph to, std::span<const int32_t> after) override;
  absl::Status SetExec(driver::GraphExec exec, driver::GraphExec root) override;
  void DropExec() override { exec_ = {}; }
  absl::Status Update() override;
  absl::Status Refresh(driver::Stream stream) override { return image_->Refresh(stream); }
  std::optional<LoopTotals> Totals() const override;
  std::string Note(const std::string& name) const override;
  int64_t RegionNodes() const override { return nodes_; }

 private:
  using Sections = std::vector<ResidentSection>;
  ResidentControl(RunSlot& outer, NodeId node, const CompiledControl& control);
  std::string AddKernels(const void*& kernel) const;
  // A construct within a part, which is one of these too.
  static ResidentControl& Inner(const PartSlot& part, int32_t construct) {
    return static_cast<ResidentControl&>(*part.slot().constructs[static_cast<size_t>(construct)]);
  }
  static int32_t Next(const Sections& sections) { return static_cast<int32_t>(sections.size()); }
  // `depth`: the number of loops around it in the region.
  void AppendTo(Sections& to, uint32_t depth);
  void AppendChoice(Sections& to, uint32_t depth);
  void AppendLoop(Sections& to, uint32_t depth);
  static void AppendPart(PartSlot& part, Sections& to, uint32_t depth);
  detail::Decision DecisionOf(detail::DecisionKind kind, uint32_t depth) const;
  int32_t LoopDepth() const;
  absl::Status MakeImage();
  void AddOps(const Sections& sections);
  driver::RegionOp Op(std::span<const driver::NodeOp> ops) const;
  void TakeTrips();

  const bool within_region_;  // of another construct
  detail::Decision enter_, again_;  // of a Repeat; `enter_` unless it has a condition
  std::unique_ptr<ResidentImage> image_;  // null: it is within another
  const driver::FillOp nothing_{};
  std::vector<driver::NodeOp> ops_;  // the nodes, and between some sections `nothing_`
  std::vector<driver::RegionOp::Edge> edges_;
  int64_t nodes_ = 0;
  driver::GraphExec exec_;
  int32_t number_ = -1;
  uint64_t written_ = 0;  // SlotBinding::changes when the image was written last
  const uint32_t* set_stop_ = nullptr;
};

}  // namespace penstock::runtime
