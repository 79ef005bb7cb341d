#include "src/runtime/state_order.h"

#include "graph/message.h"
#include "src/base/status.h"
#include "src/runtime/executable_core.h"

namespace penstock::runtime {
namespace {

std::string Label(const StateRecord& record) { return "state " + graph::Quoted(record.name); }

constexpr std::string_view kBy = ": poisoned by ", kAdvice = "; its contents are unspecified; Set or Reset it";

// A run that fails since it found a State poisoned hands that on, so a chain of runs is told by its first failure
// alone.
std::string RootOf(const absl::Status& cause) {
  std::string text = base::Str(cause.message());
  const size_t by = text.find(kBy);
  if (by == std::string::npos || !text.ends_with(kAdvice)) return text;
  const size_t begin = by + kBy.size();
  return text.substr(begin, text.size() - kAdvice.size() - begin);
}

absl::Status PoisonedBy(const StateRecord& record, const absl::Status& cause) {
  std::string text = Label(record);
  text.append(kBy).append(RootOf(cause)).append(kAdvice);
  return absl::FailedPreconditionError(text);
}

// Calls share the State's own stream and events, so they come one behind the other even to read.
bool Conflict(const StatePlace& a, const StatePlace& b) {
  return a.writes || b.writes || (a.ticket->core == nullptr && b.ticket->core == nullptr);
}

}  // namespace

absl::Status StateOrder::Enter(StateTicket& ticket, bool even_poisoned) {
  base::MutexLock lock(mu_);
  if (!even_poisoned) {
    ++look_;
    for (const StatePlace& place : ticket.places) {
      absl::Status verdict = VerdictBehind(*place.queue, place.queue->last, next_serial_);
      if (!verdict.ok()) return verdict;
    }
  }
  ticket.serial = next_serial_++;
  for (StatePlace& place : ticket.places) {
    place.written.store(false, std::memory_order_relaxed);
    place.submitted = false;
    place.later = nullptr;
    place.earlier = place.queue->last;
    if (place.earlier != nullptr) place.earlier->later = &place;
    place.queue->last = &place;
  }
  return absl::OkStatus();
}

void StateOrder::Leave(StateTicket& ticket) {
  base::MutexLock lock(mu_);
  const bool failed = ticket.fault != nullptr && ticket.fault->failed();
  for (StatePlace& place : ticket.places) {
    if (failed && place.written.load(std::memory_order_acquire)) PoisonLocked(place, FailureOf(ticket));
    if (place.earlier != nullptr) place.earlier->later = place.later;
    (place.later != nullptr ? place.later->earlier : place.queue->last) = place.earlier;
  }
}

// A reader looks past readers to the last writer; what came before a writer is that one's to wait for. If it never gets
// there it leaves the queue, and is looked past.
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
  return VerdictLocked(ticket);
}

absl::Status StateOrder::StatusOf(const StateQueue& queue) {
  base::MutexLock lock(mu_);
  ++look_;
  return VerdictBehind(queue, queue.last, next_serial_);
}

// Every user is looked at once a look, however many ways lead to it; what is wrong ends the look at once.
absl::Status StateOrder::VerdictLocked(StateTicket& ticket) {
  if (ticket.clean == look_) return absl::OkStatus();
  for (const StatePlace& place : ticket.places) {
    absl::Status verdict = VerdictBehind(*place.queue, place.earlier, ticket.serial);
    if (!verdict.ok()) return verdict;
  }
  ticket.clean = look_;
  return absl::OkStatus();
}

// Of a State as the user `serial` finds it, whose nearest neighbour in the queue is `last`. The last user that may have
// written it answers for those before, and a Set or Reset makes up for them.
absl::Status StateOrder::VerdictBehind(const StateQueue& queue, const StatePlace* last, uint64_t serial) {
  uint64_t from = 0;
  for (const StatePlace* p = last; p != nullptr; p = p->earlier) {
    const bool sets = p->ticket->core == nullptr && p->writes;
    if (sets) from = p->ticket->serial;
    if (!sets && !p->written.load(std::memory_order_acquire)) continue;
    const absl::Status failure = FailureOf(*p->ticket);
    if (!failure.ok()) return PoisonedBy(queue.record, failure);
    break;
  }
  const bool poisoned = !queue.poison.ok() && queue.poison_serial >= from && queue.poison_serial < serial;
  return poisoned ? queue.poison : absl::OkStatus();
}

absl::Status StateOrder::FailureOf(StateTicket& ticket) {
  if (ticket.fault == nullptr) return absl::OkStatus();
  if (ticket.fault->failed()) return ticket.core->Describe(ticket.fault->node(), ticket.fault->status());
  const absl::Status verdict = VerdictLocked(ticket);
  return verdict.ok() ? verdict : ticket.core->Describe(-1, verdict);
}

void StateOrder::PoisonLocked(StatePlace& place, const absl::Status& cause) {
  // The first in the order counts: those between it and a later one are behind a failure too.
  if (!place.queue->poison.ok() && place.queue->poison_serial <= place.ticket->serial) return;
  place.queue->poison = PoisonedBy(place.queue->record, cause);
  place.queue->poison_serial = place.ticket->serial;
}

// A Set or Reset made up for what was wrong before; nobody behind it has touched the State yet.
void StateOrder::Poison(StatePlace& place, const absl::Status& cause) {
  base::MutexLock lock(mu_);
  place.queue->poison = absl::OkStatus();
  PoisonLocked(place, cause);
}

void StateOrder::ClearPoison(const StatePlace& place) {
  base::MutexLock lock(mu_);
  place.queue->poison = absl::OkStatus();
}

std::string StateOrder::DescribeAhead(const StateTicket& ticket) {
  base::MutexLock lock(mu_);
  for (const StatePlace& place : ticket.places) {
    const StatePlace* ahead = Find(place, UINT64_MAX);
    if (ahead == nullptr) continue;
    const ExecutableCore* core = ahead->ticket->core;
    return "; it comes behind " +
           (core != nullptr ? "a run of " + graph::Prefix(core->model()) : "a Set, Read or Reset") +
           " in the order of " + Label(place.queue->record) + ", which has not drained";
  }
  return "";
}

}  // namespace penstock::runtime
