// WorkerPool: a fixed number of threads, in groups, that run posted tasks.
//
// The runtime posts host nodes, copies of unpinned memory and users' callbacks here, each to its device's group. A task
// may block: it holds up one thread, but not the other tasks. A worker whose group has no tasks takes one from another
// group, so a group that is held up, or has no worker, delays nothing.
//
// Ownership: borrows what a task points to until the task has run. Every posted task runs exactly once, also during and
//            after Shutdown.
// Threads:   any thread may Post, workers included. Any thread except this pool's workers may call Shutdown. Idle
//            workers sleep, except at most one per group that lingers for a while (Task::more). It awaits tasks
//            of its own group only: if devices near two nodes made requests in turn, a shared one would be far
//            from half of them.
// Ordering:  a group's tasks start first in, first out; whatever happened before Post is visible to the task.
// Errors:    none. A task must not throw. If the system refuses threads the pool uses those it could get; with none,
//            Post runs the task itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "penstock/detail/table.h"
#include "src/base/mutex.h"

namespace penstock::host {

struct Task {
  void (*run)(void* context, int64_t arg) = nullptr;
  void* context = nullptr;
  int64_t arg = 0;
  // A similar task may follow soon: the worker keeps looking for a fifth of a millisecond, since waking
  // one takes 10 us.
  bool more = false;
  // If user code ends the thread inside the task, the task is posted once more, and then does what is left to do.
  bool resumes = false;
};

class WorkerPool {
 public:
  struct Options {
    int threads = 1;  // less than 1 counts as 1
    std::string name{};  // threads are called "<name>/<index>", the name cut to fit 15 characters
    int groups = 1;  // worker i is in group i % groups
    // Called on each thread when it begins, with its group and its number in the group.
    std::function<void(int group, int number)> begin = [](int, int) {};
  };
  explicit WorkerPool(Options options);
  WorkerPool(int threads, std::string name) : WorkerPool(Options{.threads = threads, .name = std::move(name)}) {}
  ~WorkerPool() { Shutdown(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Returns immediately, unless the pool has drained and ended: then the task runs here, before Post returns.
  void Post(Task task, int group = 0);

  // Runs the posted tasks, ends the threads, and returns when they have ended. May be called again.
  void Shutdown();

  int threads() const { return count_; }
  // The number of sleeping workers.
  int asleep() const;

  // The index of the calling thread in its pool; -1 if it is not a worker.
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

  using GroupId = detail::Id<struct WorkerGroupTag>;

  // An idle worker's wake-up.
  struct Seat {
    std::atomic<bool> called{false};  // there is a task; set under mu_
    base::CondVar wake;
  };
  struct Group {
    Queue queue;
    std::vector<Seat*> asleep;  // called last in, first out
    Seat* lingers = nullptr;  // the worker that polls `called`, and need not be woken
  };

  void Work(int index);
  std::optional<Task> Next(GroupId group);
  void Linger(GroupId group);
  std::optional<Task> Take(GroupId group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static bool Call(Group& group);

  mutable base::Mutex mu_;
  detail::Table<GroupId, Group> groups_ ABSL_GUARDED_BY(mu_);
  int live_ ABSL_GUARDED_BY(mu_) = 0;  // workers that will still look at the queues
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  base::Mutex join_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  std::vector<std::thread> joinable_ ABSL_GUARDED_BY(join_mu_);

  // Constant after construction.
  const Options options_;
  int count_ = 0;
};

}  // namespace penstock::host
