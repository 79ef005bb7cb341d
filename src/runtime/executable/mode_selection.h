// ModeSelection: in which mode the runs of an executable are submitted, and why not in another: the requested mode,
// what the plan allows, and under Mode::kAuto the trial that finds the faster one (mode_trial.h).
//
// Ownership: belongs to the executable; borrows its context.
// Threads:   Compile calls the first group, before there is a run. The owner of the slot's run calls the second group;
//            any thread may call Decide and Report.
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

  // The mode set by the options or the environment. InvalidArgument if that names no mode.
  static absl::StatusOr<Mode> Wanted(const Model& model, const CompileOptions& options);
  // Sets the mode that runs use from now on: `wanted`, or streams for reasons that go into the report.
  void Choose(Mode wanted);
  // All runs are submitted as graphs, whatever speaks against it.
  void ChooseGraph() { report_.mode = Mode::kGraph; }
  Mode mode() const { return report_.mode; }
  std::vector<std::string>& notes() { return report_.notes; }
  std::vector<SubmissionReport::Fused>& fused() { return report_.fused; }
  // Graphs could not be made.
  void FallBackToStreams(const absl::Status& why);
  // The mode that Mode::kAuto begins with, and with a trace keeps.
  void SetLikely(Mode mode);
  // All slots are made: sets each to submit in the mode, or under Mode::kAuto as the trial decides.
  void Start(const std::vector<std::unique_ptr<RunSlot>>& slots);

  // Chooses the mode of a run that begins.
  void Begin(RunSlot& slot);
  // Called when the run's arguments are bound: captures the Launch nodes whose arguments differ from those they were
  // captured with. Under Mode::kAuto a failure ends the use of graphs instead of failing the run.
  absl::Status Prepare(RunSlot& slot);
  // The run has drained.
  void End(RunSlot& slot);

  // Ends a trial with what it has found so far. Returns the mode of later runs. Called by any thread.
  Mode Decide();
  SubmissionReport Report(const std::vector<std::unique_ptr<RunSlot>>& slots) const;

 private:
  const RunContext& context_;
  SubmissionReport report_;  // without what the slots and the trial count
  Mode likely_ = Mode::kStream;
  std::unique_ptr<ModeTrial> trial_;  // under Mode::kAuto, if there are graphs
};

}  // namespace penstock::runtime
