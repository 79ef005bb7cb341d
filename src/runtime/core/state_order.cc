#include "src/runtime/core/state_order.h"

#include <ranges>

#include "graph/common/message.h"
#include "src/base/status.h"
#include "src/runtime/core/in_flight.h"

namespace penstock::runtime {
namespace {

std::string Label(const StateRecord& record) { return "state " + graph::Quoted(record.name); }

constexpr std::string_view kBy = ": poisoned by ", kAdvice = "; its contents are unspecified; Set or Reset it";

// A run that fails because it found a State poisoned passes that error on, and so may the user's code, in words of its
// own; a chain of such failures is described by the first one alone.
std::string RootOf(const absl::Status& cause) {
  std::string text = base::Str(cause.message());
  const size_t by = text.find(kBy), begin = by + kBy.size();
  const size_t end = by == std::string::npos ? by : text.find(kAdvice, begin);
  return end == std::string::npos ? text : text.substr(begin, end - begin);
}

absl::Status PoisonedBy(const StateRecord& record, const absl::Status& cause) {
  std::string text = Label(record);
  text.append(kBy).append(RootOf(cause)).append(kAdvice);
  return absl::FailedPreconditionError(text);
}

// Calls share the State's own stream and events, so they run one after the other even if they only read.
bool Conflict(const StatePlace& a, const StatePlace& b) {
  return a.writes || b.writes || (a.ticket->core == nullptr && b.ticket->core == nullptr);
}

}  // namespace

absl::Status StateOrder::Enter(StateTicket& ticket) {
  base::MutexLock lock(mu_);
  ++look_;
  for (const StatePlace& place : ticket.places) {
    absl::Status verdict = VerdictLocked({place.queue, place.queue->last, next_serial_});
    if (!verdict.ok()) return verdict;
  }
  EnterLocked(ticket);
  return absl::OkStatus();
}

void StateOrder::EnterPoisoned(StateTicket& ticket) {
  base::MutexLock lock(mu_);
  EnterLocked(ticket);
}

void StateOrder::EnterLocked(StateTicket& ticket) {
  ticket.serial = next_serial_++;
  for (StatePlace& place : ticket.places) {
    place.written.store(false, std::memory_order_relaxed);
    place.submitted = false;
    place.later = nullptr;
    place.earlier = place.queue->last;
    if (place.earlier != nullptr) place.earlier->later = &place;
    place.queue->last = &place;
  }
}

void StateOrder::Leave(StateTicket& ticket) {
  base::MutexLock lock(mu_);
  const bool failed = ticket.fault != nullptr && ticket.fault->failed();
  for (StatePlace& place : ticket.places) {
    if (failed && place.written.load(std::memory_order_acquire)) {
      PoisonLocked(place, ticket.core->Describe(ticket.fault->node(), ticket.fault->status()));
    }
    if (place.earlier != nullptr) place.earlier->later = place.later;
    (place.later != nullptr ? place.later->earlier : place.queue->last) = place.earlier;
  }
}

// A reader skips readers back to the last writer; whatever precedes a writer is for that writer to wait for. If the
// writer never gets that far, it leaves the queue and is skipped too.
const StatePlace* StateOrder::Find(const StatePlace& place, uint64_t below) const {
  for (const StatePlace* p = place.earlier; p != nullptr; p = p->earlier) {
    if (p->ticket->serial < below && Conflict(place, *p)) return p;
    if (p->writes) return nullptr;
  }
  return nullptr;
}

std::optional<StateOrder::Ahead> StateOrder::LookAhead(const StatePlace& place, uint64_t below) {
  base::MutexLock lock(mu_);
  const StatePlace* found = Find(place, below);
  if (found == nullptr) return std::nullopt;
  const StateTicket& ticket = *found->ticket;
  return Ahead{ticket.serial, found->submitted, found->done,
               ticket.core == nullptr ? nullptr : ticket.core->shared_from_this()};
}

bool StateOrder::Submitted(StatePlace& place) {
  base::MutexLock lock(mu_);
  place.submitted = true;
  return place.later != nullptr;
}

absl::Status StateOrder::Verdict(StateTicket& ticket) {
  base::MutexLock lock(mu_);
  ++look_;
  for (const StatePlace& place : ticket.places) {
    absl::Status verdict = VerdictLocked({place.queue, place.earlier, ticket.serial});
    if (!verdict.ok()) return verdict;
  }
  return absl::OkStatus();
}

absl::Status StateOrder::NearestVerdict(const StatePlace& place) {
  base::MutexLock lock(mu_);
  StateTicket* writer = nullptr;
  const absl::Status failure = NearestFailure({place.queue, place.earlier, place.ticket->serial}, writer);
  return failure.ok() ? failure : PoisonedBy(place.queue->record, failure);
}

absl::Status StateOrder::StatusOf(const StateQueue& queue) {
  base::MutexLock lock(mu_);
  ++look_;
  return VerdictLocked({&queue, queue.last, next_serial_});
}

// Each user is checked once for each check, however many paths lead to it; the first failure ends the check.
absl::Status StateOrder::VerdictLocked(const View& view) {
  for (views_.assign(1, view); !views_.empty();) {
    const View next = views_.back();
    views_.pop_back();
    StateTicket* writer = nullptr;
    const absl::Status failure = NearestFailure(next, writer);
    if (!failure.ok()) return PoisonedBy(view.queue->record, failure);
    if (writer == nullptr || writer->seen == look_) continue;
    writer->seen = look_;
    for (const StatePlace& place : std::views::reverse(writer->places)) {
      views_.push_back({place.queue, place.earlier, writer->serial});
    }
  }
  return absl::OkStatus();
}

// The last user that may have written the State answers for earlier ones; a Set or Reset makes up for them.
absl::Status StateOrder::NearestFailure(const View& view, StateTicket*& writer) {
  uint64_t from = 0;
  for (const StatePlace* p = view.last; p != nullptr; p = p->earlier) {
    if (p->clears) from = p->ticket->serial;
    if (!p->clears && !p->written.load(std::memory_order_acquire)) continue;
    const driver::RunFault* const fault = p->ticket->fault;
    if (fault == nullptr) break;
    if (fault->failed()) return p->ticket->core->Describe(fault->node(), fault->status());
    writer = p->ticket;
    break;
  }
  const StateQueue& queue = *view.queue;
  const bool poisoned = !queue.poison.ok() && queue.poison_serial >= from && queue.poison_serial < view.serial;
  return poisoned ? queue.poison : absl::OkStatus();
}

void StateOrder::PoisonLocked(StatePlace& place, const absl::Status& cause) {
  // The first failure in the order counts: users between it and a later one also come after a failure.
  if (!place.queue->poison.ok() && place.queue->poison_serial <= place.ticket->serial) return;
  place.queue->poison = PoisonedBy(place.queue->record, cause);
  place.queue->poison_serial = place.ticket->serial;
}

// A Set or Reset has made up for earlier failures, and no user after it has touched the State yet.
void StateOrder::Poison(StatePlace& place, const absl::Status& cause) {
  base::MutexLock lock(mu_);
  place.queue->poison = absl::OkStatus();
  PoisonLocked(place, cause);
}

void StateOrder::ClearPoison(const StatePlace& place) {
  base::MutexLock lock(mu_);
  place.queue->poison = absl::OkStatus();
}

std::string StateOrder::DescribePredecessor(const StateTicket& ticket) {
  base::MutexLock lock(mu_);
  for (const StatePlace& place : ticket.places) {
    const StatePlace* ahead = Find(place, UINT64_MAX);
    if (ahead == nullptr) continue;
    const InFlight* core = ahead->ticket->core;
    return "; it waits for " + (core != nullptr ? "a run of " + core->Label() : "a Set, Read or Reset") +
           " in the order of " + Label(place.queue->record) + ", which has not drained";
  }
  return "";
}

}  // namespace penstock::runtime
