#include "src/runtime/pipeline/submitter_wakeup.h"
#include "src/runtime/pipeline/tuning.h"

#include <algorithm>

namespace penstock::runtime {

SubmitterWakeup::SubmitterWakeup(PipelineState& state, RunQueues& queues) : state_(state), queues_(queues) {
  for (const auto& queue : queues.queues()) {
    clients_.push_back(std::make_unique<Client>(*this, *queue, queues.submission_threads(queue->index)));
  }
}

// If there is no room for another client, the queue continues without submission threads, and Add is tried again.
void SubmitterWakeup::Call() {
  const Clock::time_point now = Clock::now();
  const bool busy = queues_.Busy() || state_.launching.AnyLeft();
  if (busy) busy_ = now;
  const bool over = now > busy_ + tuning::kCalledFor;
  if (!busy && (!over || !queues_.MayDismiss())) return;
  bool more = false;
  for (const auto& client : clients_) {
    if (client->threads == nullptr) continue;
    if (client->added == busy) {
      const bool left = state_.launching.left_ns(client->queue.index) != 0;
      const bool theirs = busy && state_.activity.waiting.load() < static_cast<int>(clients_.size());
      if (left || (theirs && now < RunQueues::StaleAt(client->queue, tuning::kMovesOften))) client->threads->Wake();
    } else if (busy) {
      client->queue.submitter.store(nullptr, std::memory_order_relaxed);
      client->added = client->threads->Add(client.get());
      more = more || client->added;
    } else {
      client->threads->Withdraw(client.get());
      client->added = false;
    }
  }
  if (!more || !state_.launching.enabled()) return;
  std::vector<bool> served;
  for (const auto& client : clients_) served.push_back(client->added);
  queues_.SetServed(served);
}

void SubmitterWakeup::Dismiss() {
  for (const auto& client : clients_) {
    if (client->threads != nullptr) client->threads->Remove(client.get());
  }
}

bool SubmitterWakeup::Look(Client& client) {
  RunQueue& queue = client.queue;
  const int64_t left = client.left_ns.load(std::memory_order_relaxed);
  const bool has_items = left != 0 && NsOf(Clock::now()) >= left;
  const void* const submitter = queue.submitter.load(std::memory_order_relaxed);
  if (!has_items && submitter != RunQueues::CurrentThreadId()) {
    const Clock::time_point now = Clock::now();
    if (NsOf(now) < client.next_look_ns.load(std::memory_order_relaxed)) return false;
    const Clock::time_point stale_at =
        RunQueues::StaleAt(queue, submitter == nullptr ? std::chrono::nanoseconds(tuning::kStaleForSubmissionThreads)
                                                       : tuning::kStaleForOthers);
    client.next_look_ns.store(NsOf(std::max(now + tuning::kLookEvery, stale_at)), std::memory_order_relaxed);
    if (now < stale_at) return false;
  }
  if (!has_items && (!queues_.Busy() || state_.activity.waiting.load() >= static_cast<int>(clients_.size())))
    return false;
  const bool moved = queues_.CheckAndSubmit(queue);
  if (moved) queue.submitter.store(RunQueues::CurrentThreadId(), std::memory_order_relaxed);
  return moved;
}

bool SubmitterWakeup::Poll() {
  const Clock::time_point now = Clock::now();
  if (now < next_poll_) return false;
  // A waiting thread advances it, and every read of the count costs the waiting threads.
  const bool waited_for = state_.activity.waiting.load(std::memory_order_relaxed) > 0;
  next_poll_ = now + (waited_for ? tuning::kStaleForPolls : tuning::kPollEvery);
  if (now >= next_advance_) {
    next_advance_ = now + tuning::kAdvanceEvery;
    return true;
  }
  if (waited_for || !queues_.Busy()) return false;
  for (const auto& client : clients_) {
    if (now >= RunQueues::StaleAt(client->queue, tuning::kStaleForPolls)) queues_.Check(client->queue);
  }
  return false;
}

}  // namespace penstock::runtime
