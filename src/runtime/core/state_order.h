// StateOrder: the order in which users (runs, and calls of Set, Read and Reset) use each State.
//
// Each State has a queue of *places*. All places of one user form its *ticket* and are entered in one step, so the
// queues of all States of a runtime agree with one order, that of the tickets' serials. A place waits for the earlier
// ones that it conflicts with: a writer for readers and the last writer, a reader for the last writer. A user keeps its
// places until it has drained, so the queue shows everything that is left to wait for.
//
// No deadlock: a user here waits only for lower serials and already holds everything else that it needs (slot,
// bindings). The lowest serial waits for nothing.
//
// Events: a successor waits for the events that a run recorded after its last uses. It does so without the lock but
// keeps the run's executable alive. Meanwhile the run may drain and another run of the same graph may take its slot.
// That run uses the same State, came later and conflicts as well (the successor, or the graph itself, writes), so it
// records nothing before the successor has passed its own first use. If the States are those of a key and that run has
// another key, the successor may wait for the later run's events instead: that is unnecessary but never circular, since
// a wait is always submitted after the record that it waits for. The same holds for the events of a State, which its
// calls share: if a call has ended meanwhile, a later one that reads may record them again for a successor that reads.
//
// Poison: a run that fails after it may have written a State poisons it for later users. Until the run has drained, its
// RunFault tells; when it leaves, the poison is written to the State. Verdict checks all earlier users that have not
// drained; a run calls it when it enters, once each time its submission continues, and when it has ended.
// NearestVerdict checks only the State's last writer, so a run that waits for each of many States does not check every
// user that often.
//
// Ownership: places and tickets belong to slots, or to the call that they stand for; each State holds its queue.
// Threads:   thread-safe.
// Locks:     mu_ guards all queues, tickets and poisons; only pure functions are called with it held.
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

// The queue of one State. Guarded by StateOrder::mu_.
struct StateQueue {
  explicit StateQueue(const StateRecord& r) : record(r) {}
  const StateRecord& record;
  StatePlace* last = nullptr;
  absl::Status poison;  // the text for users
  uint64_t poison_serial = 0;  // the serial of the user that poisoned it
};

struct StatePlace {
  // Constant once made, except for the queue of a keyed State and `done`, which change only while no user has entered.
  // What `done` points to never changes.
  StateTicket* ticket = nullptr;
  StateQueue* queue = nullptr;
  bool writes = false;
  bool clears = false;  // a call that writes all of the State, which makes up for earlier failures
  const std::vector<driver::Event>* done = nullptr;  // recorded after the last uses; owned by the slot or the State
  // Set by the user before it submits work that may write the State.
  std::atomic<bool> written{false};
  // Guarded by StateOrder::mu_.
  StatePlace* earlier = nullptr;
  StatePlace* later = nullptr;
  bool submitted = false;  // every event of `done` has been recorded
};

struct StateTicket {
  explicit StateTicket(size_t places_in) : places(places_in) {}
  // Constant once made.
  InFlight* core = nullptr;  // null for a call of Set, Read or Reset
  const driver::RunFault* fault = nullptr;
  std::vector<StatePlace> places;
  // Guarded by StateOrder::mu_.
  uint64_t serial = 0;
  uint64_t seen = 0;  // the last check that visited the ticket
};

class StateOrder {
 public:
  // Takes the ticket's places in all queues. Takes none and returns FailedPrecondition, naming the run, if a State is
  // or will be poisoned.
  absl::Status Enter(StateTicket& ticket);
  // The same for a Set or Reset of all of a State, which ends that: never refused.
  void EnterPoisoned(StateTicket& ticket);
  // Gives up the places. If the run has failed, poisons what it may have written.
  void Leave(StateTicket& ticket);

  // The nearest place that `place` waits for and whose serial is lower than `below`.
  struct Ahead {
    uint64_t serial = 0;
    bool submitted = false;
    const std::vector<driver::Event>* done = nullptr;  // valid while `core`, or for a call the State, is held
    std::shared_ptr<InFlight> core;  // null for a call
  };
  std::optional<Ahead> LookAhead(const StatePlace& place, uint64_t below = UINT64_MAX);
  // Marks that the user's last use has been submitted. Returns true if another user waits for it.
  bool Submitted(StatePlace& place);

  // OK, or the poison of one of the ticket's States by an earlier user.
  absl::Status Verdict(StateTicket& ticket);
  // Like Verdict, for one State of a ticket and only its last writer. It may miss a failure of a run that this writer
  // itself waits for.
  absl::Status NearestVerdict(const StatePlace& place);
  // Like Verdict, for a State as the next user would find it.
  absl::Status StatusOf(const StateQueue& queue);
  void Poison(StatePlace& place, const absl::Status& cause);
  void ClearPoison(const StatePlace& place);
  // "; ..." naming the user that the ticket waits for; empty if there is none.
  std::string DescribePredecessor(const StateTicket& ticket);

 private:
  // A State as seen by the user `serial`, whose nearest neighbour in the queue is `last`.
  struct View {
    const StateQueue* queue;
    const StatePlace* last;
    uint64_t serial;
  };

  void EnterLocked(StateTicket& ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status VerdictLocked(const View& view) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets `writer` to the run whose own verdict decides, if there is one; that run has not failed so far.
  static absl::Status NearestFailure(const View& view, StateTicket*& writer);
  void PoisonLocked(StatePlace& place, const absl::Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const StatePlace* Find(const StatePlace& place, uint64_t below) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  uint64_t next_serial_ ABSL_GUARDED_BY(mu_) = 1;
  uint64_t look_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<View> views_ ABSL_GUARDED_BY(mu_);  // still to be judged in this check
};

}  // namespace penstock::runtime
