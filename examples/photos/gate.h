// TrySemaphore: lets at most so many threads through at once.
//
// The decoders and the encoders of the job have threads of their own, as many of each as there are workers, and share
// one gate: so every worker can do whatever there is to do, and never more of them are at work than were asked for.
//
// Threads: thread-safe. Whoever holds a Pass must not wait for another thread that needs one.
#pragma once

#include <condition_variable>
#include <mutex>

namespace photos {

class TrySemaphore {
 public:
  explicit TrySemaphore(int passes) : free_(passes) {}

  // Waits until one of the passes is free and holds it.
  class Pass {
   public:
    explicit Pass(TrySemaphore* gate) : gate_(gate) {
      std::unique_lock<std::mutex> lock(gate_->mu_);
      gate_->freed_.wait(lock, [this] { return gate_->free_ > 0; });
      --gate_->free_;
    }
    ~Pass() {
      {
        std::lock_guard<std::mutex> lock(gate_->mu_);
        ++gate_->free_;
      }
      gate_->freed_.notify_one();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    TrySemaphore* const gate_;
  };

 private:
  std::mutex mu_;
  std::condition_variable freed_;
  int free_;  // guarded by mu_
};

}  // namespace photos
