// StartSet and StartRead: their place in the order of runs, what the handle says, and what holds of deadlines, poison,
// keep-alives and the end of a runtime.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/runtime/core/test_hook.h"
#include "tests/support/held_driver.h"
#include "tests/support/state_fixture.h"

namespace penstock::state_transfer_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StateTransfers : public StateFixture {
 protected:
  // A run that uses the State, and ends when `release` has been told.
  penstock::Run Hold(const State<int64_t>& state) {
    Graph g("g");
    Twin(
        g, "hold",
        [this](int64_t* s) {
          if (!release.Await(1)) return;
          for (int i = 0; i < 2; ++i) s[i] *= 10;
        },
        ReadWrite(state));
    holds_.push_back(Compiled(g));
    return *holds_.back().Launch(holds_.back().bindings());
  }
  Transfer Started(absl::StatusOr<Transfer> transfer) {
    EXPECT_OK(transfer.status());
    return transfer.ok() ? *std::move(transfer) : Transfer();
  }

  Meeting release;
  std::vector<Executable> holds_;
};

TEST_F(StateTransfers, ReturnBeforeTheRunsAheadAndTakeTheirTurnAmongThem) {
  State<int64_t> state = Made("s", 2, std::vector<int64_t>{1, 2});
  const penstock::Run first = Hold(state);
  std::vector<int64_t> before(2), after(2), contents = {5, 6};
  const Transfer read = Started(state.StartRead(before));
  const Transfer set = Started(state.StartSet(contents));
  const penstock::Run second = Hold(state);
  const Transfer last = Started(state.StartRead(after));
  EXPECT_FALSE(read.done());
  EXPECT_FALSE(set.done());
  EXPECT_EQ(read.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(last.Wait(milliseconds(1)).ToString(),
            "DEADLINE_EXCEEDED: Transfer::Wait: the deadline passed before the transfer ended; it goes on");
  release.Arrive();
  EXPECT_OK(last.Wait());
  EXPECT_EQ(before, (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(after, (std::vector<int64_t>{50, 60}));
  EXPECT_OK(read.Wait());
  EXPECT_OK(set.Wait());  // it has left the order, and perhaps not ended yet
  EXPECT_OK(second.Wait());
}

TEST_F(StateTransfers, MoveOnWithoutAnybodyWaiting) {
  State<int64_t> state = Made("s", 2);
  const auto contents = std::make_shared<std::vector<int64_t>>(2, 7);
  const std::weak_ptr<std::vector<int64_t>> kept = contents;
  penstock::Run run = Hold(state);
  Started(state.StartSet(*contents, {.keep_alive = contents}));
  run = {};
  release.Arrive();
  const auto until = std::chrono::steady_clock::now() + seconds(20);
  while (kept.use_count() > 1 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(kept.use_count(), 1) << "the keep-alive is still held";
  EXPECT_EQ(Contents(state, 2), (std::vector<int64_t>{7, 7}));
}

TEST_F(StateTransfers, CopyABoxOfAnySize) {
  constexpr int64_t kRows = 700, kColumns = 1500, kWide = 1400;  // 7.5 MiB: two blocks
  State<int64_t> state = *runtime_->MakeState<int64_t>("s", {kRows, kColumns});
  const Box box = Slice({0, 50}, {kRows, kWide});
  HostBuffer<int64_t> in = *runtime_->MakeHostBuffer<int64_t>(kRows * kWide);
  std::iota(in.begin(), in.end(), 1);
  std::vector<int64_t> out(kRows * kWide), all(kRows * kColumns);
  const Transfer set = Started(state.StartSet(in.span(), {.box = box}));
  const Transfer read = Started(state.StartRead(out, {.box = box}));
  EXPECT_OK(read.Wait());
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
  EXPECT_OK(state.Read(all));
  EXPECT_EQ(all[49], 0);
  EXPECT_EQ(all[50], 1);
  EXPECT_EQ(all[kColumns - 50], 0);
  EXPECT_OK(set.status());
}

TEST_F(StateTransfers, GiveUpAtTheirDeadlineWhileARunUsesTheState) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), 2, std::vector<int64_t>{1, 2});
  const penstock::Run run = Hold(state);
  const std::vector<int64_t> contents(2);
  const Transfer set = Started(state.StartSet(contents, {.deadline = milliseconds(1)}));
  EXPECT_EQ(set.Wait().ToString(),
            "DEADLINE_EXCEEDED: state 's' (a.cc:7) on host:0: the deadline passed before its turn; nothing was done; "
            "it waits for a run of graph 'g' in the order of state 's' (a.cc:7), which has not drained");
  release.Arrive();
  EXPECT_EQ(Contents(state, 2), (std::vector<int64_t>{10, 20}));
}

TEST_F(StateTransfers, DoNothingIfTheirDeadlineHasPassed) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), 2, std::vector<int64_t>{1, 2});
  const std::vector<int64_t> contents(2);
  EXPECT_EQ(Started(state.StartSet(contents, {.deadline = milliseconds(-1)})).Wait().ToString(),
            "DEADLINE_EXCEEDED: state 's' (a.cc:7) on host:0: the deadline passed before its turn; nothing was done");
  EXPECT_EQ(Contents(state, 2), (std::vector<int64_t>{1, 2}));
}

TEST_F(StateTransfers, MayBeStartedInsideHostNodesButNotWaitedForThere) {
  State<int64_t> state = Made("s", 2);
  const std::vector<int64_t> contents = {3, 4};
  Transfer set;
  absl::Status waited;
  Graph g("g");
  g.Host(
      "h",
      [&](std::span<const int64_t>) {
        set = Started(state.StartSet(contents));
        waited = set.Wait();
      },
      Read(state));
  Executable exec = Compiled(g);
  ASSERT_OK(exec.Launch(exec.bindings())->Wait());
  EXPECT_EQ(
      waited.ToString(),
      "FAILED_PRECONDITION: Transfer::Wait inside a host node or callback, which it could wait for; wait outside");
  EXPECT_OK(set.Wait());
  EXPECT_EQ(Contents(state, 2), contents);
}

TEST_F(StateTransfers, OfAPoisonedStateMayOnlySetAllOfIt) {
  State<int64_t> state = Made("s", 2);
  Graph g("bad");
  Twin(g, "boom", [](int64_t*) { return absl::InternalError("boom"); }, Write(state));
  Executable exec = Compiled(g);
  EXPECT_FALSE(exec.Launch(exec.bindings())->Wait().ok());
  std::vector<int64_t> contents(2);
  EXPECT_EQ(state.StartRead(contents).status(), state.status());
  EXPECT_EQ(state.StartSet(std::span(contents).first(1), {.box = Slice(0, 1)}).status(), state.status());
  EXPECT_OK(Started(state.StartSet(contents)).Wait());
  EXPECT_OK(state.status());
}

TEST_F(StateTransfers, FailAfterARunThatFails) {
  State<int64_t> state = Made("s", 2);
  Graph g("bad");
  Twin(
      g, "boom",
      [&](int64_t*) {
        release.Await(1);
        return absl::InternalError("boom");
      },
      Write(state));
  Executable exec = Compiled(g);
  const penstock::Run run = *exec.Launch(exec.bindings());
  std::vector<int64_t> found(2, -1);
  const Transfer read = Started(state.StartRead(found));
  release.Arrive();
  EXPECT_THAT(read.Wait().ToString(), testing::HasSubstr("boom"));
  EXPECT_EQ(found, (std::vector<int64_t>{-1, -1}));
}

TEST_F(StateTransfers, BadRequestsAreRefusedWithTheirNumbers) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), 2);
  std::vector<int64_t> three(3);
  EXPECT_EQ(state.StartSet(three).status().ToString(),
            "INVALID_ARGUMENT: state 's' (a.cc:7) on host:0: StartSet was given 3 elements; the State has 2; give "
            "exactly that many");
  EXPECT_EQ(state.StartRead(std::span<int64_t>(static_cast<int64_t*>(nullptr), 2)).status().ToString(),
            "INVALID_ARGUMENT: state 's' (a.cc:7) on host:0: StartRead was given 2 elements at a null address; give "
            "memory that exists");
  EXPECT_EQ(State<int64_t>().StartSet(three).status().ToString(),
            "FAILED_PRECONDITION: this State was default-constructed or moved from; use Runtime::MakeState");
  runtime_.reset();
  EXPECT_EQ(state.StartSet(std::span(three).first(2)).status().ToString(),
            "FAILED_PRECONDITION: the runtime has been shut down; make a new one");
}

TEST_F(StateTransfers, NoTransferIsDoneAndSaysSo) {
  const Transfer none;
  EXPECT_FALSE(none);
  EXPECT_TRUE(none.done());
  EXPECT_EQ(none.Wait().ToString(), "FAILED_PRECONDITION: this Transfer was default-constructed or moved from");
  EXPECT_EQ(none.status(), none.Wait());
}

TEST_F(StateTransfers, EndWhenAShutdownGivesUp) {
  State<int64_t> state = Made("s", 2);
  const penstock::Run run = Hold(state);
  std::vector<int64_t> found(2);
  const Transfer read = Started(state.StartRead(found));
  EXPECT_EQ(runtime_->Shutdown(milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(read.Wait().ToString(), testing::HasSubstr("the runtime was shut down before its turn"));
  release.Arrive();
  EXPECT_OK(runtime_->Shutdown());
}

// Whichever way the bytes go: through two blocks, or in chunks through the ring.
class StateTransfersCutShort : public StateFixture, public testing::WithParamInterface<bool> {
 protected:
  StateTransfersCutShort() {
    const runtime::ScopedDriverHook hook({.wrap = [this](std::unique_ptr<driver::Driver> host) {
      return std::make_unique<HeldDriver>(std::move(host), held_);
    }});
    runtime_.emplace(
        *Runtime::Create({.devices = "host",
                          .staging = {.threads = 2, .chunk_bytes = 4096, .from_bytes = GetParam() ? 4096 : 1 << 20}}));
  }
  void TearDown() override { *held_ = false; }

  static constexpr int64_t kN = 10000;
  std::shared_ptr<std::atomic<bool>> held_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_P(StateTransfersCutShort, ASetPoisonsAndTheNextOneWaitsForItsEnd) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), kN);
  *held_ = true;
  std::vector<int64_t> contents(kN, 3);
  auto set = state.StartSet(contents, {.deadline = milliseconds(20)});
  ASSERT_OK(set.status());
  const std::string late =
      "state 's' (a.cc:7) on host:0: StartSet: the deadline passed while its contents were being copied";
  EXPECT_EQ(set->Wait().ToString(), "DEADLINE_EXCEEDED: " + late);
  std::fill(contents.begin(), contents.end(), -7);
  EXPECT_EQ(state.status().ToString(), "FAILED_PRECONDITION: state 's' (a.cc:7): poisoned by " + late +
                                           "; its contents are unspecified; Set or Reset it");
  EXPECT_EQ(state.Set(contents, milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  std::fill(contents.begin(), contents.end(), 8);
  auto next = state.StartSet(contents);
  ASSERT_OK(next.status());
  *held_ = false;
  EXPECT_OK(next->Wait());
  EXPECT_EQ(Contents(state, kN), contents);
}

TEST_P(StateTransfersCutShort, AReadWritesNothingAfterwards) {
  State<int64_t> state = Made("s", kN);
  *held_ = true;
  std::vector<int64_t> found(kN);
  auto read = state.StartRead(found, {.deadline = milliseconds(20)});
  ASSERT_OK(read.status());
  EXPECT_EQ(read->Wait().code(), absl::StatusCode::kDeadlineExceeded);
  std::fill(found.begin(), found.end(), -7);
  EXPECT_OK(state.status());
  *held_ = false;
  EXPECT_OK(state.Reset());
  EXPECT_EQ(found, std::vector<int64_t>(kN, -7));
}

TEST_P(StateTransfersCutShort, ADroppedStateIsFreedWhenTheCopyHasEnded) {
  {
    State<int64_t> state = Made("s", kN);
    *held_ = true;
    std::vector<int64_t> found(kN);
    auto read = state.StartRead(found, {.deadline = milliseconds(20)});
    ASSERT_OK(read.status());
    EXPECT_FALSE(read->Wait().ok());
  }
  EXPECT_EQ(runtime_->Shutdown(milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  *held_ = false;
  EXPECT_OK(runtime_->Shutdown());
}

INSTANTIATE_TEST_SUITE_P(Ways, StateTransfersCutShort, testing::Bool(),
                         [](const auto& ring) { return ring.param ? "ring" : "blocks"; });

}  // namespace
}  // namespace penstock::state_transfer_test
