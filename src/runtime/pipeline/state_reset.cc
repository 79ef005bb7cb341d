#include "src/runtime/pipeline/state_reset.h"

#include <system_error>

#include "absl/strings/str_cat.h"
#include "src/base/catch_all.h"
#include "src/base/status.h"
#include "src/base/thread.h"
#include "src/base/user_code.h"
#include "src/runtime/pipeline/waiting.h"

namespace penstock::runtime {

absl::Status StateReset::Start() {
  if (!state_.options().reset && !state_.options().progress) return absl::OkStatus();
  try {
    thread_ = base::StartThread("ps-pipeline", [this] { Serve(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pipeline: the system refuses its threads: ", error.what(), "; ask for fewer workers"));
  }
  return absl::OkStatus();
}

void StateReset::Join() {
  if (thread_.joinable()) thread_.join();
}

bool StateReset::MayReset() const {
  return state_.ending.with.ok() && state_.poisoned.MayReset([&](int stage) {
    state_.mu.AssertHeld();
    int64_t working = 0;
    for (const int d : state_.table->stage(stage).devices) {
      working += state_.placement.work(d).working;
    }
    return working;
  });
}

void StateReset::Serve() {
  const PipelineOptions& options = state_.options();
  const auto next = [&] { return options.progress ? Deadline(options.progress_every).at() : Clock::time_point::max(); };
  for (Clock::time_point tell = next();;) {
    bool reset = false;
    {
      base::MutexLock lock(state_.mu);
      while (!state_.ending.threads && !(reset = MayReset()) && Clock::now() < tell) {
        state_.service.WaitUntil(state_.mu, tell);
      }
      if (state_.ending.threads) return;
    }
    if (reset) Reset();
    if (Clock::now() < tell) continue;
    const base::UserCodeScope scope;
    const absl::Status told = base::CatchAll("pipeline: progress", [&] { options.progress(stats_()); });
    if (!told.ok()) state_.runtime().Log(LogLevel::kError, base::Str(told.message()));
    tell = next();
  }
}

void StateReset::Reset() {
  PoisonedStages::Halted halted;
  {
    base::MutexLock lock(state_.mu);
    halted = state_.poisoned.Take();
  }
  const InsideScope scope(core_);
  absl::Status reset;
  for (const uint64_t key : halted.keys) {
    if (reset.ok()) reset = base::CatchAll("pipeline: reset", [&] { return state_.options().reset(Key(key)); });
  }
  {
    base::MutexLock lock(state_.mu);
    state_.poisoned.End(halted.stages);
    if (!reset.ok()) {
      state_.Fail(base::Prefixed("pipeline: a State is poisoned, and PipelineOptions::reset failed", reset));
    }
  }
  state_.runtime().event_count().Notify();
  queues_.Pump();
}

}  // namespace penstock::runtime
