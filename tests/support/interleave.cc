#include "tests/support/interleave.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/support/sanitized.h"

namespace penstock::interleave {
namespace {

constexpr int64_t kMostSanitized = 1000;  // finds every mistake that the tests plant

// One schedule. `choices` says at each point with a choice which thread goes on; past its end the first that can does,
// the running one before others, and the choice is written down with how many there were.
class Schedule {
 public:
  struct Choice {
    int taken, of;
  };

  Schedule(size_t threads, std::vector<Choice>& choices) : ready_(threads), ended_(threads), choices_(choices) {}

  std::string Run(const Scenario& scenario);
  void Yield(std::function<bool()> ready);

 private:
  void Begin(size_t me);
  void End(size_t me);
  void PassOn();  // chooses who goes on; with mu_ held
  bool Can(size_t thread) const { return !ended_[thread] && (!ready_[thread] || ready_[thread]()); }

  std::mutex mu_;
  std::condition_variable turn_;
  std::vector<std::function<bool()>> ready_;  // of threads that wait for something
  std::vector<bool> ended_;
  std::vector<Choice>& choices_;
  size_t next_choice_ = 0;
  size_t running_ = 0;
  bool deadlock_ = false;
};

thread_local Schedule* schedule = nullptr;
thread_local size_t this_thread = 0;

// Thrown through threads that can never go on.
struct Deadlock {};

void Schedule::PassOn() {
  std::vector<size_t> able;
  if (Can(running_)) able.push_back(running_);
  bool all_ended = true;
  for (size_t t = 0; t < ended_.size(); ++t) {
    all_ended = all_ended && ended_[t];
    if (t != running_ && Can(t)) able.push_back(t);
  }
  if (able.empty()) {
    deadlock_ = !all_ended;
  } else if (able.size() == 1) {
    running_ = able[0];
  } else {
    if (next_choice_ == choices_.size()) choices_.push_back({0, static_cast<int>(able.size())});
    running_ = able[static_cast<size_t>(choices_[next_choice_++].taken)];
  }
  turn_.notify_all();
}

void Schedule::Begin(size_t me) {
  schedule = this;
  this_thread = me;
  std::unique_lock lock(mu_);
  turn_.wait(lock, [&] { return running_ == me || deadlock_; });
  if (deadlock_) throw Deadlock{};
}

void Schedule::Yield(std::function<bool()> ready) {
  std::unique_lock lock(mu_);
  const size_t me = this_thread;
  ready_[me] = std::move(ready);
  PassOn();
  turn_.wait(lock, [&] { return running_ == me || deadlock_; });
  if (deadlock_) throw Deadlock{};
  ready_[me] = nullptr;
}

void Schedule::End(size_t me) {
  std::unique_lock lock(mu_);
  ended_[me] = true;
  if (running_ == me && !deadlock_) PassOn();
}

std::string Schedule::Run(const Scenario& scenario) {
  std::vector<std::thread> threads;
  {
    std::unique_lock lock(mu_);
    PassOn();  // who begins is a choice, too
  }
  for (size_t t = 0; t < scenario.threads.size(); ++t) {
    threads.emplace_back([this, t, &scenario] {
      try {
        Begin(t);
        scenario.threads[t]();
      } catch (const Deadlock&) {
      }
      End(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (deadlock_) return "deadlock: every thread that has not ended waits for another";
  return scenario.check();
}

// The next schedule in depth-first order; false when that was the last.
bool Next(std::vector<Schedule::Choice>& choices) {
  while (!choices.empty() && choices.back().taken + 1 == choices.back().of) choices.pop_back();
  if (choices.empty()) return false;
  ++choices.back().taken;
  return true;
}

}  // namespace

void Point() {
  if (schedule != nullptr) schedule->Yield(nullptr);
}

void BlockUntil(const std::function<bool()>& ready) { schedule->Yield(ready); }

Explored Explore(const std::function<Scenario()>& make, int64_t most_schedules) {
  if (kSanitized) most_schedules = std::min(most_schedules, kMostSanitized);
  Explored explored;
  std::vector<Schedule::Choice> choices;
  do {
    const Scenario scenario = make();
    Schedule one(scenario.threads.size(), choices);
    explored.problem = one.Run(scenario);
    ++explored.schedules;
    if (!explored.problem.empty()) {
      explored.problem += "; schedule";
      for (const auto& choice : choices) explored.problem += " " + std::to_string(choice.taken);
      return explored;
    }
    if (!Next(choices)) {
      explored.all = true;
      return explored;
    }
  } while (explored.schedules < most_schedules);
  return explored;
}

}  // namespace penstock::interleave
