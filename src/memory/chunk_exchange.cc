// The lock of the staging ring, and who is woken when. See chunk_exchange.h.
#include "src/memory/chunk_exchange.h"

#include <chrono>

#include "src/host/progress.h"
#include "src/memory/tuning.h"

namespace penstock::memory {

ChunkExchange::ChunkExchange(const driver::Driver& driver, host::EventCount& event_count,
                             const ChunkSchedule::Sizes& sizes)
    : event_count_(event_count),
      notifies_(driver.notifies_completion()),
      schedule_(sizes),
      sleeping_(sizes.workers),
      hints_(schedule_) {}

void ChunkExchange::Post(StagedCopy& copy) {
  {
    base::MutexLock lock(mu_);
    busy_.fetch_add(1, std::memory_order_relaxed);
    schedule_.Post(copy);
    hints_.Update(schedule_);
    posted_.NotifyOne();
    sleeping_.Wake(kWorkersWokenByPost, schedule_);
  }
  NotifyFeedingThread();
}

void ChunkExchange::Withdraw(StagedCopy& copy) {
  SkippedChunks skipped;
  {
    base::MutexLock lock(mu_);
    skipped = schedule_.Withdraw(copy);
    hints_.Update(schedule_);
    while (copy.progress.touched()) untouched_.Wait(mu_);
  }
  NotifyFeedingThread();
  GiveUp(skipped);
}

void ChunkExchange::Stop() {
  base::MutexLock lock(mu_);
  stopping_ = true;
  posted_.NotifyOne();
  sleeping_.WakeAll();
}

void ChunkExchange::NotifyFeedingThread() {
  if (notifies_) event_count_.Notify();
}

void ChunkExchange::GiveUp(const SkippedChunks& skipped) {
  if (skipped.copy == nullptr) return;
  {
    base::MutexLock lock(mu_);
    if (!skipped.copy->progress.End(skipped.count)) return;
  }
  End(*skipped.copy);
}

void ChunkExchange::End(StagedCopy& copy) {
  busy_.fetch_sub(1, std::memory_order_release);
  NotifyFeedingThread();
  copy.done(copy.context, copy.arg);
}

// Copying threads

std::optional<StagedChunk> ChunkExchange::BeginCopy(WorkerId w) {
  while (hints_.MayCopy(w)) {
    ChunkSchedule::HostCopy next;
    {
      base::MutexLock lock(mu_);
      if (!schedule_.CanCopy(w)) break;
      next = schedule_.BeginCopy(w);
      hints_.Update(schedule_);
      hints_.UpdateWorker(w, schedule_);
      sleeping_.Wake(1, schedule_);  // each woken thread wakes another while there is work
    }
    if (next.chunk.copy != nullptr) return next.chunk;
    GiveUp(next.given_up);
  }
  return std::nullopt;
}

void ChunkExchange::EndCopy(const StagedChunk& chunk) {
  ChunkSchedule::EndedCopy ended;
  {
    base::MutexLock lock(mu_);
    ended = schedule_.EndCopy(chunk);
    hints_.Update(schedule_);
    if (ended.untouched) untouched_.NotifyAll();
  }
  NotifyFeedingThread();
  if (ended.ended) End(*chunk.copy);
}

bool ChunkExchange::AwaitCopy(WorkerId w) {
  if (!notifies_ && Spin(w)) return true;
  base::MutexLock lock(mu_);
  while (!schedule_.CanCopy(w)) {
    if (stopping_) return false;
    sleeping_.Sleep(w, mu_);
  }
  return true;
}

bool ChunkExchange::Spin(WorkerId w) {
  const host::TimePoint until = std::chrono::steady_clock::now() + kWorkerSpin;
  spinning_.fetch_add(1, std::memory_order_relaxed);
  bool found = false;
  while (!found && std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < kPausesBetweenLooks; ++i) host::CpuPause();
    found = hints_.MayCopy(w);
  }
  spinning_.fetch_sub(1, std::memory_order_relaxed);
  return found;
}

// The feeding thread

bool ChunkExchange::TakeChunks(std::vector<StagedChunk>& chunks) {
  SkippedChunks given_up;
  {
    base::MutexLock lock(mu_);
    given_up = schedule_.TakeChunks(chunks);
    hints_.Update(schedule_);
  }
  GiveUp(given_up);
  return given_up.copy != nullptr || !chunks.empty();
}

// The block of the chunk has come back from the device.
void ChunkExchange::UpdateHints(const StagedChunk& returned) {
  hints_.Update(schedule_);
  if (returned.copy->is_upload()) hints_.UpdateWorker(schedule_.OwnerOf(returned.block), schedule_);
}

void ChunkExchange::Arrived(const StagedChunk& chunk) {
  const bool up = chunk.copy->is_upload();
  bool ended = false;
  {
    base::MutexLock lock(mu_);
    ended = schedule_.Arrived(chunk);
    UpdateHints(chunk);
    // A thread that spins finds a full block by itself, but may have no empty one.
    if (up || spinning_.load(std::memory_order_relaxed) == 0) sleeping_.Wake(1, schedule_);
  }
  if (ended) End(*chunk.copy);
}

void ChunkExchange::Refused(const StagedChunk& chunk) {
  bool ended = false;
  {
    base::MutexLock lock(mu_);
    ended = schedule_.Refused(chunk);
    UpdateHints(chunk);
    sleeping_.Wake(1, schedule_);
  }
  if (ended) End(*chunk.copy);
}

bool ChunkExchange::AwaitPost() {
  base::MutexLock lock(mu_);
  while (busy_.load(std::memory_order_relaxed) == 0) {
    if (stopping_) return false;
    posted_.Wait(mu_);
  }
  return true;
}

}  // namespace penstock::memory
