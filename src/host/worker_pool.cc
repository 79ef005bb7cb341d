// The worker pool's queues and threads, and their end. See worker_pool.h.
#include "src/host/worker_pool.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "src/base/catch_all.h"
#include "src/base/thread.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"

namespace penstock::host {
namespace {

thread_local int current_index = -1;

// Linux keeps 15 characters; the index is the part that must survive.
std::string Numbered(const std::string& name, int index) {
  const std::string suffix = "/" + std::to_string(index);
  return name.substr(0, 15 - std::min<size_t>(15, suffix.size())) + suffix;
}

}  // namespace

void WorkerPool::Queue::Push(Task task) {
  if (size_ == ring_.size()) {
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(head_), ring_.end());
    head_ = 0;
    ring_.resize(ring_.size() * 2);
  }
  ring_[(head_ + size_) % ring_.size()] = task;
  ++size_;
}

Task WorkerPool::Queue::Pop() {
  const Task task = ring_[head_];
  head_ = (head_ + 1) % ring_.size();
  --size_;
  return task;
}

WorkerPool::WorkerPool(Options options) : options_(std::move(options)) {
  base::MutexLock join_lock(join_mu_);
  base::MutexLock lock(mu_);  // no worker looks at the queues before all are counted
  const int threads = std::max(1, options_.threads);
  groups_.resize(std::max(1, options_.groups));
  for (Group& group : groups_) group.asleep.reserve(threads);
  try {
    for (int i = 0; i < threads; ++i) {
      joinable_.push_back(base::StartThread(Numbered(options_.name, i), [this, i] { Work(i); }));
      ++live_;
    }
  } catch (const std::system_error&) {
    // Fewer threads than requested: slower, not wrong.
  }
  count_ = live_;
}

// An idle worker, if there is one, is told of a posted task; busy workers look for their next task anyway.
void WorkerPool::Post(Task task, int group) {
  {
    base::MutexLock lock(mu_);
    if (live_ > 0) {  // so a worker will look at the queues once more, even when stopping
      groups_[group].queue.Push(task);
      for (int i = 0; i < groups_.count(); ++i) {
        if (Call(groups_[(group + i) % groups_.count()])) break;
      }
      return;
    }
  }
  task.run(task.context, task.arg);
}

// Returns false if no worker of the group is idle. Called with the lock held, since the task may be what lets the owner
// destroy the pool.
bool WorkerPool::Call(Group& group) {
  if (group.lingers != nullptr) {
    std::exchange(group.lingers, nullptr)->called.store(true, std::memory_order_relaxed);
    return true;
  }
  if (group.asleep.empty()) return false;
  Seat* const seat = group.asleep.back();
  group.asleep.pop_back();
  seat->called.store(true, std::memory_order_relaxed);
  seat->wake.NotifyOne();
  return true;
}

void WorkerPool::Shutdown() {
  base::MutexLock join_lock(join_mu_);  // a second caller waits for the first
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    for (Group& group : groups_) {
      while (Call(group)) continue;
    }
  }
  for (std::thread& thread : joinable_) thread.join();
  joinable_.clear();
}

int WorkerPool::asleep() const {
  base::MutexLock lock(mu_);
  size_t asleep = 0;
  for (const Group& group : groups_) asleep += group.asleep.size();
  return static_cast<int>(asleep);
}

int WorkerPool::CurrentIndex() { return current_index; }

void WorkerPool::Work(int index) {
  const int groups = std::max(1, options_.groups);
  current_index = index;
  base::answers_devices = true;
  options_.begin(index % groups, index / groups);
  const GroupId group = index % groups;
  while (const std::optional<Task> task = Next(group)) {
    base::WhenThreadEnds go_on([&] {
      if (task->resumes) Post(*task, group);
      base::GoOnElsewhere([&] { Work(index); });
    });
    task->run(task->context, task->arg);
    go_on.Cancel();
    if (task->more) Linger(group);
  }
}

void WorkerPool::Linger(GroupId group) {
  Seat seat;
  {
    base::MutexLock lock(mu_);
    const bool any = std::any_of(groups_.begin(), groups_.end(), [](const Group& g) { return !g.queue.empty(); });
    if (groups_[group].lingers != nullptr || stopping_ || any) return;
    groups_[group].lingers = &seat;
  }
  const auto until = std::chrono::steady_clock::now() + kPollBeforeSleep;
  while (!seat.called.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < until) CpuPause();
  base::MutexLock lock(mu_);
  if (groups_[group].lingers == &seat) groups_[group].lingers = nullptr;
}

// Takes the next task, sleeping until there is one. Nothing: none is left and none will come to this worker.
std::optional<Task> WorkerPool::Next(GroupId group) {
  base::MutexLock lock(mu_);
  for (;;) {
    if (const std::optional<Task> task = Take(group)) return task;
    if (stopping_) {
      --live_;
      return std::nullopt;
    }
    Seat seat;
    groups_[group].asleep.push_back(&seat);
    while (!seat.called.load(std::memory_order_relaxed)) seat.wake.Wait(mu_);
  }
}

// Takes from its own group, otherwise from the next one that has any.
std::optional<Task> WorkerPool::Take(GroupId group) {
  for (int i = 0; i < groups_.count(); ++i) {
    Queue& queue = groups_[(group + i) % groups_.count()].queue;
    if (!queue.empty()) return queue.Pop();
  }
  return std::nullopt;
}

}  // namespace penstock::host
