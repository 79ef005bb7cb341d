// SimEngines: the engines of devices in virtual time, and the clock. It knows work, what that waits for, which place it
// takes and when it ends, by the rules and with the parts of graph/simulate.
//
// Time goes on only in Step, which the thread that made the engines calls, itself or inside of Spend. It does so once
// `settle` says that no other thread can do anything before that; threads inside of Spend wait for time to go on.
// The bodies of operations are executed by the thread in Step, when their time is over.
//
// Ownership: owns the tasks until they have been executed; borrows the event count.
// Threads:   thread-safe, but for Step.
// Locks:     mu_; bodies, `settle` and the event count are called without it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "graph/simulate/sim_clock.h"
#include "graph/simulate/sim_resources.h"
#include "graph/simulate/simulate.h"
#include "src/base/mutex.h"
#include "src/driver/host/tasks.h"
#include "src/host/event_count.h"

namespace penstock::driver::sim {

using graph::SimTicks;

// Work that other work follows, so long after its end.
struct SimPredecessor {
  int32_t work = -1;
  SimTicks latency = 0;
};

struct SimLoad {
  int32_t pool = -1;  // -1: it occupies nothing
  SimTicks cost = 0;
  int32_t run = -1, node = -1;  // a run of -1: it takes no time and is not recorded, like work of Compile
  std::unique_ptr<host::Task> task{};  // null: there is nothing to do
};

class SimEngines {
 public:
  struct Options {
    std::vector<graph::SimDevice> devices;
    double completion_us = 0;  // from the end of work until the host knows
    std::function<void()> settle = [] {};
    penstock::host::EventCount* event_count = nullptr;  // told when the host knows of an end; may be null
  };
  explicit SimEngines(const Options& options);

  // The pools of a device; of the link between two.
  static int32_t KernelsOf(int device) { return 3 * device; }
  static int32_t UploadsOf(int device) { return 3 * device + 1; }
  static int32_t DownloadsOf(int device) { return 3 * device + 2; }
  int32_t LinkOf(int from, int to);

  // Work that becomes ready after `delay`, and after all of these.
  int32_t Add(SimLoad load, std::span<const SimPredecessor> after, SimTicks delay);
  // Whether the host knows that all of these have ended.
  bool AreKnown(std::span<const SimPredecessor> works) const;
  // Has the event count told when it does.
  void Report(std::span<const SimPredecessor> works);

  // The calling thread is busy for so long.
  void Spend(SimTicks ticks);
  // Goes on to the next time at which something happens, and returns when all threads have done what follows from that;
  // false: nothing will happen.
  bool Step();
  SimTicks now() const;
  // Threads that are inside of Spend, apart from the one that calls Step.
  int busy() const;
  // Of each node, in the order in which they began; the ends of those that have not ended are 0.
  std::vector<graph::SimSpan> spans() const;

 private:
  //   kArrive  something that the work waits for is over
  //   kEnd     the work ends, unless it has got another end since: `number_of_end`
  //   kKnown   the host knows that reported work has ended
  //   kWake    the call of Spend with the number `work` is over
  struct Event {
    enum class Kind : uint8_t { kArrive, kEnd, kKnown, kWake };
    SimTicks time = 0;
    int64_t number = 0;
    Kind kind{};
    int32_t work = -1, number_of_end = -1;
  };
  struct Work {
    SimLoad load;
    int32_t pending = 0;  // what it still waits for
    int32_t place = 0, span = -1;
    bool reported = false;
    SimTicks end = -1;  // -1: it has not ended
    std::vector<SimPredecessor> next{};  // what follows it: `work` is the one that does
    bool ended() const { return end >= 0; }
  };
  struct Spending {
    bool steps = false;  // its thread is the one that calls Step
    bool is_over = false;
  };
  using Tasks = std::vector<std::unique_ptr<host::Task>>;

  void Handle(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Arrive(int32_t work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Begin(int32_t work, int32_t place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(int32_t work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Wake(Spending& spending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsOver(size_t spending) const;
  bool AdvanceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Work& At(int32_t work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return works_[static_cast<size_t>(work)]; }
  const Work& At(int32_t work) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return works_[static_cast<size_t>(work)]; }
  auto EndAt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const std::thread::id stepper_ = std::this_thread::get_id();

  mutable base::Mutex mu_;
  base::CondVar woken_;  // for threads in Spend
  graph::SimClock<Event> clock_ ABSL_GUARDED_BY(mu_);
  graph::SimResources resources_ ABSL_GUARDED_BY(mu_);
  int32_t pools_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Work> works_ ABSL_GUARDED_BY(mu_);
  std::vector<int32_t> links_ ABSL_GUARDED_BY(mu_);  // by the first device and then the second; -1: none yet
  std::vector<graph::SimSpan> spans_ ABSL_GUARDED_BY(mu_);
  std::vector<Spending> spending_ ABSL_GUARDED_BY(mu_);  // each call of Spend
  int busy_ ABSL_GUARDED_BY(mu_) = 0;
  Tasks to_execute_ ABSL_GUARDED_BY(mu_);
  bool notify_ ABSL_GUARDED_BY(mu_) = false, wake_ ABSL_GUARDED_BY(mu_) = false;  // at the end of the step
};

}  // namespace penstock::driver::sim
