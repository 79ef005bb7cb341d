// Feeders: the threads of one device that help others to submit work to it, and to see that it has ended.
//
// A client adds something to be fed, and feeders call its Feed again and again until it is removed: as many of them as
// are of use, since others that are awake take time from whoever shares their cores. They help: nobody may rely on any
// of them to come, since they may be asleep, busy, or not there at all.
//
// With something to feed a feeder spins for 50 us after it has last done something, then leaves its core to others
// between two looks, and sleeps after 5 ms; with nothing for it, it spins for 200 us, since handing over to a thread
// that is awake takes 2 us and to one that sleeps 44, and then sleeps without a limit until something is
// added or it is woken.
//
// Ownership: borrows what is added, until it is removed.
// Threads:   thread-safe. Feed is called by several feeders at once.
// Ordering:  what happened before Add is visible to Feed; what Feed did, to who has removed it.
// Locks:     join_mu_, for the threads to be joined; none but the bell's elsewhere.
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
#include "src/host/bell.h"
#include "src/host/progress.h"

namespace penstock::host {

class Fed {
 public:
  static constexpr int kAllFeeders = 1 << 16;

  // Does what can be done now, without blocking. Whether that was anything.
  virtual bool Feed() = 0;
  // How many feeders are of use to it at once.
  int most_feeders() const { return most_feeders_; }

 protected:
  explicit Fed(int most_feeders = kAllFeeders) : most_feeders_(most_feeders) {}
  ~Fed() = default;

 private:
  const int most_feeders_;
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

// What is to be fed, and which feeder is inside what. A feeder says where it goes, and goes only if that is still there
// afterwards; who removes something takes it away first and then looks at all feeders: one of the two sees the other
// (sequentially consistent).
//
// `Atomic` is std::atomic but in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class FedPlaces {
 public:
  static constexpr size_t kPlaces = 16;

  explicit FedPlaces(size_t feeders) : feeders_(feeders) {}

  // False: there is no room for more.
  bool Add(Fed* fed) {
    for (Place& place : places_) {
      Fed* none = nullptr;
      if (!place.fed.compare_exchange_strong(none, fed, std::memory_order_seq_cst)) continue;
      wanted_.fetch_add(fed->most_feeders(), std::memory_order_seq_cst);
      return true;
    }
    return false;
  }
  // Of what has been added: no feeder goes inside any more; one that is may stay for a while. Remove is still to
  // follow, or it is added again.
  void Withdraw(Fed* fed) {
    for (Place& place : places_) {
      if (place.fed.load(std::memory_order_relaxed) != fed) continue;
      place.fed.store(nullptr, std::memory_order_seq_cst);
      wanted_.fetch_sub(fed->most_feeders(), std::memory_order_seq_cst);
      return;
    }
  }
  // Of what has been added. Returns when no feeder is inside it, and none will be.
  template <class Wait = SpinAndYield>
  void Remove(Fed* fed) {
    Withdraw(fed);
    Wait wait;
    for (wait.Look(); IsInside(fed); wait.Look()) wait.Rest();
  }
  // Whether it is of use. The first ones are.
  bool Wants(size_t feeder) const { return static_cast<int>(feeder) < wanted_.load(std::memory_order_relaxed); }

  // What is in that place, and the feeder is inside it until Leave; null: nothing is.
  Fed* Enter(size_t feeder, size_t place) {
    Fed* const fed = places_[place].fed.load(std::memory_order_acquire);
    if (fed == nullptr) return nullptr;
    feeders_[feeder].inside.store(fed, std::memory_order_seq_cst);
    if (places_[place].fed.load(std::memory_order_seq_cst) == fed) return fed;
    Leave(feeder);
    return nullptr;
  }
  void Leave(size_t feeder) { feeders_[feeder].inside.store(nullptr, std::memory_order_release); }

 private:
  struct Place {
    Atomic<Fed*> fed{nullptr};
    std::array<std::byte, 56> apart{};
  };
  struct Feeder {
    Atomic<Fed*> inside{nullptr};
    std::array<std::byte, 120> apart{};  // from what other feeders write
  };

  bool IsInside(Fed* fed) const {
    for (const Feeder& feeder : feeders_) {
      if (feeder.inside.load(std::memory_order_seq_cst) == fed) return true;
    }
    return false;
  }

  std::array<Place, kPlaces> places_;
  std::vector<Feeder> feeders_;
  Atomic<int> wanted_{0};  // feeders
};

class Feeders {
 public:
  struct Options {
    int threads = 0;
    std::string name{};  // of each, at most 15 characters
    // Called by each thread when it begins and when it ends.
    std::function<void()> begin = [] {};
    std::function<void()> end = [] {};
  };
  explicit Feeders(Options options);
  ~Feeders() { Stop(); }
  Feeders(const Feeders&) = delete;
  Feeders& operator=(const Feeders&) = delete;

  // False: nobody will feed it, and it is not to be removed.
  bool Add(Fed* fed);
  void Remove(Fed* fed) { places_.Remove(fed); }
  // Of what is idle for now, and removed or added again later: does not wait for who is inside.
  void Withdraw(Fed* fed) { places_.Withdraw(fed); }
  // Where feeders that are of use sleep, though there is something to do. One that is about to sleep may do so.
  void Wake();
  // Behind something new to do: those that are of use look once more before they sleep.
  void Call() { bell_.Ring(); }
  int threads() const { return count_; }
  // Ends the threads and returns when they have ended; what is added from then on nobody feeds. May be called again.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;

  void Work(size_t feeder);
  bool LookAtAll(size_t feeder);
  bool Rest(size_t feeder, Clock::duration idle) const;
  void Sleep(size_t feeder, uint64_t ticket);

  const Options options_;
  FedPlaces<> places_;
  Bell bell_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> asleep_{0};  // feeders that are of use
  base::Mutex join_mu_;
  std::vector<std::thread> joinable_ ABSL_GUARDED_BY(join_mu_);
  int count_ = 0;  // constant after construction
};

}  // namespace penstock::host
