// The worker pool's queue, threads and their end. See worker_pool.h.
#include "src/host/worker_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "src/base/user_code.h"
#include "src/host/progress.h"

namespace penstock::host {
namespace {

thread_local int current_index = -1;

// Linux keeps 15 characters; the index is the part that must survive.
void NameThisThread(const std::string& name, int index) {
  const std::string suffix = "/" + std::to_string(index);
  const std::string full = name.substr(0, 15 - std::min<size_t>(15, suffix.size())) + suffix;
  pthread_setname_np(pthread_self(), full.substr(0, 15).c_str());
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

WorkerPool::WorkerPool(int threads, std::string name) : name_(std::move(name)) {
  base::MutexLock join_lock(join_mu_);
  base::MutexLock lock(mu_);  // a worker looks at the queue only when all of them are counted
  try {
    for (int i = 0; i < std::max(1, threads); ++i) {
      joinable_.emplace_back([this, i] { Work(i); });
      ++live_;
    }
  } catch (const std::system_error&) {
    // Fewer threads than asked for: slower, not wrong.
  }
  count_ = live_;
}

void WorkerPool::Post(Task task) {
  {
    base::MutexLock lock(mu_);
    if (live_ > 0) {  // so somebody will look at the queue once more, also when stopping
      const bool taken = lingering_ && queue_.empty();  // by who lingers
      queue_.Push(task);
      any_.store(true, std::memory_order_relaxed);
      if (!taken) posted_.NotifyOne();  // under the lock: the task may be what lets the owner destroy the pool
      return;
    }
  }
  task.run(task.context, task.arg);
}

void WorkerPool::Shutdown() {
  base::MutexLock join_lock(join_mu_);  // a second caller waits for the first
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    posted_.NotifyAll();
  }
  for (std::thread& thread : joinable_) thread.join();
  joinable_.clear();
}

int WorkerPool::CurrentIndex() { return current_index; }

void WorkerPool::Work(int index) {
  NameThisThread(name_, index);
  current_index = index;
  base::answers_devices = true;
  Task task;
  while (Next(task)) {
    task.run(task.context, task.arg);
    if (task.more) Linger();
  }
}

void WorkerPool::Linger() {
  {
    base::MutexLock lock(mu_);
    if (lingering_ || stopping_ || !queue_.empty()) return;
    lingering_ = true;
  }
  const auto until = std::chrono::steady_clock::now() + kPollBeforeSleep;
  while (!any_.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < until) CpuPause();
  base::MutexLock lock(mu_);
  lingering_ = false;
}

// Takes the next task, sleeping until there is one. False: none is left and none will come to this worker.
bool WorkerPool::Next(Task& task) {
  base::MutexLock lock(mu_);
  while (queue_.empty()) {
    if (stopping_) {
      --live_;
      return false;
    }
    posted_.Wait(mu_);
  }
  task = queue_.Pop();
  any_.store(!queue_.empty(), std::memory_order_relaxed);
  return true;
}

}  // namespace penstock::host
