// What the tests share that have every call of a driver fail in turn: the fault, the walk over all of them, and what
// the statuses and calls after it are held against.
//
// A test gives WalkFaults a life: a function that builds something on a fresh runtime behind a checked driver, plans
// the fault, uses what it built, lets all of it go, and returns how often it called the driver.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance {

using driver::checked::Call;
using driver::checked::CallKind;
using driver::checked::CallLog;
using driver::checked::CallRecorder;

struct Fault {
  CallKind kind = CallKind::kQuery;
  int64_t n = 0;  // which call of the kind; 0: none fails
  bool deadly = false;  // the device stays dead from then on
};

inline void Plan(const Fault& fault, CallRecorder& witness) {
  if (fault.n == 0) return;
  if (fault.deadly) witness.DieAtNth(fault.kind, fault.n);
  else witness.FailNth(fault.kind, fault.n, absl::UnavailableError("planned"));
}

// Says what was planned.
inline void ExpectPlanned(const Fault& fault, const absl::Status& status) {
  const auto known = base::FaultOf(status);
  if (fault.deadly) {
    EXPECT_TRUE(known && known->fatal) << status;
  } else {
    EXPECT_NE(std::string(status.message()).find("planned"), std::string::npos) << status;
  }
}

// What was called after the call that failed.
inline std::vector<Call> CallsAfter(const Fault& fault, const CallLog& log) {
  int64_t left = fault.n;
  const std::vector<Call>& calls = log.calls();
  const auto failed =
      std::find_if(calls.begin(), calls.end(), [&](const Call& c) { return c.kind == fault.kind && --left == 0; });
  return failed == calls.end() ? std::vector<Call>() : std::vector<Call>(failed + 1, calls.end());
}

inline CallLog::Counts CallsSince(const CallLog::Counts& before, const CallRecorder& witness) {
  CallLog::Counts counts = witness.log().counts();
  for (size_t k = 0; k < counts.size(); ++k) counts[k] -= before[k];
  return counts;
}

inline std::vector<CallKind> KindsThatCanFail() {
  static const std::set<CallKind> kCannot = {CallKind::kDestroyStream, CallKind::kDestroyEvent, CallKind::kFreeDevice,
                                             CallKind::kFreePinned,    CallKind::kDestroyGraph, CallKind::kDestroyExec};
  std::vector<CallKind> kinds;
  for (size_t k = 0; k < driver::checked::kCallKinds; ++k) {
    if (const auto kind = static_cast<CallKind>(k); kCannot.count(kind) == 0) kinds.push_back(kind);
  }
  return kinds;
}
// The calls of a run, without those that make and compile things.
inline std::vector<CallKind> KindsOfARun() {
  return {CallKind::kCopy, CallKind::kLaunch, CallKind::kRecord, CallKind::kWait, CallKind::kInspect, CallKind::kQuery};
}

struct WalkOptions {
  bool deadly = false;
  int devices = 1;  // that PENSTOCK_REQUIRE_GPU has to ask for, to make a skip a failure
  int64_t most_polled = 12;  // queries: how many there are depends on time
  std::vector<CallKind> kinds = KindsThatCanFail();
};

// Lives once without a fault, then with each call of that life failing. `live(fault)` returns the counts of its calls,
// or why the devices are not there, which skips the test.
template <class Live>
void WalkFaults(const WalkOptions& options, Live live) {
  const absl::StatusOr<CallLog::Counts> whole = live(Fault{});
  if (!whole.ok()) {
    if (RequiredDevices() >= options.devices) FAIL() << whole.status();
    GTEST_SKIP() << whole.status();
  }
  ASSERT_FALSE(testing::Test::HasFailure()) << "without a fault";
  for (const CallKind kind : options.kinds) {
    int64_t most = (*whole)[static_cast<size_t>(kind)];
    if (kind == CallKind::kQuery) most = std::min(most, options.most_polled);
    // Sanitized, the first call of a kind and every sixth of the others: under each sanitizer others. ./run test has
    // all.
    for (int64_t n = 1; n <= most && !testing::Test::HasFatalFailure(); ++n) {
      if (kSanitized && n > 1 && n % 6 != (kThreadSanitized ? 5 : 2)) continue;
      SCOPED_TRACE(std::string(NameOf(kind)) + " call " + std::to_string(n) + (options.deadly ? ", deadly" : ""));
      EXPECT_OK(live(Fault{kind, n, options.deadly}).status());
    }
  }
}

}  // namespace penstock::conformance
