// HostcallPoller: the thread that sees what devices ask the host for (src/driver/hostcall_slot.h), and answers or has
// it answered.
//
// It is awake only while somebody is watched, that is while runs are in flight whose kernels may ask: for a fifth of a
// millisecond after something was asked it looks without a pause, then it lets others have the core between two looks,
// then it naps. It calls no driver, for that might wait for the very kernel that waits for it.
//
// A second thread, the watchdog, sees whether it still looks, since what it calls may not return. While somebody is
// watched the watchdog wakes a few times in the span of the patience, and tells all that are watched how often the
// poller has looked and how much time counts since the last beat; of a gap of more than a second between two beats of
// its own nothing counts, for then the process stood still. With nothing to watch it sleeps without a limit.
//
// Ownership: borrows what it watches.
// Threads:   thread-safe. Look is called by the poller's thread alone, Beat by the watchdog's.
// Locks:     mu_, a leaf: never held while it looks, but held while it beats.
// Errors:    the constructor throws std::system_error where the system gives no threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/mutex.h"

namespace penstock::host {

class HostcallPoller {
 public:
  class Source;
  // What the watchdog has seen of the poller.
  struct Sign {
    uint64_t looks;  // that have ended
    std::chrono::nanoseconds counted;  // of the time since the last beat
    const Source* looking_at;  // now; null: nothing
  };
  class Source {
   public:
    // Looks for questions. True: there was a new one.
    virtual bool Look() = 0;
    // Never blocks, and calls nobody.
    virtual void Beat(const Sign& sign) = 0;
    // What Look is calling now, by any thread; empty: nothing.
    virtual std::string Calling() const = 0;

   protected:
    ~Source() = default;
  };

  struct Options {
    std::chrono::nanoseconds patience = std::chrono::seconds(10);  // of those that are watched; sets the pace of beats
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;  // of the watchdog
  };
  HostcallPoller() : HostcallPoller(Options()) {}
  explicit HostcallPoller(Options options);
  ~HostcallPoller() { Stop(); }
  HostcallPoller(const HostcallPoller&) = delete;
  HostcallPoller& operator=(const HostcallPoller&) = delete;

  void Watch(Source* watched);
  // Returns when it is not being looked at, or told of beats, and will not be.
  void Forget(Source* watched);
  // Whether the calling thread is a poller's.
  static bool IsCurrent();
  // Ends the threads. May be called again; a second caller waits for the first.
  void Stop();

 private:
  void Loop();
  void Guard();
  void BeatAll(std::chrono::nanoseconds counted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool LookAtAll();
  Source* Take(size_t index);
  void Put();
  static void Rest(std::chrono::nanoseconds idle);

  const Options options_;
  base::Mutex join_mu_;  // held while the threads are joined; a second Stop waits for the first
  base::Mutex mu_;
  base::CondVar changed_;  // something to watch, or to stop
  base::CondVar looked_;
  base::CondVar guard_;  // the watchdog's sleep
  bool guard_sleeps_ ABSL_GUARDED_BY(mu_) = false;  // without a limit
  uint64_t looks_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Source*> watched_ ABSL_GUARDED_BY(mu_);
  Source* looking_at_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_, watchdog_;
};

}  // namespace penstock::host
