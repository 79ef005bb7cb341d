// Tune: a runtime for each round of a job, and the search over their settings.
#include "penstock/tune.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/environment.h"
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/tune/find_settings.h"
#include "src/tune/knobs.h"

namespace penstock {
namespace {

struct TunedRound {
  double cost = 0;  // 0: the job has no run, and says nothing
  Measurement measured;
};

absl::StatusOr<TunedRound> RunTunedRound(const TuneJob& job, const RuntimeOptions& base, const Settings& settings) {
  RuntimeOptions options = base;
  options.settings = settings;
  options.measure = true;
  PENSTOCK_ASSIGN_OR_RETURN(Runtime runtime, Runtime::Create(options));
  TunedRound round;
  PENSTOCK_RETURN_IF_ERROR(base::CatchAll("TuneJob", [&]() -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(round.cost, job(runtime));
    return absl::OkStatus();
  }));
  PENSTOCK_RETURN_IF_ERROR(runtime.Shutdown());  // waits for the last runs
  round.measured = runtime.Measured();
  if (round.cost <= 0) round.cost = round.measured.run_us;
  return round;
}

absl::Status CheckTuneOptions(const TuneJob& job, const TuneOptions& options) {
  if (!job) return absl::InvalidArgumentError("tune: the job is null; give one that can be called");
  if (!(options.budget.count() > 0)) {  // also refuses NaN
    return absl::InvalidArgumentError("tune: TuneOptions::budget is not positive; give the time that it may take");
  }
  if (!base::Variable("PENSTOCK_SETTINGS")) return absl::OkStatus();
  return absl::FailedPreconditionError("tune: PENSTOCK_SETTINGS is set, and would replace all that is tried; unset it");
}

absl::Status NothingOpen(const TuneOptions& options) {
  return options.only.empty()
             ? absl::InvalidArgumentError(
                   "tune: the job leaves no choice open; penstock/settings.h says which value of an option does")
             : absl::InvalidArgumentError(
                   "tune: TuneOptions::only names no choice that the job leaves open; penstock/settings.h lists them");
}

}  // namespace

absl::StatusOr<TuneResult> Tune(const TuneJob& job, const TuneOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(CheckTuneOptions(job, options));
  const auto begin = std::chrono::steady_clock::now();
  const auto now = [begin] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const Settings& first = options.runtime.settings;
  absl::StatusOr<TunedRound> round = RunTunedRound(job, options.runtime, first);
  if (!round.ok()) return base::Prefixed("tune", round.status());
  if (round->cost <= 0) {
    return absl::InvalidArgumentError("tune: the job has run nothing, and returned 0; return what it has cost");
  }
  const auto measure = [&](const Settings& settings) -> absl::StatusOr<double> {
    PENSTOCK_ASSIGN_OR_RETURN(const TunedRound measured, RunTunedRound(job, options.runtime, settings));
    return measured.cost;
  };
  tune::Search search{.first = first,
                      .knobs = tune::KnobsOf(round->measured.open, options.only, base::UsableProcessors()),
                      .budget_s = std::max(1e-9, options.budget.count() - now()),
                      .measure = measure,
                      .now = now,
                      .progress = options.progress};
  if (search.knobs.empty()) return NothingOpen(options);
  absl::StatusOr<TuneResult> result = tune::FindSettings(search);
  if (result.ok()) ++result->rounds;  // the one before
  return result;
}

}  // namespace penstock
