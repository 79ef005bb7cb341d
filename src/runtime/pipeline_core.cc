// The pipeline's threads and the state they share. See pipeline_core.h.
#include "src/runtime/pipeline_core.h"

#include <pthread.h>

#include <numeric>
#include <system_error>
#include <utility>

namespace penstock::runtime {

PipelineCore::PipelineCore(Stages stages, std::vector<int> slots, const PipelineOptions& options)
    : stages_(std::move(stages)),
      slots_(std::move(slots)),
      options_(options),
      ring_(static_cast<size_t>(MaxInFlight(slots_, options_))),
      taken_(slots_.size(), 0),
      live_(options.before_workers + 1 + options.after_workers) {}

int64_t PipelineCore::MaxInFlight(const std::vector<int>& slots, const PipelineOptions& options) {
  return std::accumulate(slots.begin(), slots.end(), int64_t{0}) + options.before_queue + options.after_queue +
         options.before_workers + options.after_workers + /*in the sink*/ 1;
}

absl::Status PipelineCore::Run() {
  StartThreads();
  Ticket ticket;
  while (NextFinished(ticket)) Deliver(std::move(ticket));
  StopThreads();
  base::MutexLock lock(mu_);
  return failure_;
}

// In such an order that nothing leaves the source before the threads behind it run. Where the system refuses a thread
// the source ends: what has left it goes its way.
void PipelineCore::StartThreads() {
  auto start = [this](const char* name, int count, void (PipelineCore::*loop)()) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, name, loop] {
        pthread_setname_np(pthread_self(), name);
        (this->*loop)();
        base::MutexLock lock(mu_);
        --live_;
        idle_.NotifyAll();
      });
    }
  };
  try {
    start("ps-after", options_.after_workers, &PipelineCore::AfterWorker);
    start("ps-feeder", 1, &PipelineCore::Feeder);
    start("ps-before", options_.before_workers, &PipelineCore::BeforeWorker);
  } catch (const std::system_error& e) {
    base::MutexLock lock(mu_);
    EndSource(absl::ResourceExhaustedError(std::string("pipeline: the system refuses its threads: ") + e.what() +
                                           "; ask for fewer workers"));
  }
}

void PipelineCore::StopThreads() {
  {
    base::MutexLock lock(mu_);
    stop_ = true;
    for (Bed* bed : {&pull_, &room_, &feed_, &take_}) bed->cv.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

absl::Status PipelineCore::RunStage(const char* name, const StageFunction& stage, int64_t serial,
                                    int Outside::* count) {
  void* item = nullptr;
  {
    base::MutexLock lock(mu_);
    item = At(serial).item.get();
    ++(outside_.*count);
    idle_.NotifyAll();
  }
  absl::Status status = stage ? CatchAll(name, [&] { return stage(item); }) : absl::OkStatus();
  base::MutexLock lock(mu_);
  --(outside_.*count);
  return status;
}

// Source and before stage

void PipelineCore::BeforeWorker() {
  while (TakeSourceTurn()) {
    const int64_t serial =
        Admit(CatchAll("source", [&]() -> absl::StatusOr<detail::AnyItem> { return stages_.source(); }));
    if (serial < 0) return;
    absl::Status status = RunStage("before", stages_.before, serial, &Outside::before);
    if (status.ok()) {
      Enqueue(serial);
    } else {
      Finish(serial, std::move(status));
    }
  }
}

bool PipelineCore::CanPull() const {
  return !source_busy_ && admitted_ - delivered_ < static_cast<int64_t>(ring_.size());
}

// Waits until this thread may call the source: one at a time, and only when the item has a place in the ring.
bool PipelineCore::TakeSourceTurn() {
  base::MutexLock lock(mu_);
  while (!ended_ && !CanPull()) Sleep(pull_);
  if (ended_) return false;
  source_busy_ = true;
  return true;
}

// Ends the turn and gives the item its serial; -1 when the source has ended.
int64_t PipelineCore::Admit(absl::StatusOr<detail::AnyItem> next) {
  base::MutexLock lock(mu_);
  source_busy_ = false;
  if (!next.ok() || *next == nullptr || ended_) {
    EndSource(next.status());
    return -1;
  }
  const int64_t serial = admitted_++;
  At(serial) = Ticket{*std::move(next), absl::OkStatus(), -1, false};
  pull_.cv.NotifyOne();
  return serial;
}

void PipelineCore::EndSource(absl::Status failure) {
  if (failure_.ok()) failure_ = std::move(failure);
  ended_ = true;  // who waits for a turn at the source is woken by StopThreads
  sink_.NotifyOne();
}

bool PipelineCore::HasRoom() const { return before_queue_.size() < static_cast<size_t>(options_.before_queue); }

void PipelineCore::Enqueue(int64_t serial) {
  base::MutexLock lock(mu_);
  while (!HasRoom()) Sleep(room_);
  before_queue_.push_back(serial);
  feed_.cv.NotifyOne();
}

// Executables

// The executable with the most free slots, and of equals the one after the last; -1: none has any.
int PipelineCore::FreeExecutable() const {
  const int count = static_cast<int>(slots_.size());
  int best = -1, most = 0;
  for (int i = 1; i <= count; ++i) {
    const int e = (last_executable_ + i) % count;
    const int free = slots_[static_cast<size_t>(e)] - taken_[static_cast<size_t>(e)];
    if (free > most) {
      best = e;
      most = free;
    }
  }
  return best;
}

void PipelineCore::Feeder() {
  for (;;) {
    int64_t serial = -1;
    int executable = -1;
    {
      base::MutexLock lock(mu_);
      while (!stop_ && (before_queue_.empty() || (executable = FreeExecutable()) < 0)) Sleep(feed_);
      if (stop_) return;
      serial = before_queue_.front();
      before_queue_.pop_front();
      room_.cv.NotifyOne();
      ++taken_[static_cast<size_t>(executable)];
      ++outside_.runs;
      last_executable_ = executable;
      At(serial).executable = executable;
    }
    Launch(serial, executable);
  }
}

void PipelineCore::Launch(int64_t serial, int executable) {
  void* item = nullptr;
  {
    base::MutexLock lock(mu_);
    item = At(serial).item.get();
  }
  const absl::Status launched =
      stages_.launch(item, executable, [this, serial](const absl::Status& status) { RunDone(serial, status); });
  if (!launched.ok()) RunDone(serial, launched);
}

void PipelineCore::RunDone(int64_t serial, const absl::Status& status) {
  base::MutexLock lock(mu_);
  --outside_.runs;
  if (status.ok()) {
    parked_.push_back(serial);
    Unpark();
  } else {
    FreeSlot(At(serial).executable);
    FinishLocked(serial, status);
  }
  idle_.NotifyAll();  // the last touch: Run may return as soon as the lock is free
}

// Moves items whose run is done on to the after stage, as far as its queue has room, and frees their slots.
void PipelineCore::Unpark() {
  while (!parked_.empty() && after_queue_.size() < static_cast<size_t>(options_.after_queue)) {
    after_queue_.push_back(parked_.front());
    parked_.pop_front();
    FreeSlot(At(after_queue_.back()).executable);
    take_.cv.NotifyOne();
  }
}

void PipelineCore::FreeSlot(int executable) {
  --taken_[static_cast<size_t>(executable)];
  feed_.cv.NotifyOne();
}

// After stage and sink

void PipelineCore::AfterWorker() {
  for (;;) {
    int64_t serial = -1;
    {
      base::MutexLock lock(mu_);
      while (!stop_ && after_queue_.empty()) Sleep(take_);
      if (stop_) return;
      serial = after_queue_.front();
      after_queue_.pop_front();
      Unpark();
    }
    Finish(serial, RunStage("after", stages_.after, serial, &Outside::after));
  }
}

void PipelineCore::Finish(int64_t serial, absl::Status status) {
  base::MutexLock lock(mu_);
  FinishLocked(serial, std::move(status));
}

void PipelineCore::FinishLocked(int64_t serial, absl::Status status) {
  At(serial).status = std::move(status);
  At(serial).finished = true;
  if (serial == delivered_) sink_.NotifyOne();
}

// Waits for the next item in the order of the source. False: there are no more.
bool PipelineCore::NextFinished(Ticket& ticket) {
  base::MutexLock lock(mu_);
  while (!(delivered_ < admitted_ && At(delivered_).finished)) {
    if (ended_ && delivered_ == admitted_) return false;
    sink_.Wait(mu_);
  }
  ticket = std::move(At(delivered_));
  At(delivered_) = Ticket();
  return true;
}

void PipelineCore::Deliver(Ticket ticket) {
  bool skip = false;
  {
    base::MutexLock lock(mu_);
    skip = sink_failed_;
  }
  const absl::Status delivered = skip ? absl::OkStatus() : CatchAll("sink", [&] {
    stages_.sink(ticket.item.get(), ticket.status);
    return absl::OkStatus();
  });
  ticket.item.reset();  // gone before another one may leave the source
  base::MutexLock lock(mu_);
  ++delivered_;
  pull_.cv.NotifyOne();
  if (!delivered.ok()) {
    sink_failed_ = true;
    EndSource(delivered);
  }
}

// Sleeping and idleness

void PipelineCore::Sleep(Bed& bed) {
  ++bed.sleepers;
  idle_.NotifyAll();
  bed.cv.Wait(mu_);
  --bed.sleepers;
}

// Whether every thread that is not inside a stage sleeps, and would sleep on if it were woken now.
bool PipelineCore::Idle() const {
  const int inside = outside_.before + outside_.after;
  if (pull_.sleepers + room_.sleepers + feed_.sleepers + take_.sleepers + inside != live_) return false;
  if (pull_.sleepers > 0 && (stop_ || (!ended_ && CanPull()))) return false;
  if (room_.sleepers > 0 && HasRoom()) return false;
  if (feed_.sleepers > 0 && (stop_ || (!before_queue_.empty() && FreeExecutable() >= 0))) return false;
  return take_.sleepers == 0 || (!stop_ && after_queue_.empty());
}

void PipelineCore::WaitUntilIdle(Outside outside) {
  base::MutexLock lock(mu_);
  while (!(outside_ == outside && Idle())) idle_.Wait(mu_);
}

}  // namespace penstock::runtime
