// ModeSelection: in which mode the runs of an executable are submitted, and why not in another: what was asked for,
// what the plan allows, and under Mode::kAuto the trial that finds the faster one (mode_trial.h).
//
// Ownership: of the executable; borrows its context.
// Threads:   Compile calls the first group, before there is a run. The second group is for whoever owns the slot's run,
//            Report for anybody.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/compile_options.h"
#include "penstock/submission_report.h"
#include "src/runtime/executable/mode_trial.h"
#include "src/runtime/run/run_owner.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class ModeSelection {
 public:
  explicit ModeSelection(const RunContext& context) : context_(context) {}

  // By the options or the environment. InvalidArgument where that names no mode.
  static absl::StatusOr<Mode> Wanted(const Model& model, const CompileOptions& options);
  // The mode that runs use from now on: `wanted`, or else streams, for reasons that the report gets.
  void Choose(Mode wanted);
  Mode mode() const { return report_.mode; }
  std::vector<std::string>& notes() { return report_.notes; }
  // Graphs could not be made.
  void FallBackToStreams(const absl::Status& why);
  // All slots are made: each submits in the mode, or in turns under Mode::kAuto.
  void Start(const std::vector<std::unique_ptr<RunSlot>>& slots);

  // A run begins: chooses its mode.
  void Begin(RunSlot& slot);
  // Its arguments are bound: captures the Launch nodes whose arguments are not those they were captured with. Under
  // Mode::kAuto a failure ends the use of graphs instead of the run.
  absl::Status Prepare(RunSlot& slot);
  // It has drained.
  void End(RunSlot& slot);

  SubmissionReport Report(const std::vector<std::unique_ptr<RunSlot>>& slots) const;

 private:
  const RunContext& context_;
  SubmissionReport report_;  // except for what the slots and the trial count
  std::unique_ptr<ModeTrial> trial_;  // under Mode::kAuto, where there are graphs
};

}  // namespace penstock::runtime
