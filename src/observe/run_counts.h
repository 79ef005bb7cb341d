// RunCounts: what has become of the launches of all executables of one name; and GraphCounts, which has them by name.
//
// Ownership: GraphCounts belongs to the runtime's core and keeps what it has given out for as long as it lives.
// Threads:   thread-safe. What a run counts, it counts once, in numbers on which nothing else depends.
// Locks:     GraphCounts::mu_, a leaf, taken by Compile and by readers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/metrics.h"
#include "src/base/mutex.h"

namespace penstock::observe {

class RunCounts {
 public:
  void Began() { Add(began_); }
  void Ended(const absl::Status& status) {
    Add(status.ok() ? succeeded_ : absl::IsCancelled(status) ? cancelled_ : failed_);
  }
  // Called before Ended, unless the run is abandoned, so that whoever has waited for it does not find it in flight; and
  // before its slot is free; a reader that is interrupted may yet see more in flight than there are slots.
  void Drained() { Add(drained_); }
  // A launch waits for a slot; it has waited so long.
  void WaitBegins() { Add(waits_); }
  void WaitEnds(std::chrono::nanoseconds time) {
    Add(waits_ended_);
    waited_ns_.fetch_add(time.count(), std::memory_order_relaxed);
  }
  void Made() {
    Add(made_);
    Add(executables_);
  }
  void Gone() { executables_.fetch_sub(1, std::memory_order_relaxed); }

  // Without a name. No number of runs is negative, whatever happens meanwhile.
  Metrics::Graph Read() const;

 private:
  static void Add(std::atomic<int64_t>& count) { count.fetch_add(1, std::memory_order_relaxed); }

  std::atomic<int64_t> began_{0};  // runs
  std::atomic<int64_t> succeeded_{0}, failed_{0}, cancelled_{0};  // runs that have ended for their users
  std::atomic<int64_t> drained_{0};  // runs
  std::atomic<int64_t> waits_{0}, waits_ended_{0}, waited_ns_{0};  // for slots
  std::atomic<int64_t> made_{0};  // executables, those that are gone included
  std::atomic<int64_t> executables_{0};  // that exist
};

// Counts an executable while it exists.
class CountedExecutable {
 public:
  CountedExecutable() = default;
  explicit CountedExecutable(RunCounts& counts) : counts_(&counts) { counts.Made(); }
  CountedExecutable(CountedExecutable&& other) noexcept : counts_(std::exchange(other.counts_, nullptr)) {}
  CountedExecutable& operator=(CountedExecutable other) noexcept {
    std::swap(counts_, other.counts_);
    return *this;
  }
  ~CountedExecutable() {
    if (counts_ != nullptr) counts_->Gone();
  }

 private:
  RunCounts* counts_ = nullptr;
};

class GraphCounts {
 public:
  // Of graphs of that name. After the first `kMostNames` names others count together, under the empty one.
  RunCounts& Of(std::string_view name);
  // Of what shows nowhere: the parts of constructs.
  RunCounts& parts() { return parts_; }
  std::vector<Metrics::Graph> Read() const;

  static constexpr size_t kMostNames = 1000;

 private:
  RunCounts parts_;

  mutable base::Mutex mu_;
  std::map<std::string, RunCounts> by_name_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::observe
