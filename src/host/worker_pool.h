// WorkerPool: a fixed number of threads that run posted tasks in the order of posting.
//
// The runtime posts host nodes, copies of unpinned memory and users' callbacks here. A task may block; it holds up one
// thread, never the queue's order for the others.
//
// Ownership: borrows what a task points at until the task has run. Every posted task runs exactly once, also during and
//            after Shutdown.
// Threads:   Post from any thread, workers included. Shutdown from any thread that is not a worker of this pool. Idle
//            workers sleep, but for one at most that lingers for a while (Task::more).
// Ordering:  tasks start first in, first out; what happened before Post is visible to the task.
// Errors:    none. A task must not throw. Where the system refuses threads the pool has those it could get; with none
//            Post runs the task itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "src/base/mutex.h"

namespace penstock::host {

struct Task {
  void (*run)(void* context, int64_t arg) = nullptr;
  void* context = nullptr;
  int64_t arg = 0;
  // Another one like it may follow soon: whoever has run it keeps looking for a fifth of a millisecond, since waking a
  // worker takes 10 us.
  bool more = false;
};

class WorkerPool {
 public:
  // `threads` is at least 1 (less counts as 1). Threads are called "<name>/<index>", the name cut to fit 15 characters.
  WorkerPool(int threads, std::string name);
  ~WorkerPool() { Shutdown(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Returns at once, unless the pool has drained and ended: then the task runs here, before Post returns.
  void Post(Task task);

  // Runs what was posted, ends the threads and returns when they have ended. May be called again.
  void Shutdown();

  int threads() const { return count_; }

  // The index of the calling thread in its pool, or -1 where it is no pool's worker.
  static int CurrentIndex();

 private:
  // First in, first out; allocates only to grow.
  class Queue {
   public:
    bool empty() const { return size_ == 0; }
    void Push(Task task);
    Task Pop();

   private:
    std::vector<Task> ring_ = std::vector<Task>(64);
    size_t head_ = 0;
    size_t size_ = 0;
  };

  void Work(int index);
  bool Next(Task& task);
  void Linger();

  base::Mutex mu_;
  base::CondVar posted_;
  Queue queue_ ABSL_GUARDED_BY(mu_);
  int live_ ABSL_GUARDED_BY(mu_) = 0;  // workers that will still look at the queue
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool lingering_ ABSL_GUARDED_BY(mu_) = false;  // a worker does, and looks at the queue behind it
  std::atomic<bool> any_{false};  // whether the queue has tasks; set under mu_

  base::Mutex join_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  std::vector<std::thread> joinable_ ABSL_GUARDED_BY(join_mu_);

  // Constant after construction.
  const std::string name_;
  int count_ = 0;
};

}  // namespace penstock::host
