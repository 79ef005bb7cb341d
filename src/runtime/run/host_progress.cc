#include "src/runtime/run/host_progress.h"

#include <algorithm>

namespace penstock::runtime {

HostProgress::HostProgress(const Program& program)
    : waits_(program.host_waits),
      ended_(program.hosts.size()),
      step_waits_(program.hosts.size()),
      segment_waits_(program.host_waits.of_segment.size()),
      events_seen_(std::max(program.stream.watched.size(), program.graphs.watched.size())),
      next_(program.hosts.size()) {}

void HostProgress::Begin(const Schedule& schedule, int32_t work) {
  schedule_ = &schedule;
  std::copy(waits_.of_step.begin(), waits_.of_step.end(), step_waits_.begin());
  std::copy(waits_.of_segment.begin(), waits_.of_segment.end(), segment_waits_.begin());
  std::fill(events_seen_.begin(), events_seen_.end(), 0);
  work_left_.store(work, std::memory_order_relaxed);
  left_ = static_cast<int32_t>(step_waits_.size());
  skips_ = false;
  fresh_ = kept_ = {};
  for (const int32_t task : waits_.first) Append(fresh_, task);
}

void HostProgress::End(int32_t step, bool counted) {
  if (counted) work_left_.fetch_sub(1, std::memory_order_seq_cst);
  ended_.Push(step);
}

void HostProgress::TakeEnded() {
  ended_.TakeAll([this](int32_t step) { Settle(step); });
}

void HostProgress::Settle(int32_t step) {
  --left_;
  if (skips_) return;
  LetGo(waits_.after_step[step]);
  for (const int32_t segment : waits_.segments_after[step]) --segment_waits_[segment];
}

void HostProgress::Skip(bool counted) {
  --left_;
  if (counted) work_left_.fetch_sub(1, std::memory_order_seq_cst);
}

void HostProgress::LetGo(std::span<const int32_t> tasks) {
  for (const int32_t task : tasks) {
    if (--step_waits_[task] == 0) Append(fresh_, task);
  }
}

void HostProgress::Append(List& list, int32_t task) {
  next_[task] = -1;
  (list.first < 0 ? list.first : next_[list.last]) = task;
  list.last = task;
}

int32_t HostProgress::Pop(List& list) {
  const int32_t task = list.first;
  if (task >= 0) list.first = next_[task];
  return task;
}

}  // namespace penstock::runtime
