// Every call of the driver fails once while a State is made, set and read through the ring: each time exactly one
// failure comes out, named; nothing is submitted after it; the call works when it is made again; and nothing is left
// alive. Then the same with a device that stays dead from that call on.
#include <string>
#include <vector>

#include "tests/conformance/faults/fault_walk.h"

namespace penstock::conformance::state_faults_test {
namespace {

constexpr int64_t kN = 601;  // ten chunks, the last one not full

// A State's life on a fresh runtime with one planned fault.
class Session {
 public:
  Session(const Target& target, Fault fault) : fault_(fault) {
    RuntimeOptions options{
        .devices = target.devices, .workers = 1, .host_device_threads = 1, .log_level = LogLevel::kOff};
    options.staging = {.threads = 1, .chunk_bytes = 256, .from_bytes = 0};
    absl::StatusOr<Runtime> made = checks_.CreateRuntime(options, target.order_seed);
    unavailable_ = made.status();
    if (made.ok()) runtime_.emplace(*std::move(made));
  }

  // The whole of it; the counts of calls it made.
  absl::StatusOr<CallLog::Counts> Live() {
    if (!unavailable_.ok()) return unavailable_;
    witness().KeepCalls(true);
    Plan(fault_, witness());
    bool alive = Done([&] { return Make(); });
    for (int32_t from = 100; alive && from <= 200; from += 100) {
      alive = Done([&] { return state_.Set(Numbered(from)); }) && Done([&] { return CheckContents(from); });
    }
    CheckFailures();
    const CallLog log = witness().log();
    CheckNothingFollows(log);
    state_ = {};
    runtime_.reset();
    EXPECT_EQ(checks_.Complaints(), "");
    return log.counts();
  }

 private:
  CallRecorder& witness() { return checks_.witness(); }
  static std::vector<int32_t> Numbered(int32_t from) {
    std::vector<int32_t> contents(kN);
    for (int32_t& v : contents) v = from++;
    return contents;
  }

  absl::Status Make() {
    PENSTOCK_ASSIGN_OR_RETURN(state_, runtime_->MakeState<int32_t>("s", kN, Numbered(0)));
    return absl::OkStatus();
  }
  absl::Status CheckContents(int32_t from) {
    std::vector<int32_t> contents(kN, -1);
    PENSTOCK_RETURN_IF_ERROR(state_.Read(contents));
    EXPECT_EQ(contents, Numbered(from));
    return absl::OkStatus();
  }

  // Where the planned fault comes out, it works the second time.
  template <class F>
  bool Done(F f) {
    absl::Status status = f();
    if (status.ok()) return true;
    failures_.push_back(status);
    EXPECT_NE(std::string(status.message()).find("state 's'"), std::string::npos) << status;
    ExpectPlanned(fault_, status);
    if (fault_.deadly) return false;
    status = f();
    EXPECT_OK(status);
    return status.ok();
  }

  // A query that looks whether anything is left under way may fail unnoticed.
  void CheckFailures() {
    const bool fired = witness().fault_fired(), query = fault_.kind == CallKind::kQuery;
    EXPECT_TRUE(fired == (fault_.n > 0) || query);
    if (!fired) {
      EXPECT_TRUE(failures_.empty()) << failures_[0];
    } else if (!fault_.deadly) {
      EXPECT_LE(failures_.size(), 1u) << "told twice";
      EXPECT_TRUE(query || !failures_.empty()) << "the fault went unnoticed";
    }
  }

  // Up to the next call of the user, which begins with Inspect. The ring's thread may be about to submit while another
  // thread's query fails.
  void CheckNothingFollows(const CallLog& log) {
    if (fault_.n == 0 || fault_.deadly || fault_.kind == CallKind::kQuery) return;
    for (const Call& call : CallsAfter(fault_, log)) {
      if (call.kind == CallKind::kInspect || call.kind == CallKind::kAllocateDevice) return;
      EXPECT_NE(call.kind, CallKind::kCopy) << TextOf(call) << " after the failure";
    }
  }

  const Fault fault_;
  CheckedRuntimes checks_;
  absl::Status unavailable_;
  std::optional<Runtime> runtime_;
  State<int32_t> state_;
  std::vector<absl::Status> failures_;
};

class StateFaults : public testing::TestWithParam<Target> {
 protected:
  void Walk(bool deadly) {
    WalkFaults({.deadly = deadly, .most_polled = 40},
               [](const Fault& fault) { return Session(GetParam(), fault).Live(); });
  }
};

TEST_P(StateFaults, EveryCallThatFailsOnceIsOneNamedFailure) { Walk(false); }

TEST_P(StateFaults, ADeviceThatDiesAtAnyCallEndsEverythingAndLeavesNothing) { Walk(true); }

INSTANTIATE_TEST_SUITE_P(Host, StateFaults,
                         testing::Values(Target{"host", "stream", true}, Target{"host", "graph", true}), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, StateFaults,
                         testing::Values(Target{"cuda", "stream", true}, Target{"cuda", "graph", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::state_faults_test
