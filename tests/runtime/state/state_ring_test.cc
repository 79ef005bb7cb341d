// Set and Read of memory that goes through the ring, while the device does not get on: their deadlines, what they leave
// behind, and who takes it back. On a checked host device; what moves, on every driver: tests/conformance.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_driver.h"
#include "tests/support/state_fixture.h"

namespace penstock::state_ring_test {
namespace {

using driver::checked::CallRecorder;
using driver::checked::Gauges;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kChunk = 4096, kChunks = 20;
constexpr int64_t kBudget = 1 << 20;
constexpr int64_t kN = (kChunks * kChunk - 8) / 8;  // the last chunk is not full

class StateRing : public testing::Test {
 protected:
  // The ring has 8 chunks, of which one direction takes 5 at most.
  explicit StateRing(int64_t chunk_bytes = kChunk) {
    const runtime::ScopedDriverHook hook({.wrap =
                                              [this](std::unique_ptr<driver::Driver> host) {
                                                return std::make_unique<HeldDriver>(
                                                    driver::checked::CreateCheckedDriver(std::move(host), witness_),
                                                    held_);
                                              },
                                          .pinned = {.slab_bytes = 64 << 10}});
    runtime_.emplace(*Runtime::Create({.devices = "host",
                                       .workers = 2,
                                       .host_device_threads = 1,
                                       .staging = {.threads = 2, .chunk_bytes = chunk_bytes, .from_bytes = kChunk},
                                       .pinned_bytes = kBudget,
                                       .log = [this](LogLevel, std::string_view text) { logged_ += text; }}));
    state_ = *runtime_->MakeState<int64_t>(Name("s", "a.cc", 7), kN, Numbered(1));
  }
  void TearDown() override {
    *held_ = false;
    EXPECT_TRUE(leaks_ || runtime_->Shutdown().ok());  // what was left in the ring has ended
    state_ = {};
    runtime_.reset();
    if (leaks_) return;
    EXPECT_EQ(witness_->violations(), std::vector<std::string>());
    EXPECT_EQ(witness_->gauges(), Gauges());
  }

  static std::vector<int64_t> Numbered(int64_t from) {
    std::vector<int64_t> contents(kN);
    std::iota(contents.begin(), contents.end(), from);
    return contents;
  }
  std::vector<int64_t> Contents() {
    std::vector<int64_t> contents(kN, -1);
    EXPECT_OK(state_.Read(contents));
    return contents;
  }
  // Its deadline passes while the device stands still. The memory is the test's again when it returns.
  absl::Status SetCutShort() {
    *held_ = true;
    std::vector<int64_t> contents = Numbered(500);
    const absl::Status status = state_.Set(contents, milliseconds(20));
    std::fill(contents.begin(), contents.end(), -7);
    return status;
  }
  absl::Status ReadCutShort(std::vector<int64_t>& contents) {
    *held_ = true;
    const absl::Status status = state_.Read(contents, milliseconds(20));
    std::fill(contents.begin(), contents.end(), -7);
    return status;
  }

  std::shared_ptr<CallRecorder> witness_ = std::make_shared<CallRecorder>();
  std::shared_ptr<std::atomic<bool>> held_ = std::make_shared<std::atomic<bool>>(false);  // a leaked runtime looks on
  bool leaks_ = false;
  std::string logged_;
  std::optional<Runtime> runtime_;
  State<int64_t> state_;
};

const char kLate[] = "state 's' (a.cc:7) on host:0: Set: the deadline passed while its contents were being copied";

TEST_F(StateRing, ASetThatItsDeadlineCutsShortPoisonsAndIsTakenBackLater) {
  const auto before = witness_->totals();
  EXPECT_EQ(SetCutShort().ToString(), std::string("DEADLINE_EXCEEDED: ") + kLate);
  EXPECT_EQ(state_.status().ToString(), std::string("FAILED_PRECONDITION: state 's' (a.cc:7): poisoned by ") + kLate +
                                            "; its contents are unspecified; Set or Reset it");
  EXPECT_EQ(state_.Set(Numbered(3), milliseconds(1)).ToString(),
            "DEADLINE_EXCEEDED: state 's' (a.cc:7) on host:0: the deadline passed before its turn; nothing was done; "
            "it waits for a Set, Read or Reset in the order of state 's' (a.cc:7), which has not drained");
  *held_ = false;
  EXPECT_OK(state_.Reset());  // behind what was left
  EXPECT_LE((witness_->totals() - before).uploads.calls, 5) << "chunks were begun after the deadline";
  EXPECT_EQ(Contents(), std::vector<int64_t>(kN, 0));
  EXPECT_OK(state_.Set(Numbered(4)));
  EXPECT_EQ(Contents(), Numbered(4));
}

TEST_F(StateRing, AReadThatItsDeadlineCutsShortWritesNothingAfterwards) {
  std::vector<int64_t> contents(kN);
  EXPECT_EQ(ReadCutShort(contents).ToString(),
            "DEADLINE_EXCEEDED: state 's' (a.cc:7) on host:0: Read: the deadline passed while its contents were being "
            "copied");
  EXPECT_OK(state_.status());
  *held_ = false;
  EXPECT_EQ(Contents(), Numbered(1));
  EXPECT_EQ(contents, std::vector<int64_t>(kN, -7));
}

// A run that writes comes behind a Read, whoever takes that back.
TEST_F(StateRing, ARunAfterAReadThatWasCutShortGetsItsTurn) {
  std::vector<int64_t> contents(kN);
  EXPECT_FALSE(ReadCutShort(contents).ok());
  std::atomic<bool> touched{false};
  Graph g("g");
  Twin(g, "add", [&](int64_t* s) { s[0] += 100, touched = true; }, ReadWrite(state_));
  Executable exec = *runtime_->Compile(g);
  const penstock::Run run = *exec.Launch(exec.bindings());
  EXPECT_EQ(run.Wait(milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(touched);
  *held_ = false;
  EXPECT_OK(run.Wait(seconds(20)));
  std::vector<int64_t> expected = Numbered(1);
  expected[0] += 100;
  EXPECT_EQ(Contents(), expected);
}

TEST_F(StateRing, ARunAfterASetThatWasCutShortFails) {
  EXPECT_FALSE(SetCutShort().ok());
  Graph g("g");
  Twin(g, "add", [](int64_t*) {}, ReadWrite(state_));
  Executable exec = *runtime_->Compile(g);
  EXPECT_EQ(exec.Launch(exec.bindings()).status().ToString(),
            std::string("FAILED_PRECONDITION: graph 'g': state 's' (a.cc:7): poisoned by ") + kLate +
                "; its contents are unspecified; Set or Reset it");
}

TEST_F(StateRing, AStateDroppedWhileItsCopyIsInTheRingIsLeakedNotFreed) {
  leaks_ = true;
  EXPECT_FALSE(SetCutShort().ok());
  const Gauges before = witness_->gauges();
  state_ = {};
  EXPECT_EQ(logged_, "state 's' (a.cc:7): dropped while a copy of its contents has not ended; its memory is leaked");
  EXPECT_EQ(witness_->gauges(), before);
}

TEST_F(StateRing, ShutdownWaitsForWhatWasLeftInTheRing) {
  EXPECT_FALSE(SetCutShort().ok());
  EXPECT_EQ(
      runtime_->Shutdown(milliseconds(1)).ToString(),
      "DEADLINE_EXCEEDED: Runtime::Shutdown: 1 runs were still in flight at the deadline; they are abandoned; the "
      "runtime keeps its threads and their memory until they have drained and Shutdown is called again");
  *held_ = false;
  EXPECT_OK(runtime_->Shutdown());
}

TEST_F(StateRing, ARuntimeDoesNotWaitForEverForWhatWasLeftInTheRing) {
  leaks_ = true;
  EXPECT_FALSE(SetCutShort().ok());
  runtime_.reset();
  EXPECT_THAT(logged_, testing::HasSubstr("1 runs were still in flight at the deadline"));
}

// Bindings have memory whose HostBuffer is gone, and no run does.
TEST_F(StateRing, NobodyWaitsForMemoryBecauseOfWhatWasLeftInTheRing) {
  constexpr int64_t kMost = 600 << 10;  // two of them do not fit
  Graph g("g");
  auto x = g.Input<char>("x", kMost, kPinned);
  g.Host("look", [](std::span<const char>) {}, Read(x));
  Executable exec = *runtime_->Compile(g);
  Bindings io = exec.bindings();
  {
    const HostBuffer<char> memory = *runtime_->MakeHostBuffer<char>(kMost);
    io.Set(x, memory);
  }
  EXPECT_FALSE(SetCutShort().ok());
  EXPECT_EQ(runtime_->MakeHostBuffer<char>(kMost, seconds(20)).status().code(), absl::StatusCode::kResourceExhausted);
}

// The budget is enough for the two blocks, and not for the ring.
class StateRingTooLarge : public StateRing {
 protected:
  StateRingTooLarge() : StateRing(kBudget / 4) {}
};

TEST_F(StateRingTooLarge, TheTwoBlocksMoveWhatTheRingHasNoMemoryFor) {
  const auto before = witness_->totals();
  EXPECT_OK(state_.Set(Numbered(9)));
  EXPECT_EQ(Contents(), Numbered(9));
  const auto done = witness_->totals() - before;
  EXPECT_EQ(done.uploads, (driver::checked::Totals::Sum{1, kN * 8}));
  EXPECT_EQ(done.downloads, (driver::checked::Totals::Sum{1, kN * 8}));
}

}  // namespace
}  // namespace penstock::state_ring_test
