#include "src/memory/feeding_thread.h"

#include <chrono>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/host/progress.h"
#include "src/memory/tuning.h"

namespace penstock::memory {
namespace {

// A fatal fault appears at any later call, so it names no node.
void Fail(const StagedCopy& copy, const absl::Status& status) {
  copy.op.tag.fault->Fail(base::IsFatal(status) ? -1 : copy.op.tag.node, status);
}

}  // namespace

FeedingThread::~FeedingThread() {
  for (const Lanes& lanes : lanes_) {
    if (lanes.up.stream) driver_.DestroyStream(lanes.up.stream);
    if (lanes.down.stream) driver_.DestroyStream(lanes.down.stream);
  }
}

absl::Status FeedingThread::Make() {
  to_submit_.reserve(blocks_.count());
  for (int d = 0; d < driver_.device_count(); ++d) {
    Lanes& lanes = lanes_.emplace_back();
    for (Lane* const lane : {&lanes.up, &lanes.down}) {
      PENSTOCK_ASSIGN_OR_RETURN(lane->stream, driver_.CreateStream(d, 0));
      lane->under_way.reserve(blocks_.count());
    }
  }
  return absl::OkStatus();
}

void FeedingThread::Run() {
  driver::CurrentDevice current(driver_);
  current_ = &current;
  do {
    while (FeedOrCopy()) {
    }
  } while (Await());
}

bool FeedingThread::FeedOrCopy() { return Feed() || (copier_ && copier_->CopyOne()); }

bool FeedingThread::Feed() {
  const bool submitted = exchange_.MayFeed() && SubmitChunks();
  return Collect() || submitted;
}

// Waits until there may be something to do, then returns true; false if the thread must end.
bool FeedingThread::Await() {
  if (driver_.notifies_completion()) {
    host::WaitForProgress(event_count_, true, host::TimePoint::max(),
                          [&] { return FeedOrCopy() || !exchange_.busy(); });
  } else if (Poll()) {
    return true;
  }
  return exchange_.AwaitPost();
}

// Polls while any copies are posted, and for a while afterwards. Returns whether it found something to do.
bool FeedingThread::Poll() {
  host::TimePoint idle_since{};
  for (;;) {
    for (int i = 0; i < kPausesBetweenPolls; ++i) host::CpuPause();
    if (FeedOrCopy()) return true;
    if (exchange_.busy()) {
      idle_since = {};
      continue;
    }
    const host::TimePoint now = std::chrono::steady_clock::now();
    if (idle_since == host::TimePoint{}) idle_since = now;
    if (now >= idle_since + host::kPollBeforeSleep) return false;
  }
}

bool FeedingThread::SubmitChunks() {
  const bool any = exchange_.TakeChunks(to_submit_);
  for (const StagedChunk& chunk : to_submit_) Submit(chunk);
  to_submit_.clear();
  return any || exchange_.MayFeed();
}

void FeedingThread::Submit(const StagedChunk& chunk) {
  const StagedCopy& copy = *chunk.copy;
  if (copy.failed()) return exchange_.Refused(chunk);
  Lane& lane = LaneOf(copy);
  void* const block = blocks_.memory(chunk.block);
  current_->Set(copy.device);
  absl::Status status =
      driver_.Copy(lane.stream, copy.is_upload() ? OutOfBlock(chunk.op(), block) : IntoBlock(chunk.op(), block));
  if (!status.ok()) {
    Fail(copy, status);
    return exchange_.Refused(chunk);
  }
  status = driver_.Record(blocks_.event(chunk.block, copy.device), lane.stream);
  lane.under_way.push_back({.chunk = chunk, .recorded = status.ok()});
  if (!status.ok()) Fail(copy, status);  // IsComplete tries again
}

// Collects the copies of each direction of each device that have ended, oldest first.
bool FeedingThread::Collect() {
  bool found = false;
  for (Lanes& lanes : lanes_) {
    found = Collect(lanes.down) || found;
    found = Collect(lanes.up) || found;
  }
  return found;
}

bool FeedingThread::Collect(Lane& lane) {
  bool found = false;
  while (!lane.under_way.empty() && IsComplete(lane.under_way.front(), lane.stream)) {
    const StagedChunk chunk = lane.under_way.front().chunk;
    lane.under_way.erase(lane.under_way.begin());
    exchange_.Arrived(chunk);
    found = true;
  }
  return found;
}

// A device that answers with a fatal error runs nothing any more. One that fails for another reason is polled again:
// without its answer, it is not known when the memory is free.
bool FeedingThread::IsComplete(Submitted& oldest, driver::Stream stream) {
  const StagedCopy& copy = *oldest.chunk.copy;
  const driver::Event event = blocks_.event(oldest.chunk.block, copy.device);
  current_->Set(copy.device);
  absl::Status status;
  if (!oldest.recorded) {
    status = driver_.Record(event, stream);
    oldest.recorded = status.ok();
  }
  bool complete = false;
  if (status.ok()) {
    const absl::StatusOr<bool> answer = driver_.Query(event);
    status = answer.status();
    complete = answer.ok() && *answer;
  }
  if (status.ok()) return complete;
  Fail(copy, status);
  event_count_.Notify();  // look again: nothing else may notify
  return base::IsFatal(status);
}

}  // namespace penstock::memory
