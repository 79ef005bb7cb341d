// SubmissionThreads: the threads of one device that help others to submit work to it, and to see that it has ended.
//
// A client adds something to be fed, and submission threads call its Feed again and again until it is removed: as many
// of them as are of use, since others that are awake take time from whoever shares their cores. They help: nobody may
// rely on any of them to come, since they may be asleep, busy, or not there at all.
//
// With something to feed a submission thread spins for 50 us after it has last done something, then leaves its core to
// others between two looks, and sleeps after 5 ms; with nothing for it, it spins for 200 us, since handing over to a
// thread that is awake takes 2 us and to one that sleeps 44, and then sleeps without a limit until something is added
// or it is woken.
//
// Ownership: borrows what is added, until it is removed.
// Threads:   thread-safe. Feed is called by several submission threads at once.
// Ordering:  what happened before Add is visible to Feed; what Feed did, to who has removed it.
// Locks:     join_mu_, for the threads to be joined; none but the event count's elsewhere.
// Errors:    none. Where the system refuses threads there are fewer, or none: slower, not wrong.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/mutex.h"
#include "src/host/event_count.h"
#include "src/host/progress.h"

namespace penstock::host {

class SubmissionClient {
 public:
  static constexpr int kAllThreads = 1 << 16;

  // Does what can be done now, without blocking. Whether that was anything.
  virtual bool Feed() = 0;
  // How many submission threads are of use to it at once.
  int max_threads() const { return max_threads_; }

 protected:
  explicit SubmissionClient(int max_threads = kAllThreads) : max_threads_(max_threads) {}
  ~SubmissionClient() = default;

 private:
  const int max_threads_;
};

// How a thread waits for others that are awake: it looks, and rests before it looks again. `Look` is for tests that
// explore schedules.
class SpinAndYield {
 public:
  void Look() {}
  void Rest() { ++looks_ < kSpins ? CpuPause() : std::this_thread::yield(); }

 private:
  static constexpr int kSpins = 2000;
  int looks_ = 0;
};

// What is to be fed, and which submission thread is inside what. A submission thread says where it goes, and goes only
// if that is still there afterwards; who removes something takes it away first and then looks at all submission
// threads: one of the two sees the other (sequentially consistent).
//
// `Atomic` is std::atomic but in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class ClientSlots {
 public:
  static constexpr size_t kPlaces = 16;

  explicit ClientSlots(size_t submission_threads) : submission_threads_(submission_threads) {}

  // False: there is no room for more.
  bool Add(SubmissionClient* fed) {
    for (Place& place : places_) {
      SubmissionClient* none = nullptr;
      if (!place.fed.compare_exchange_strong(none, fed, std::memory_order_seq_cst)) continue;
      wanted_.fetch_add(fed->max_threads(), std::memory_order_seq_cst);
      return true;
    }
    return false;
  }
  // Of what has been added: no submission thread goes inside any more; one that is may stay for a while. Remove is
  // still to follow, or it is added again.
  void Withdraw(SubmissionClient* fed) {
    for (Place& place : places_) {
      if (place.fed.load(std::memory_order_relaxed) != fed) continue;
      place.fed.store(nullptr, std::memory_order_seq_cst);
      wanted_.fetch_sub(fed->max_threads(), std::memory_order_seq_cst);
      return;
    }
  }
  // Of what has been added. Returns when no submission thread is inside it, and none will be.
  template <class Wait = SpinAndYield>
  void Remove(SubmissionClient* fed) {
    Withdraw(fed);
    Wait wait;
    for (wait.Look(); IsInside(fed); wait.Look()) wait.Rest();
  }
  // Whether it is of use. The first ones are.
  bool Wants(size_t submitter) const { return static_cast<int>(submitter) < wanted_.load(std::memory_order_relaxed); }

  // What is in that place, and the submission thread is inside it until Leave; null: nothing is.
  SubmissionClient* Enter(size_t submitter, size_t place) {
    SubmissionClient* const fed = places_[place].fed.load(std::memory_order_acquire);
    if (fed == nullptr) return nullptr;
    submission_threads_[submitter].inside.store(fed, std::memory_order_seq_cst);
    if (places_[place].fed.load(std::memory_order_seq_cst) == fed) return fed;
    Leave(submitter);
    return nullptr;
  }
  void Leave(size_t submitter) { submission_threads_[submitter].inside.store(nullptr, std::memory_order_release); }

 private:
  struct Place {
    Atomic<SubmissionClient*> fed{nullptr};  // what is to be fed; null: nothing
    std::array<std::byte, 56> apart{};
  };
  struct Feeder {
    Atomic<SubmissionClient*> inside{nullptr};  // what this thread is in; null: nothing
    std::array<std::byte, 120> apart{};  // from what other submission threads write
  };

  bool IsInside(SubmissionClient* fed) const {
    for (const Feeder& submitter : submission_threads_) {
      if (submitter.inside.load(std::memory_order_seq_cst) == fed) return true;
    }
    return false;
  }

  std::array<Place, kPlaces> places_;
  std::vector<Feeder> submission_threads_;
  Atomic<int> wanted_{0};  // how many submission threads are of use; a hint
};

class SubmissionThreads {
 public:
  struct Options {
    int threads = 0;
    std::string name{};  // of each, at most 15 characters
    // Called by each thread when it begins and when it ends.
    std::function<void()> begin = [] {};
    std::function<void()> end = [] {};
  };
  explicit SubmissionThreads(Options options);
  ~SubmissionThreads() { Stop(); }
  SubmissionThreads(const SubmissionThreads&) = delete;
  SubmissionThreads& operator=(const SubmissionThreads&) = delete;

  // False: nobody will feed it, and it is not to be removed.
  bool Add(SubmissionClient* fed);
  void Remove(SubmissionClient* fed) { places_.Remove(fed); }
  // Of what is idle for now, and removed or added again later: does not wait for who is inside.
  void Withdraw(SubmissionClient* fed) { places_.Withdraw(fed); }
  // Where submission threads that are of use sleep, though there is something to do. One that is about to sleep may do
  // so.
  void Wake();
  // Behind something new to do: those that are of use look once more before they sleep.
  void Call() { event_count_.Notify(); }
  int threads() const { return count_; }
  // Ends the threads and returns when they have ended; what is added from then on nobody feeds. May be called again.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;

  void Work(size_t submitter);
  bool LookAtAll(size_t submitter);
  bool Rest(size_t submitter, Clock::duration idle) const;
  void Sleep(size_t submitter, uint64_t ticket);

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
