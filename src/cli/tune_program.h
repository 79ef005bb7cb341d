// ProgramRounds: runs a program again and again under settings, and measures it.
//
// Each round is a process with PENSTOCK_SETTINGS and PENSTOCK_MEASURE, in a temporary folder. What it prints is kept
// until the next one, and shown only if it fails. Processes that it starts measure in files of their own: its own
// counts, or if it has none, that of the only other process with one.
//
// Threads: one thread.
// Errors:  RunProgram's, with the end of what the program has printed. FailedPrecondition: it has ended well and has
//          measured nothing, or several other processes have and it has not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/measurement.h"
#include "penstock/settings.h"
#include "src/cli/run_program.h"

namespace penstock::cli {

// What a round costs: the pace of its runs, without its start, or all that it takes.
enum class RoundCost : uint8_t { kRuns, kWall };

class ProgramRounds {
 public:
  // The signals must outlive it.
  static absl::StatusOr<ProgramRounds> Make(const ProgramSignals& signals, std::vector<std::string> command,
                                            RoundCost cost);

  // The first round, with `settings`; tells which choices are open.
  absl::StatusOr<Measurement> First(const Settings& settings);
  // Any later one, which may take several times as long as the first. Returns its cost in microseconds.
  absl::StatusOr<double> Run(const Settings& settings);
  // Whether the program made several runtimes in the last round that ended well; only the first of them is measured.
  bool several() const { return several_; }

 private:
  ProgramRounds(const ProgramSignals& signals, ScratchFolder folder, std::vector<std::string> command, RoundCost cost)
      : signals_(&signals), folder_(std::move(folder)), command_(std::move(command)), cost_(cost) {}
  absl::StatusOr<Measurement> RunOnce(const Settings& settings);
  // Of a round's files, which begin with `begin`.
  absl::StatusOr<std::string> MeasuredBy(pid_t program, const std::string& begin) const;
  absl::StatusOr<Measurement> ReadMeasurement(pid_t program, const std::string& begin);
  absl::Status WithOutput(const absl::Status& status) const;
  std::string File(const std::string& name) const { return folder_.path() + "/" + name; }

  const ProgramSignals* signals_;
  ScratchFolder folder_;
  std::vector<std::string> command_;
  RoundCost cost_;
  int rounds_ = 0;
  double wall_s_ = 0;  // of the last round
  double most_s_ = 0;  // 0: no limit
  bool several_ = false;
};

}  // namespace penstock::cli
