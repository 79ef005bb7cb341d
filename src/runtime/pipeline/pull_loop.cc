#include "src/runtime/pipeline/pull_loop.h"

#include <utility>

#include "absl/status/statusor.h"
#include "src/base/catch_all.h"
#include "src/runtime/pipeline/pipeline_core.h"
#include "src/runtime/pipeline/wait_and_pump.h"

namespace penstock::runtime {

// Returns false if the sink has seen all there is.
bool PullLoop::Step() {
  int place = ItemBook::kNone, ready = ItemBook::kNone;
  bool end = false;
  WaitAndPump(core_.state_, core_.queues_, Deadline(), [&] {
    if (more_) place = TakePlace();
    ready = core_.TakeReady(batch_);
    end = place < 0 && ready < 0 && !more_ && HasSeenAll();
    return place >= 0 || ready >= 0 || end;
  });
  if (place >= 0) PullInto(place);
  if (ready >= 0) {
    AnyItem item = core_.ItemAt(ready);
    Show(item);
  }
  if (!end || !refused_) return !end;
  AnyItem refused = std::move(refused_);
  Show(refused);
  return true;  // the sink may have submitted more
}

int PullLoop::TakePlace() {
  const absl::StatusOr<int> taken = core_.TakePlace(Key(), kAnyDevice);
  if (taken.ok()) return *taken;
  EndRefused(taken.status());
  return ItemBook::kNone;
}

// An item that cannot enter is kept with the reason, so that what the source produced is not lost.
void PullLoop::PullInto(int place) {
  AnyItem item = core_.ItemAt(place);
  PipelineItem*& record = detail::Internals<AnyItem>::RecordOf(item);
  const absl::StatusOr<bool> pulled =
      base::CatchAll("pipeline: source", [&]() -> absl::StatusOr<bool> { return pull_(item); });
  if (!pulled.ok() || !*pulled) return EndSource(pulled.status());
  absl::Status entered = core_.state_.table->FindDevices(*record, StageTable::At::kSubmit);
  if (entered.ok()) entered = core_.Enter(*record, {});
  if (entered.ok()) {
    record = nullptr;
    return;
  }
  record->status = entered;
  refused_ = std::move(item);
  EndRefused(entered);
}

void PullLoop::EndSource(const absl::Status& error) {
  more_ = false;
  error_.Update(error);
  if (batch_ == nullptr) core_.Stop();
}

// Nothing more enters. That the pipeline was stopped or has failed is no error of the source.
void PullLoop::EndRefused(const absl::Status& why) {
  {
    base::MutexLock lock(core_.state_.mu);
    cut_short_ = core_.state_.ending.stopped;
  }
  EndSource(cut_short_ ? absl::OkStatus() : why);
}

void PullLoop::Show(AnyItem& item) {
  if (!sinks_) return;
  const absl::Status sunk = base::CatchAll("pipeline: sink", [&] { sink_(item); });
  if (sunk.ok()) return;
  error_.Update(sunk);
  sinks_ = more_ = false;
  if (batch_ == nullptr) core_.Cancel();
}

bool PullLoop::HasSeenAll() const {
  if (batch_ == nullptr) return core_.AtEnd();
  base::MutexLock lock(core_.state_.mu);
  return batch_->inside == 0;
}

}  // namespace penstock::runtime
