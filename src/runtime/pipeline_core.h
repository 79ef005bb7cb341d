// PipelineCore: the machine behind RunPipeline: tickets, two queues, slots and threads, without devices or item types.
//
// Every item gets a ticket when it leaves the source. A ticket is in one place at a time:
//
//   a before worker -> before_queue_ -> a slot (running, then parked_ while after_queue_ is full) -> after_queue_
//   -> an after worker -> finished -> the sink
//
// and goes straight to finished when something failed. Finished tickets wait in the ring for their turn. The ring has
// one place for each item that may be between source and sink; it is the window that bounds the pipeline, and there is
// always room in it to finish, so after workers never wait for the sink, slots never for ever for after workers, and so
// on back to the source: no cycle of waiting, whatever the speeds.
//
// Ownership: the core owns items from source to sink. It must outlive Run, which returns after the last completion.
// Threads:   Run on the caller's thread; a thread a worker and one feeder, which alone launches. Completions arrive on
//            any thread and never block.
// Locks:     one mutex; no stage is called with it held.
// Errors:    see penstock/pipeline.h.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/pipeline.h"
#include "src/base/mutex.h"

namespace penstock::runtime {

class PipelineCore {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using StageFunction = std::function<absl::Status(void* item)>;

  struct Stages {
    std::function<detail::AnyItem()> source;
    StageFunction before;  // may be empty
    // Starts the item on an executable with a free slot. OK: `done` is called once, from any thread. Else never.
    std::function<absl::Status(void* item, int executable, Done done)> launch;
    StageFunction after;  // may be empty
    std::function<void(void* item, const absl::Status& status)> sink;
  };

  // `slots[e]`: how many items may be on executable e at once.
  PipelineCore(Stages stages, std::vector<int> slots, const PipelineOptions& options);
  PipelineCore(const PipelineCore&) = delete;
  PipelineCore& operator=(const PipelineCore&) = delete;

  // Once. ResourceExhausted where the system refuses threads.
  absl::Status Run();

  static int64_t MaxInFlight(const std::vector<int>& slots, const PipelineOptions& options);

  // What is out of the core's hands: threads inside the before and after stages, and launched items that are not done.
  struct Outside {
    int before = 0, runs = 0, after = 0;
    friend bool operator==(const Outside&, const Outside&) = default;
  };
  // For tests: returns when exactly this is outside and every other thread sleeps with nothing to do. Then nothing
  // moves until one of those or the sink returns.
  void WaitUntilIdle(Outside outside);

 private:
  struct Ticket {
    detail::AnyItem item;
    absl::Status status;
    int executable = -1;
    bool finished = false;
  };
  // A condition variable that knows how many threads sleep on it.
  struct Bed {
    base::CondVar cv;
    int sleepers = 0;
  };

  absl::Status RunStage(const char* name, const StageFunction& stage, int64_t serial, int Outside::* count);
  void BeforeWorker();
  bool TakeSourceTurn();
  int64_t Admit(absl::StatusOr<detail::AnyItem> next);
  void Enqueue(int64_t serial);
  void Feeder();
  void Launch(int64_t serial, int executable);
  void RunDone(int64_t serial, const absl::Status& status);
  void AfterWorker();
  void Finish(int64_t serial, absl::Status status);
  bool NextFinished(Ticket& ticket);
  void Deliver(Ticket ticket);
  void StartThreads();
  void StopThreads();

  Ticket& At(int64_t serial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ring_[static_cast<size_t>(serial) % ring_.size()];
  }
  bool CanPull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int FreeExecutable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Sleep(Bed& bed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndSource(absl::Status failure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishLocked(int64_t serial, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Unpark() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeSlot(int executable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const Stages stages_;
  const std::vector<int> slots_;
  const PipelineOptions options_;
  std::vector<std::thread> threads_;  // the caller's of Run

  base::Mutex mu_;
  Bed pull_ ABSL_GUARDED_BY(mu_);  // before workers that wait for their turn at the source
  Bed room_ ABSL_GUARDED_BY(mu_);  // before workers with an item, while the queue is full
  Bed feed_ ABSL_GUARDED_BY(mu_);  // the feeder
  Bed take_ ABSL_GUARDED_BY(mu_);  // after workers
  base::CondVar sink_;  // the caller of Run
  base::CondVar idle_;  // WaitUntilIdle

  std::vector<Ticket> ring_ ABSL_GUARDED_BY(mu_);  // items themselves belong to whoever holds the ticket
  std::deque<int64_t> before_queue_ ABSL_GUARDED_BY(mu_), parked_ ABSL_GUARDED_BY(mu_),
      after_queue_ ABSL_GUARDED_BY(mu_);
  std::vector<int> taken_ ABSL_GUARDED_BY(mu_);  // slots, an executable each
  int last_executable_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t admitted_ ABSL_GUARDED_BY(mu_) = 0;  // serial of the next item from the source
  int64_t delivered_ ABSL_GUARDED_BY(mu_) = 0;  // serial of the next item for the sink, counted when it returned
  Outside outside_ ABSL_GUARDED_BY(mu_);
  int live_ ABSL_GUARDED_BY(mu_);  // threads that have not ended
  bool source_busy_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;  // nothing more is admitted
  bool stop_ ABSL_GUARDED_BY(mu_) = false;  // all is delivered
  absl::Status failure_ ABSL_GUARDED_BY(mu_);  // of source or sink
  bool sink_failed_ ABSL_GUARDED_BY(mu_) = false;
};

// What f returns, or Internal where it throws.
template <class F>
auto CatchAll(const char* stage, F f) -> decltype(f()) {
  const char* const what_to_do = "; catch it in the stage and return a Status";
  try {
    return f();
  } catch (const std::exception& e) {
    return absl::InternalError(std::string("pipeline: ") + stage + " threw an exception: " + e.what() + what_to_do);
  } catch (...) {
    return absl::InternalError(std::string("pipeline: ") + stage + " threw something that is no std::exception" +
                               what_to_do);
  }
}

}  // namespace penstock::runtime
