// StageTable: the stages of a pipeline: what each one calls or launches, on which devices, and which run queue begins
// what. It is constant once made.
//
// Ownership: shares the executables; owns the device memory of links between executables of one stage. DropCallables
//            destroys the callables.
// Threads:   thread-safe once made; DropCallables is called when nothing is inside the pipeline any more.
// Errors:    Create returns InvalidArgument for stages that do not fit together, or the error of allocating links.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/pipeline.h"
#include "src/base/annotate.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/pipeline/item.h"
#include "src/runtime/pipeline/utilization.h"

namespace penstock::runtime {

// For each slot of a device's executable: the memory of each link.
using DeviceSlotsMemory = std::vector<std::vector<std::shared_ptr<void>>>;

// One executable of a stage, or of several that are launched together, each after the one before.
struct StageExecutable {
  std::string prefix;  // of messages about it
  std::string name;
  detail::StageFunction call;
  std::shared_ptr<ExecutableSet> set;
  int part;  // PipelineItem::parts
  std::vector<Link> links;  // with the executable before
  std::vector<DeviceSlotsMemory> between{};  // memory of `links`, for each member
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
  std::string prefix;  // of messages about it
  std::string name;
  detail::StageFunction call;  // a host stage's function
  int workers = 0;  // a host stage's threads; 0: it is none
  std::vector<StageExecutable> executables{};  // if it is no host stage
  bool keeps_slots = false;  // items hold their slots from beginning to end
  std::vector<int> devices{};  // StageTable::devices
  base::AnnotationText annotation = nullptr;  // of a host stage

  // What an item holds of the stage's first executable.
  PipelineItem::Part& PartOf(PipelineItem& item) const { return item.parts[executables[0].part]; }
  bool IsKeyed() const;  // whether it has keyed States
};

class StageTable {
 public:
  // Every mistake that is visible in the stages alone, one on each line.
  static absl::Status Check(const detail::StageList& stages);
  static absl::StatusOr<std::unique_ptr<StageTable>> Create(detail::StageList stages);

  const std::vector<Stage>& stages() const { return stages_; }
  const Stage& stage(int s) const { return stages_[s]; }
  const std::vector<StageDevice>& devices() const { return devices_; }
  const StageDevice& device(int d) const { return devices_[d]; }
  // The stage of each run queue.
  const std::vector<int>& queues() const { return queues_; }
  const std::shared_ptr<RuntimeCore>& runtime() const { return runtime_; }
  // For each stage: whether its items begin in the order of their chain.
  std::vector<bool> in_order() const { return in_order_; }
  // For each stage: whether it has keyed States.
  std::vector<bool> keyed() const;
  // The executable of the first Run or Then with this name; null: there is none.
  std::shared_ptr<ExecutableSet> FindExecutable(std::string_view name) const;
  // The name of the first Run, by which the pipeline goes.
  std::string_view first_run() const;
  // Twice the threads and slots of all stages.
  int64_t default_window() const;
  // MakeParts: what a new item holds of executables. PartOfGraph: which of these parts is of that graph; -1: none.
  std::vector<PipelineItem::Part> MakeParts() const;
  int PartOfGraph(uint32_t graph) const;
  // How busy the devices and threads of the stages' traces have been.
  BusyShares MakeShares() const;

  // FailedPrecondition if items cannot begin before their key is known.
  absl::Status CheckMayPull() const;
  // Finds which of the stages' devices the item must be on, by key and pin: at Acquire those of stages whose slots it
  // keeps, at Submit those of all stages.
  enum class At : uint8_t { kAcquire, kSubmit };
  absl::Status FindDevices(PipelineItem& item, At at) const;
  // Nothing may be inside the pipeline.
  void DropCallables();

 private:
  absl::Status MakeStages(detail::StageList stages);
  absl::Status AddExecutable(detail::StageDecl decl, Stage& stage);
  absl::Status CheckExecutable(const Stage& stage, const StageExecutable& executable);
  absl::Status MakeLinks(const Stage& stage, StageExecutable& executable);
  bool IsWritten(const StateRecord* state) const;
  bool FinishStage(Stage& stage);  // returns whether its items begin in order

  std::vector<Stage> stages_;
  std::vector<StageDevice> devices_;
  std::vector<int> queues_;
  std::vector<bool> in_order_;
  std::shared_ptr<RuntimeCore> runtime_;
  int parts_ = 0;  // the number of an item's parts
};

}  // namespace penstock::runtime
