// Poller: the thread that sees what devices ask the host for (src/driver/question.h), and answers or has it answered.
//
// It is awake only while somebody is watched, that is while runs are in flight whose kernels may ask: for a fifth of a
// millisecond after something was asked it looks without a pause, then it lets others have the core between two looks,
// then it naps. It calls no driver, for that might wait for the very kernel that waits for it.
//
// Ownership: borrows what it watches.
// Threads:   thread-safe. Look is called by the poller's thread alone.
// Locks:     mu_, a leaf: never held while it looks.
// Errors:    the constructor throws std::system_error where the system gives no thread.
#pragma once

#include <chrono>
#include <thread>
#include <vector>

#include "src/base/mutex.h"

namespace penstock::host {

class Poller {
 public:
  class Watched {
   public:
    // Looks for questions. True: there was a new one.
    virtual bool Look() = 0;

   protected:
    ~Watched() = default;
  };

  Poller();
  ~Poller() { Stop(); }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void Watch(Watched* watched);
  // Returns when it is not being looked at, and will not be.
  void Forget(Watched* watched);
  // Whether the calling thread is a poller's.
  static bool IsCurrent();
  // Ends the thread. May be called again; a second caller waits for the first.
  void Stop();

 private:
  void Loop();
  bool LookAtAll();
  Watched* Take(size_t index);
  void Put();
  static void Rest(std::chrono::nanoseconds idle);

  base::Mutex join_mu_;
  base::Mutex mu_;
  base::CondVar changed_;  // something to watch, or to stop
  base::CondVar looked_;
  std::vector<Watched*> watched_ ABSL_GUARDED_BY(mu_);
  Watched* looking_at_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::host
