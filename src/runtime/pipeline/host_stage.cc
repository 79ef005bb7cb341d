#include "src/runtime/pipeline/host_stage.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/annotate.h"
#include "src/base/catch_all.h"
#include "src/base/status.h"
#include "src/base/thread.h"
#include "src/runtime/pipeline/stage_runs.h"

namespace penstock::runtime {

absl::Status HostStages::Start() {
  const std::vector<Stage>& stages = state_.table->stages();
  try {
    for (size_t s = 0; s < stages.size(); ++s) {
      for (int w = 0; w < stages[s].workers; ++w) {
        threads_.push_back(base::StartThread("ps-" + stages[s].name, [this, s, w] { Work(s, w); }));
      }
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pipeline: the system refuses its threads: ", error.what(), "; ask for fewer workers"));
  }
  return absl::OkStatus();
}

void HostStages::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void HostStages::Work(size_t s, int thread) {
  const Stage& stage = state_.table->stages()[s];
  for (;;) {
    int i = ItemBook::kNone;
    {
      base::MutexLock lock(state_.mu);
      while (!state_.ending.threads && (i = state_.book.Begin(static_cast<int>(s), [](int) { return true; })) < 0) {
        state_.host_waiting[s].Wait(state_.mu);
      }
      if (i < 0) return;
      state_.counts.hosts[s].Begin(state_.items.at(i));
    }
    base::WhenThreadEnds go_on([&] {
      End(s, i, base::Prefixed(stage.prefix, base::EndedItsThread("its function")));
      base::GoOnElsewhere([&] { Work(s, thread); });
    });
    absl::Status status = Call(s, thread, state_.items.at(i));
    go_on.Cancel();
    End(s, i, std::move(status));
  }
}

absl::Status HostStages::Call(size_t s, int thread, PipelineItem& item) {
  const Stage& stage = state_.table->stages()[s];
  const base::AnnotatedRange range(stage.annotation, static_cast<int64_t>(item.id));
  const observe::ProfileRecorder& profile = state_.runtime().observed().profile;
  if (!profile.records_all()) return CallOnItem(stage.prefix, stage.call, item);
  Trace& trace = *profile.trace();
  const auto number = static_cast<int64_t>(item.id);
  const double begin = trace.Now();
  absl::Status status = CallOnItem(stage.prefix, stage.call, item);
  trace.Add({.name = stage.name,
             .track = "stage " + stage.name + " thread " + std::to_string(thread),
             .kind = SpanKind::kHost,
             .begin_us = begin,
             .end_us = trace.Now(),
             .run = number});
  return status;
}

void HostStages::End(size_t stage, int i, absl::Status status) {
  {
    base::MutexLock lock(state_.mu);
    state_.counts.hosts[stage].End(state_.items.at(i), status);
    state_.EndStage(i, std::move(status));
  }
  state_.runtime().event_count().Notify();
  queues_.Pump();
}

}  // namespace penstock::runtime
