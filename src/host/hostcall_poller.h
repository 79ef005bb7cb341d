// HostcallPoller: the thread that sees the hostcalls of devices (src/driver/hostcall_slot.h), and answers them or has
// them answered.
//
// It is awake only while it has sources, that is while runs are in flight whose kernels may make hostcalls. For a fifth
// of a millisecond after a hostcall it looks without pause, then it yields its core between looks, then it naps. It
// makes no driver calls, since these might wait for the very kernel that waits for it.
//
// A second thread, the watchdog, checks whether the poller still looks, since the code it calls may not return. While
// there are sources, the watchdog wakes a few times within the patience, and tells each source how often the poller has
// looked and how much time counts since the last beat. A gap of more than a second between two of its own beats does
// not count, since the process was then stopped. Without sources it sleeps indefinitely.
//
// Ownership: borrows its sources.
// Threads:   thread-safe. Only the poller's thread calls Look, only the watchdog calls Beat.
// Locks:     mu_, a leaf: never held during Look, but held during Beat.
// Errors:    the constructor throws std::system_error if the system grants no threads.
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
  // The poller's state as the watchdog sees it.
  struct Sign {
    uint64_t looks;  // looks completed
    std::chrono::nanoseconds counted;  // the part of the time since the last beat that counts
    const Source* looking_at;  // the current source; null: none
  };
  class Source {
   public:
    // Looks for hostcalls. Returns whether there was a new one.
    virtual bool Look() = 0;
    // Never blocks, and calls no user code.
    virtual void Beat(const Sign& sign) = 0;
    // Describes what Look is calling now, on any thread; empty: nothing.
    virtual std::string Calling() const = 0;

   protected:
    ~Source() = default;
  };

  struct Options {
    std::chrono::nanoseconds patience = std::chrono::seconds(10);  // of the sources; sets the interval of beats
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;  // for the watchdog
  };
  HostcallPoller() : HostcallPoller(Options()) {}
  explicit HostcallPoller(Options options);
  ~HostcallPoller() { Stop(); }
  HostcallPoller(const HostcallPoller&) = delete;
  HostcallPoller& operator=(const HostcallPoller&) = delete;

  void Watch(Source* watched);
  // Returns when the source is not being looked at, or told of beats, and will not be.
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
  base::CondVar changed_;  // there is a source, or it must stop
  base::CondVar looked_;
  base::CondVar guard_;  // wakes the watchdog
  bool guard_sleeps_ ABSL_GUARDED_BY(mu_) = false;  // indefinitely
  uint64_t looks_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Source*> watched_ ABSL_GUARDED_BY(mu_);
  Source* looking_at_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_, watchdog_;
};

}  // namespace penstock::host
