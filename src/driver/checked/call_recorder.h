// CallRecorder: what a checked driver has seen and what it is told to do: calls, violations, gauges, totals,
// planned faults.
//
// Ownership: shared by the driver and the test (or whatever requested checks), so that it can be read after the driver
//            is gone, when nothing may be left alive.
// Threads:   thread-safe; one mutex, held for bookkeeping only.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/base/mutex.h"
#include "src/driver/checked/call_log.h"
#include "src/driver/checked/fault_plan.h"
#include "src/driver/ops.h"

namespace penstock::driver::checked {

// Objects and bytes alive now.
struct Gauges {
  int64_t streams = 0, events = 0, device_blocks = 0, pinned_blocks = 0, device_bytes = 0, pinned_bytes = 0;
  int64_t graphs = 0, execs = 0, captures = 0;
  friend bool operator==(const Gauges&, const Gauges&) = default;
};
std::string TextOf(const Gauges& gauges);

// Totals since the CallRecorder was made: failed calls do not count, empty copies do. A graph launch counts as the
// copies, batches and fills that it performs, except nodes with switches and those in bodies of conditional nodes: no
// driver knows how often these run.
struct Totals {
  struct Sum {
    int64_t calls = 0, bytes = 0;
    friend bool operator==(const Sum&, const Sum&) = default;
  };
  Sum uploads{}, downloads{}, inside{}, peer{};  // by Copy
  Sum batch_uploads{}, batch_downloads{}, batch_inside{};
  int64_t pieces = 0;  // in the batches
  Sum fills{}, device_allocations{}, pinned_allocations{};
  friend bool operator==(const Totals&, const Totals&) = default;
};
// The sum that counts copies of this kind.
using SumOfTotals = Totals::Sum Totals::*;
SumOfTotals SumOf(CopyKind kind, bool batch);
// The work done between two moments.
Totals operator-(const Totals& later, const Totals& earlier);
// "uploads 1 with 4096 bytes, fills 2 with 96 bytes"; zero entries are left out.
std::string TextOf(const Totals& totals);
inline std::ostream& operator<<(std::ostream& out, const Totals& totals) { return out << TextOf(totals); }

class CallRecorder {
 public:
  // `report` is called with each violation at the end of the call that found it, with no lock held; it may be null.
  explicit CallRecorder(std::function<void(const std::string&)> report = nullptr) : report_(std::move(report)) {}

  // --- for the side that requested checks ---
  // Makes the n-th call of `kind` from now (n counts from 1) return `failure` without any effect.
  void FailNth(CallKind kind, int64_t n, absl::Status failure);
  // From the n-th call of `kind` on, makes every call that can fail return a fatal device error, as after a CUDA fault:
  // queued work is done or lost, but never continues.
  void DieAtNth(CallKind kind, int64_t n);
  void ClearFaults();
  bool fault_fired() const;
  void KeepCalls(bool keep);
  CallLog log() const;
  std::vector<std::string> violations() const;
  // Returns and forgets the violations.
  std::vector<std::string> TakeViolations();
  Gauges gauges() const;
  Totals totals() const;

  // --- for the driver ---
  // Records a call; returns the failure to return in its place, or OK.
  absl::Status Begin(const Call& call);
  // Records a call that cannot fail.
  void Note(const Call& call);
  bool dead() const;
  // Counts a violation and returns it as a Status.
  absl::Status Violated(const char* rule, const std::string& what);
  // Reports violations not reported yet; for the end of a call.
  void Report();
  void Change(const Gauges& by);
  // Counts a successful call.
  void Count(Totals::Sum Totals::* sum, size_t bytes, size_t pieces = 0);
  void Count(const Totals& done);

 private:
  const std::function<void(const std::string&)> report_;
  mutable base::Mutex mu_;
  CallLog log_ ABSL_GUARDED_BY(mu_);
  FaultPlan faults_ ABSL_GUARDED_BY(mu_);
  Gauges gauges_ ABSL_GUARDED_BY(mu_);
  Totals totals_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> violations_ ABSL_GUARDED_BY(mu_), unreported_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::driver::checked
