// StateOrder: in which order the users of each State come: runs, and calls of Set, Read and Reset.
//
// Each State has a queue of *places*; all places of one user are its *ticket*, entered in one step, so the queues of
// all States of a runtime agree with one order, that of the tickets' serials. A place comes behind earlier ones it
// conflicts with: a writer behind readers and the last writer, a reader behind the last writer. It keeps its place
// until its user has drained, so looking back along the queue shows all there still is to wait for.
//
// No deadlock: whoever waits here waits for a lower serial only, and holds everything else it needs (slot, bindings)
// already. The lowest serial waits for nothing.
//
// Events: a successor waits for the events a run recorded behind its last touches, without the lock, with the run's
// executable pinned. The run may drain meanwhile and its slot be taken by another run of the same graph; that one
// touches the same State, came later and conflicts as well (the successor, or the graph itself, writes), so it records
// nothing before the successor has passed its own first touch. Where the States are those of a key and that run has
// another key, the successor may wait for its events instead: needlessly, and never in a circle, since whoever waits
// for an event was submitted after its record.
//
// Poison: a run that fails after it may have written a State spoils it for those behind. Until it has drained this is
// read off its RunFault; when it leaves, it is written to the State. Verdict looks back through all users that have not
// drained; a run calls it when it enters, once whenever its submission goes on, and when it has ended. NearestVerdict
// looks only at the State's last writer, so that a run which waits for each of its many States does not look at all of
// them as often.
//
// Ownership: places and tickets belong to slots, or to the call they stand for; States hold their queue.
// Threads:   thread-safe.
// Locks:     mu_ guards all queues, tickets and poisons; nothing but pure functions is called with it held.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/detail/model.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

class InFlight;
struct StatePlace;
struct StateTicket;

// Of one State. Guarded by StateOrder::mu_.
struct StateQueue {
  explicit StateQueue(const StateRecord& r) : record(r) {}
  const StateRecord& record;
  StatePlace* last = nullptr;
  absl::Status poison;  // what is said of it
  uint64_t poison_serial = 0;  // of the user that did it
};

struct StatePlace {
  // Constant once made, but for the queue of a State by key, which changes while nobody has entered.
  StateTicket* ticket = nullptr;
  StateQueue* queue = nullptr;
  bool writes = false;
  const std::vector<driver::Event>* done = nullptr;  // behind the last touches; the slot's, or the State's
  // Set by the user as it submits: what comes next may write the State.
  std::atomic<bool> written{false};
  // Guarded by StateOrder::mu_.
  StatePlace* earlier = nullptr;
  StatePlace* later = nullptr;
  bool submitted = false;  // all of `done` have been recorded
};

struct StateTicket {
  explicit StateTicket(size_t places_in) : places(places_in) {}
  // Constant once made.
  InFlight* core = nullptr;  // null: a call of Set, Read or Reset
  const driver::RunFault* fault = nullptr;
  std::vector<StatePlace> places;
  // Guarded by StateOrder::mu_.
  uint64_t serial = 0;
  uint64_t seen = 0;  // the last look that came by
};

class StateOrder {
 public:
  // Takes the ticket's places in all queues, or none where a State is poisoned or bound to be (`even_poisoned`: Set and
  // Reset come to end that). FailedPrecondition says by which run.
  absl::Status Enter(StateTicket& ticket, bool even_poisoned = false);
  // Gives the places up. If the run has failed, what it may have written is poisoned.
  void Leave(StateTicket& ticket);

  // The nearest place that `place` comes behind and that has a lower serial than `below`.
  struct Ahead {
    uint64_t serial = 0;
    bool submitted = false;
    const std::vector<driver::Event>* done = nullptr;  // good while `core` is held, or the State for a call
    std::shared_ptr<InFlight> core;  // null: a call
  };
  std::optional<Ahead> LookAhead(const StatePlace& place, uint64_t below = UINT64_MAX);
  // The user's last touch has been submitted. True when somebody stands behind it.
  bool Submitted(StatePlace& place);

  // OK, or the poison of a State of the ticket, by a user before it.
  absl::Status Verdict(StateTicket& ticket);
  // The same for one State of a ticket, and only by its last writer: a failure of a run that the writer itself comes
  // behind may go unseen.
  absl::Status NearestVerdict(const StatePlace& place);
  // The same for a State as the next user would find it.
  absl::Status StatusOf(const StateQueue& queue);
  void Poison(StatePlace& place, const absl::Status& cause);
  void ClearPoison(const StatePlace& place);
  // "; ..." on whom the ticket comes behind, or nothing.
  std::string DescribePredecessor(const StateTicket& ticket);

 private:
  // A State as the user `serial` finds it, whose nearest neighbour in the queue is `last`.
  struct View {
    const StateQueue* queue;
    const StatePlace* last;
    uint64_t serial;
  };

  absl::Status VerdictLocked(const View& view) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets `writer` to the run whose own verdict decides, if there is one: it has not failed so far.
  static absl::Status NearestFailure(const View& view, StateTicket*& writer);
  void PoisonLocked(StatePlace& place, const absl::Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const StatePlace* Find(const StatePlace& place, uint64_t below) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  uint64_t next_serial_ ABSL_GUARDED_BY(mu_) = 1;
  uint64_t look_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<View> views_ ABSL_GUARDED_BY(mu_);  // still to be judged in this look
};

}  // namespace penstock::runtime
