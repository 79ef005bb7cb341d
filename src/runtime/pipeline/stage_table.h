// StageTable: the stages of a pipeline: what each calls or launches, on which devices, and which run queue begins what.
// It is constant once made.
//
// Ownership: shares the executables; owns the device memory of links between executables of one stage. The callables go
//            with DropCallables.
// Threads:   thread-safe once made; DropCallables when nothing is inside the pipeline any more.
// Errors:    Create: InvalidArgument for stages that do not go together; what allocating links returns.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/pipeline.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/pipeline/item.h"
#include "src/runtime/pipeline/utilization.h"

namespace penstock::runtime {

// Of each slot of a device's executable: the memory of each link.
using DeviceSlotsMemory = std::vector<std::vector<std::shared_ptr<void>>>;

// One executable of a stage, or of several that are launched together, each after the one before.
struct StageExecutable {
  std::string prefix;  // of what is said of it
  detail::StageFunction call;
  std::shared_ptr<ExecutableSet> set;
  int part;  // PipelineItem::parts
  std::vector<Link> links;  // with the executable before
  std::vector<DeviceSlotsMemory> between{};  // of those: of each member
};

// A device of a stage.
struct StageDevice {
  int stage, member;  // the index among all stages, and in the set of each executable
  int queue;  // the run queue that begins items there
  int device;
  std::string name;
  int slots;
  double weight;
};

struct Stage {
  std::string prefix;  // of what is said of it
  std::string name;
  detail::StageFunction call;  // of a host stage
  int workers = 0;  // of a host stage; 0: it is none
  std::vector<StageExecutable> executables{};  // else
  bool keeps_slots = false;  // items have their slots from beginning to end
  std::vector<int> devices{};  // StageTable::devices

  // What an item has of its first executable.
  PipelineItem::Part& PartOf(PipelineItem& item) const { return item.parts[static_cast<size_t>(executables[0].part)]; }
  bool IsKeyed() const;  // whether it has States by key
};

class StageTable {
 public:
  // Every mistake that shows in the stages alone, a line each.
  static absl::Status Check(const detail::StageList& stages);
  static absl::StatusOr<std::unique_ptr<StageTable>> Create(detail::StageList stages);

  const std::vector<Stage>& stages() const { return stages_; }
  const Stage& stage(int s) const { return stages_[static_cast<size_t>(s)]; }
  const std::vector<StageDevice>& devices() const { return devices_; }
  const StageDevice& device(int d) const { return devices_[static_cast<size_t>(d)]; }
  // The stage of each run queue.
  const std::vector<int>& queues() const { return queues_; }
  const std::shared_ptr<RuntimeCore>& runtime() const { return runtime_; }
  // Of each stage: whether its items begin in the order of their chain.
  std::vector<bool> in_order() const { return in_order_; }
  // Of each stage: whether it has States by key.
  std::vector<bool> keyed() const;
  // Twice the threads and slots of all stages.
  int64_t default_window() const;
  // What items have of executables: fresh parts, and which of them is of a graph (-1: none).
  std::vector<PipelineItem::Part> MakeParts() const;
  int PartOfGraph(uint32_t graph) const;
  // How busy the devices and threads of the stages' traces have been.
  BusyShares MakeShares() const;

  // FailedPrecondition where items cannot begin before their key is known.
  absl::Status CheckMayPull() const;
  // Which of the stages' devices the item has to be on, by its key and pin; `kept`: of stages whose slots it keeps.
  absl::Status FindDevices(PipelineItem& item, bool kept) const;
  // With nothing inside the pipeline.
  void DropCallables();

 private:
  absl::Status MakeStages(detail::StageList stages);
  absl::Status AddExecutable(detail::StageDecl decl, Stage& stage);
  absl::Status CheckExecutable(const Stage& stage, const StageExecutable& executable);
  absl::Status MakeLinks(const Stage& stage, StageExecutable& executable);
  bool IsWritten(const StateRecord* state) const;
  bool FinishStage(Stage& stage);  // whether its items begin in order

  std::vector<Stage> stages_;
  std::vector<StageDevice> devices_;
  std::vector<int> queues_;
  std::vector<bool> in_order_;
  std::shared_ptr<RuntimeCore> runtime_;
  int parts_ = 0;  // of an item
};

}  // namespace penstock::runtime
