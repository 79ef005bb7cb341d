// SubmissionThreads: threads of one device that help to submit work to it, and to see that it has ended.
//
// A client is added, and submission threads call its Feed again and again until it is removed. Only as many threads as
// are of use do so, since awake threads take time from others on their cores. They merely help: no client may rely on
// one, since they may be asleep, busy, or absent.
//
// While it has clients, a submission thread spins for 50 us after it last did something, then yields its core between
// looks, and sleeps after 5 ms. Without clients it spins for 200 us, since a handover takes 2 us to an awake thread and
// 44 us to a sleeping one, and then sleeps until a client is added or it is woken.
//
// Ownership: borrows a client until it is removed.
// Threads:   thread-safe. Several submission threads call Feed concurrently.
// Ordering:  whatever happened before Add is visible to Feed; the effects of Feed are visible after Remove.
// Locks:     join_mu_, for the threads to be joined; otherwise only the event count's.
// Errors:    none. If the system refuses threads there are fewer, or none: slower, not wrong.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "penstock/detail/table.h"
#include "src/base/mutex.h"
#include "src/host/event_count.h"
#include "src/host/progress.h"
#include "src/host/tuning.h"

namespace penstock::host {

using SubmitterId = detail::Id<struct SubmitterTag>;  // a submission thread of one device

class SubmissionClient {
 public:
  static constexpr int kAllThreads = 1 << 16;

  // Does what can be done now, without blocking. Returns whether that was anything.
  virtual bool Feed() = 0;
  // The number of submission threads that it can use concurrently.
  int max_threads() const { return max_threads_; }

 protected:
  explicit SubmissionClient(int max_threads = kAllThreads) : max_threads_(max_threads) {}
  ~SubmissionClient() = default;

 private:
  const int max_threads_;
};

// How a thread waits for others that are awake: it looks, and rests before it looks again. `Look` is a hook for tests
// that explore schedules.
class SpinAndYield {
 public:
  void Look() {}
  void Rest() { ++looks_ < kLooksBeforeYield ? CpuPause() : std::this_thread::yield(); }

 private:
  int looks_ = 0;
};

// The clients, and which client each submission thread is inside. A submission thread announces the client it enters,
// and enters only if the client is still there afterwards. Remove takes a client away first and then checks all
// submission threads: so one of the two sees the other (sequentially consistent).
//
// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class ClientSlots {
 public:
  static constexpr int kPlaces = 16;

  explicit ClientSlots(int submission_threads) : submission_threads_(submission_threads) {}

  // False: there is no space for more.
  bool Add(SubmissionClient* fed) {
    for (Place& place : places_) {
      SubmissionClient* none = nullptr;
      if (!place.fed.compare_exchange_strong(none, fed, std::memory_order_seq_cst)) continue;
      wanted_.fetch_add(fed->max_threads(), std::memory_order_seq_cst);
      return true;
    }
    return false;
  }
  // For an added client: submission threads no longer enter it; one inside may stay for a while. Remove it later,
  // or add it again.
  void Withdraw(SubmissionClient* fed) {
    for (Place& place : places_) {
      if (place.fed.load(std::memory_order_relaxed) != fed) continue;
      place.fed.store(nullptr, std::memory_order_seq_cst);
      wanted_.fetch_sub(fed->max_threads(), std::memory_order_seq_cst);
      return;
    }
  }
  // For an added client. Returns when no submission thread is inside it or will enter it.
  template <class Wait = SpinAndYield>
  void Remove(SubmissionClient* fed) {
    Withdraw(fed);
    Wait wait;
    for (wait.Look(); IsInside(fed); wait.Look()) wait.Rest();
  }
  // Whether this submission thread is of use; the first ones are.
  bool Wants(SubmitterId submitter) const { return submitter < wanted_.load(std::memory_order_relaxed); }

  // Returns the client in that place, with the submission thread inside it until Leave; null: there is none.
  SubmissionClient* Enter(SubmitterId submitter, int place) {
    SubmissionClient* const fed = places_[place].fed.load(std::memory_order_acquire);
    if (fed == nullptr) return nullptr;
    submission_threads_[submitter].inside.store(fed, std::memory_order_seq_cst);
    if (places_[place].fed.load(std::memory_order_seq_cst) == fed) return fed;
    Leave(submitter);
    return nullptr;
  }
  void Leave(SubmitterId submitter) { submission_threads_[submitter].inside.store(nullptr, std::memory_order_release); }

 private:
  struct Place {
    Atomic<SubmissionClient*> fed{nullptr};  // what is to be fed; null: nothing
    std::array<std::byte, 56> apart{};
  };
  struct Feeder {
    Atomic<SubmissionClient*> inside{nullptr};  // what this thread is in; null: nothing
    std::array<std::byte, 120> apart{};  // avoids false sharing with other submission threads
  };

  bool IsInside(SubmissionClient* fed) const {
    for (const Feeder& submitter : submission_threads_) {
      if (submitter.inside.load(std::memory_order_seq_cst) == fed) return true;
    }
    return false;
  }

  std::array<Place, kPlaces> places_;
  detail::Table<SubmitterId, Feeder> submission_threads_;
  Atomic<int> wanted_{0};  // how many submission threads are of use; a hint
};

class SubmissionThreads {
 public:
  struct Options {
    int threads = 0;
    std::string name{};  // of each thread, at most 15 characters
    // Called on each thread when it begins and when it ends.
    std::function<void()> begin = [] {};
    std::function<void()> end = [] {};
  };
  explicit SubmissionThreads(Options options);
  ~SubmissionThreads() { Stop(); }
  SubmissionThreads(const SubmissionThreads&) = delete;
  SubmissionThreads& operator=(const SubmissionThreads&) = delete;

  // False: no thread will feed it, and it must not be removed.
  bool Add(SubmissionClient* fed);
  void Remove(SubmissionClient* fed) { places_.Remove(fed); }
  // For a client that is idle for now, and removed or added again later: does not wait for threads inside it.
  void Withdraw(SubmissionClient* fed) { places_.Withdraw(fed); }
  // Call when useful submission threads sleep although there is work. A thread about to sleep may still do so.
  void Wake();
  // Call after new work has appeared: useful threads look once more before they sleep.
  void Call() { event_count_.Notify(); }
  int threads() const { return count_; }
  // Ends the threads, and returns when they have ended; clients added later are not fed. May be called again.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;

  void Work(SubmitterId submitter);
  bool LookAtAll(SubmitterId submitter);
  bool Rest(SubmitterId submitter, Clock::duration idle) const;
  void Sleep(SubmitterId submitter, uint64_t ticket);

  const Options options_;
  ClientSlots<> places_;
  EventCount event_count_;
  std::atomic<bool> stopping_{false};  // set once; event_count_ is notified after it
  std::atomic<int> asleep_{0};  // submission threads that are of use and sleep; a hint
  base::Mutex join_mu_;
  std::vector<std::thread> joinable_ ABSL_GUARDED_BY(join_mu_);
  int count_ = 0;  // constant after construction
};

}  // namespace penstock::host
