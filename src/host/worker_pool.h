// WorkerPool: a fixed number of threads, in groups, that run posted tasks.
//
// The runtime posts host nodes, copies of unpinned memory and users' callbacks here, each to the group of its device. A
// task may block; it holds up one thread, never the queues' order for the others. A worker whose group has nothing to
// do takes what waits for another, so a group that is held up, or has no worker, holds up nobody.
//
// Ownership: borrows what a task points at until the task has run. Every posted task runs exactly once, also during and
//            after Shutdown.
// Threads:   Post from any thread, workers included. Shutdown from any thread that is not a worker of this pool. Idle
//            workers sleep, but for one of each group at most that lingers for a while (Task::more): what it waits for
//            comes to its group, and where devices near two nodes ask in turns, one for both would be far from half.
// Ordering:  tasks of a group start first in, first out; what happened before Post is visible to the task.
// Errors:    none. A task must not throw. Where the system refuses threads the pool has those it could get; with none
//            Post runs the task itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
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
  // Where user code ends the thread inside it, it is posted once more, and then does what is left to do.
  bool resumes = false;
};

class WorkerPool {
 public:
  struct Options {
    int threads = 1;  // less than 1 counts as 1
    std::string name{};  // threads are called "<name>/<index>", the name cut to fit 15 characters
    int groups = 1;  // worker i is in group i % groups
    // Called by each thread when it begins: its group, and its number in that.
    std::function<void(int group, int number)> begin = [](int, int) {};
  };
  explicit WorkerPool(Options options);
  WorkerPool(int threads, std::string name) : WorkerPool(Options{.threads = threads, .name = std::move(name)}) {}
  ~WorkerPool() { Shutdown(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Returns at once, unless the pool has drained and ended: then the task runs here, before Post returns.
  void Post(Task task, int group = 0);

  // Runs what was posted, ends the threads and returns when they have ended. May be called again.
  void Shutdown();

  int threads() const { return count_; }
  // How many workers sleep.
  int asleep() const;

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

  // A worker's, while it has nothing to do.
  struct Seat {
    std::atomic<bool> called{false};  // there is something to do; set under mu_
    base::CondVar wake;
  };
  struct Group {
    Queue queue;
    std::vector<Seat*> asleep;  // who came last is called first
    Seat* lingers = nullptr;  // who looks whether it is called, and need not be woken
  };

  void Work(int index);
  bool Next(size_t group, Task& task);
  void Linger(size_t group);
  bool Take(size_t group, Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static bool Call(Group& group);

  mutable base::Mutex mu_;
  std::vector<Group> groups_ ABSL_GUARDED_BY(mu_);
  int live_ ABSL_GUARDED_BY(mu_) = 0;  // workers that will still look at the queues
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  base::Mutex join_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  std::vector<std::thread> joinable_ ABSL_GUARDED_BY(join_mu_);

  // Constant after construction.
  const Options options_;
  int count_ = 0;
};

}  // namespace penstock::host
