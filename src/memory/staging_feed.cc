// The feeding thread of Staging: it submits full blocks, keeps copies into free ones in flight, and checks
// which have ended.
#include <chrono>

#include "src/base/status.h"
#include "src/host/progress.h"
#include "src/memory/staging.h"

namespace penstock::memory {
namespace {

constexpr int kPausesBetweenPolls = 10;  // polling without pause slows other submitters

// A fatal fault appears at any later call, so it names no node.
void Fail(const StagedCopy& copy, const absl::Status& status) {
  copy.op.tag.fault->Fail(base::IsFatal(status) ? -1 : copy.op.tag.node, status);
}

}  // namespace

void Staging::Feed() {
  driver::CurrentDevice current(driver_);
  current_ = &current;
  do {
    while (FeedOrCopy()) {
    }
  } while (AwaitFeed());
}

bool Staging::FeedOrCopy() { return FeedOnce() || (feeder_copies_ && CopyOne(0)); }

// Waits until there may be something to do, then returns true; false if the thread must end. It polls the copies in
// flight while any are posted, and for a while afterwards.
bool Staging::AwaitFeed() {
  if (driver_.notifies_completion()) {
    host::WaitForProgress(event_count_, true, host::TimePoint::max(),
                          [&] { return FeedOrCopy() || busy_.load(std::memory_order_acquire) == 0; });
  } else {
    host::TimePoint idle_since{};
    for (;;) {
      for (int i = 0; i < kPausesBetweenPolls; ++i) host::CpuPause();
      if (FeedOrCopy()) return true;
      if (busy_.load(std::memory_order_acquire) > 0) {
        idle_since = {};
        continue;
      }
      const host::TimePoint now = std::chrono::steady_clock::now();
      if (idle_since == host::TimePoint{}) idle_since = now;
      if (now >= idle_since + host::kPollBeforeSleep) break;
    }
  }
  base::MutexLock lock(mu_);
  while (busy_.load(std::memory_order_relaxed) == 0) {
    if (stopping_) return false;
    feed_.Wait(mu_);
  }
  return true;
}

bool Staging::FeedOnce() {
  const bool submitted = can_feed_.load(std::memory_order_relaxed) && SubmitChunks();
  return Collect() || submitted;
}

bool Staging::SubmitChunks() {
  StagedCopy* given_up = nullptr;
  size_t skipped = 0;
  {
    base::MutexLock lock(mu_);
    to_submit_.swap(filled_);
    given_up = TakeFailed(kDown, &skipped);
    while (given_up == nullptr && CanBeginDown() && !queues_[kDown].front()->op.tag.fault->failed()) {
      to_submit_.push_back(BeginDown());
    }
    NoteChange();
  }
  const bool any = given_up != nullptr || !to_submit_.empty();
  for (const size_t index : to_submit_) Submit(index, DirectionOf(*blocks_[index].copy));
  to_submit_.clear();
  if (given_up != nullptr) EndSkipped(*given_up, skipped);
  return any || can_feed_.load(std::memory_order_relaxed);
}

bool Staging::CanBeginDown() const {
  const Queue& queue = queues_[kDown];
  if (queue.empty()) return false;
  if (queue.front()->op.tag.fault->failed()) return true;  // to give up the copy
  return !free_down_.empty() && downloads_under_way_ < queue.front()->most_under_way * lanes_.size();
}

size_t Staging::BeginDown() {
  Queue& queue = queues_[kDown];
  StagedCopy& copy = *queue.front();
  const size_t index = free_down_.back();
  free_down_.pop_back();
  ++downloads_under_way_;
  blocks_[index].copy = &copy;
  blocks_[index].chunk = copy.chunks[copy.next++];
  if (copy.next == copy.chunks.count()) queue.erase(queue.begin());
  return index;
}

void Staging::Submit(size_t index, Direction direction) {
  Block& block = blocks_[index];
  StagedCopy& copy = *block.copy;
  const auto device = static_cast<size_t>(copy.device);
  Lane& lane = (*lanes_[device])[direction];
  if (copy.op.tag.fault->failed()) return Refused(index, direction);
  current_->Set(copy.device);
  absl::Status status = driver_.Copy(lane.stream, direction == kUp ? OutOfBlock(block.chunk, block.memory.data())
                                                                   : IntoBlock(block.chunk, block.memory.data()));
  if (!status.ok()) {
    Fail(copy, status);
    return Refused(index, direction);
  }
  lane.under_way.push_back(index);
  status = driver_.Record(block.events[device], lane.stream);
  block.recorded = status.ok();
  if (!status.ok()) Fail(copy, status);  // IsComplete tries again
}

// Collects the ended copies of each direction of each device, oldest first.
bool Staging::Collect() {
  bool found = false;
  for (const auto& lanes : lanes_) {
    for (const Direction direction : {kDown, kUp}) {
      Lane& lane = (*lanes)[direction];
      while (!lane.under_way.empty() && IsComplete(blocks_[lane.under_way.front()], lane)) {
        const size_t index = lane.under_way.front();
        lane.under_way.erase(lane.under_way.begin());
        Arrived(index, direction);
        found = true;
      }
    }
  }
  return found;
}

// A device that answers with a fatal error runs nothing any more. One that fails for another reason is polled again:
// without its answer, it is not known when the memory is free.
bool Staging::IsComplete(Block& block, const Lane& lane) {
  StagedCopy& copy = *block.copy;
  const driver::Event event = block.events[static_cast<size_t>(copy.device)];
  current_->Set(copy.device);
  absl::Status status;
  if (!block.recorded) {
    status = driver_.Record(event, lane.stream);
    block.recorded = status.ok();
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

void Staging::Arrived(size_t index, Direction direction) {
  StagedCopy& copy = *blocks_[index].copy;
  bool ended = false;
  {
    base::MutexLock lock(mu_);
    if (direction == kUp) {
      const size_t owner = blocks_[index].owner;
      workers_[owner].free.push_back(index);
      signals_[owner].free.fetch_add(1, std::memory_order_relaxed);
      ended = EndOne(copy);
    } else {
      --downloads_under_way_;
      external_deps_met_.push_back(index);
    }
    NoteChange();
    if (direction == kUp || spinning_.load(std::memory_order_relaxed) == 0) Wake(1);  // spinners find full blocks
  }
  if (ended) End(copy);
}

// This chunk is not copied, and ends here.
void Staging::Refused(size_t index, Direction direction) {
  if (direction == kUp) return Arrived(index, kUp);
  StagedCopy& copy = *blocks_[index].copy;
  {
    base::MutexLock lock(mu_);
    --downloads_under_way_;
    free_down_.push_back(index);
    NoteChange();
  }
  EndSkipped(copy, 1);
}

}  // namespace penstock::memory
