// Threads that submit raw work side by side: all of them spin from one job to the next, so that handing one over costs
// as little as it can.
//
// Threads: Run by the one that made it, which is the crew's first member. The device of the others is 0 until a job
//          chooses another.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace bench {

class Crew {
 public:
  explicit Crew(int members) {
    for (int m = 1; m < members; ++m) threads_.emplace_back([this, m] { Work(m); });
  }
  Crew(const Crew&) = delete;
  ~Crew() {
    Release(nullptr);
    for (std::thread& thread : threads_) thread.join();
  }
  int members() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls `job(member)` in each thread, and returns when all have.
  void Run(const std::function<void(int)>& job) {
    Release(&job);
    job(0);
    while (ended_.load(std::memory_order_acquire) < threads_.size()) __builtin_ia32_pause();
  }
  // Between measurements the crew may leave its cores to others.
  void Rest(bool rest) { resting_.store(rest, std::memory_order_relaxed); }

 private:
  void Release(const std::function<void(int)>* job) {
    job_ = job;
    ended_.store(0, std::memory_order_relaxed);
    turn_.fetch_add(1, std::memory_order_release);
  }
  void Work(int member) {
    for (int turn = 1;; ++turn) {
      while (turn_.load(std::memory_order_acquire) < turn) {
        if (resting_.load(std::memory_order_relaxed)) std::this_thread::sleep_for(std::chrono::microseconds(200));
        __builtin_ia32_pause();
      }
      if (job_ == nullptr) return;
      (*job_)(member);
      ended_.fetch_add(1, std::memory_order_release);
    }
  }

  const std::function<void(int)>* job_ = nullptr;
  std::atomic<int> turn_{0};
  std::atomic<size_t> ended_{0};
  std::atomic<bool> resting_{true};
  std::vector<std::thread> threads_;
};

// Has a crew awake for a scope.
class Awake {
 public:
  explicit Awake(Crew& crew) : crew_(crew) {
    crew_.Rest(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Awake() { crew_.Rest(true); }
  Awake(const Awake&) = delete;

 private:
  Crew& crew_;
};

}  // namespace bench
