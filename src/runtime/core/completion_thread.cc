#include "src/runtime/core/completion_thread.h"

#include <pthread.h>

#include <algorithm>

#include "src/base/thread.h"
#include "src/host/progress.h"
#include "src/runtime/core/progressable.h"

namespace penstock::runtime {

CompletionThread::CompletionThread(host::EventCount& progress, bool notifies_completion, bool polls)
    : progress_(progress),
      notifies_completion_(notifies_completion),
      polls_(polls),
      thread_(base::StartThread(polls ? "ps-polling" : "ps-completion", [this] { polls_ ? Poll() : Loop(); })) {}

bool CompletionThread::Pin(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (core >= CPU_SETSIZE) return false;
  CPU_SET(core, &cores);
  return pthread_setaffinity_np(thread_.native_handle(), sizeof(cores), &cores) == 0;
}

void CompletionThread::Watch(Progressable* run) {
  {
    base::MutexLock lock(mu_);
    if (stopped_) return;
    run->Ref();
    incoming_.push_back(run);
  }
  incoming_event_count_.Notify();
  progress_.Notify();
}

void CompletionThread::Run(host::Task task) {
  bool stopped = false;
  {
    base::MutexLock lock(mu_);
    stopped = stopped_;
    if (!stopped) tasks_.push_back(task);
  }
  if (stopped) return task.run(task.context, task.arg);
  incoming_event_count_.Notify();
  progress_.Notify();
}

void CompletionThread::RunTasks() {
  std::vector<host::Task> tasks;
  {
    base::MutexLock lock(mu_);
    tasks.swap(tasks_);
  }
  for (const host::Task& task : tasks) task.run(task.context, task.arg);
}

void CompletionThread::Stop() {
  {
    base::MutexLock join_lock(join_mu_);
    if (!thread_.joinable()) return;
    stop_.store(true, std::memory_order_release);
    incoming_event_count_.Notify();
    progress_.Notify();
    thread_.join();
  }
  {
    base::MutexLock lock(mu_);
    stopped_ = true;
  }
  TakeIncoming();
  RunTasks();
  for (Progressable* run : watched_) run->Unref();
  watched_.clear();
}

void CompletionThread::TakeIncoming() {
  base::MutexLock lock(mu_);
  watched_.insert(watched_.end(), incoming_.begin(), incoming_.end());
  incoming_.clear();
}

void CompletionThread::AdvanceWatched() {
  const auto drained = [this](Progressable* run) {
    polls_ ? run->Poll() : run->Advance();
    if (!run->drained()) return false;
    run->Unref();
    return true;
  };
  watched_.erase(std::remove_if(watched_.begin(), watched_.end(), drained), watched_.end());
}

bool CompletionThread::AllIdle() const {
  return std::all_of(watched_.begin(), watched_.end(), [](const Progressable* run) { return run->idle(); });
}

void CompletionThread::Poll() {
  uint64_t seen = incoming_event_count_.ticket() - 1;
  while (!stop_.load(std::memory_order_acquire)) {
    if (const uint64_t ticket = incoming_event_count_.ticket(); ticket != seen) {
      seen = ticket;
      TakeIncoming();
      RunTasks();
    }
    AdvanceWatched();
    host::CpuPause();
  }
}

void CompletionThread::Loop() {
  while (!stop_.load(std::memory_order_acquire)) {
    const uint64_t ticket = incoming_event_count_.ticket();
    TakeIncoming();
    RunTasks();
    host::TimePoint until = host::TimePoint::max();
    for (const Progressable* run : watched_) until = std::min(until, run->due());
    if (AllIdle()) {
      if (!stop_.load(std::memory_order_acquire)) incoming_event_count_.Wait(ticket, until);
      AdvanceWatched();
      continue;
    }
    // Checks all of them until one has drained, something new has come, all are idle, or the next deadline is due.
    host::WaitForProgress(progress_, notifies_completion_, until, [&] {
      const size_t before = watched_.size();
      AdvanceWatched();
      return watched_.size() != before || stop_.load(std::memory_order_acquire) ||
             incoming_event_count_.ticket() != ticket || AllIdle();
    });
    if (until != host::TimePoint::max()) AdvanceWatched();  // what is due now
  }
}

}  // namespace penstock::runtime
