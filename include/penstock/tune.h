// Tune: finds the settings (settings.h) with which a job is fastest on this machine, by running it again and again.
//
//   auto tuned = ps::Tune([&](ps::Runtime& runtime) -> absl::StatusOr<double> {
//     PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
//     for (int r = 0; r < 500; ++r) PS_RETURN_IF_ERROR(exec.Launch(io).status());
//     return 0;  // by the runtime's own measure
//   }, {.budget = std::chrono::minutes(2)});
//   if (tuned.ok()) PS_RETURN_IF_ERROR(tuned->settings.Write("app.settings"));
//
// Each round has a runtime of its own, since most choices are made once for a runtime or an executable. The first round
// tells which choices the program leaves open; these are tried one after the other, at first only for values that are
// far better, so that a short budget finds what gains most. The values of a choice are measured in turn, and one that
// looks better is compared with what is in use by pairs of rounds, A B B A and so on, until it is better with a
// confidence of 95 %, or is not more than 2 % better with that confidence, or cannot be told from it after 24 pairs.
// The search ends when no value of any choice is left to take, or the budget is spent.
//
// "penstock tune --exec PROGRAM" does the same with any program, without a change (docs/howto/tune.md).
//
// Threads: the job is called on the thread that calls Tune, which waits for it.
// Errors:  what the job returns in its first round, or twice in a row under the settings in use, with "tune" before it.
//          A job that fails under other settings refuses these. FailedPrecondition: PENSTOCK_SETTINGS is set, and would
//          replace what is tried. Cancelled by TuneOptions::progress. InvalidArgument: no job, a budget that is not
//          positive, or TuneOptions::only names no choice that is open.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/export.h"
#include "penstock/progress.h"
#include "penstock/runtime.h"
#include "penstock/settings.h"

namespace penstock {

// One round of the job: makes its executables, and runs as often as it takes to get warm and a few times longer.
// Returns what it cost, in any unit and above 0, or 0 for Measurement::run_us.
using TuneJob = std::function<absl::StatusOr<double>(Runtime& runtime)>;

struct TuneOptions {
  std::chrono::duration<double> budget = std::chrono::minutes(2);  // no round begins that might end after it
  RuntimeOptions runtime{};  // of each round; its settings are what the search begins with
  // Which choices to try: "slots" for those of all graphs, or a key as Settings::Set takes it. Empty: all that are
  // open.
  std::vector<std::string> only{};
  ProgressFunction progress{};  // is told before each round (progress.h); the steps are percent of the budget
};

// What became of a value that was tried.
//   kTaken       it is better with a confidence of 95 %, and stays in use until a better one is found
//   kNotTaken    it is not, or not by 2 %, or that cannot be told, or a value that looked better still was taken
//   kRefused     the job failed with it
//   kUnfinished  the budget was spent before anybody knew
enum class Verdict : uint8_t { kTaken, kNotTaken, kRefused, kUnfinished };

// What a search has found.
struct TuneResult {
  // A value of one choice, compared with what was in use.
  struct Trial {
    std::string key;  // as Settings::Set takes it
    std::string value;  // empty: as without a setting
    double ratio = 1;  // its cost over that of what was in use; below 1, it is better
    double low = 0, high = 0;  // the ratio lies between them with a confidence of 95 %; 0: not compared in pairs
    int rounds = 0;  // with the value
    Verdict verdict = Verdict::kNotTaken;  // what became of it
    std::string why{};  // the job's error, if it was refused
  };

  Settings settings{};  // the best found
  // Costs with the first settings and with these. They are compared once more at the end, three times each, and the
  // middle ones count; if these are no better then, or the job fails with them, the first settings are kept. If the
  // budget ends before that, the costs are estimates from the comparisons.
  double before = 0, after = 0;
  std::vector<Trial> tried{};  // in order
  int rounds = 0;  // of the job, in all
  std::string stopped{};  // why the search ended, a sentence
};

// Runs the job until the search ends, as said above.
PENSTOCK_EXPORT absl::StatusOr<TuneResult> Tune(const TuneJob& job, const TuneOptions& options = {});

}  // namespace penstock
