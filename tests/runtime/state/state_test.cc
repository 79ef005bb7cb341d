// States on host devices: what they hold, how they are set, read and reset, what is refused, who keeps them alive.
#include "penstock/state.h"

#include <atomic>
#include <random>
#include <thread>

#include "tests/support/state_fixture.h"

namespace penstock::state_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StateTest : public StateFixture {};

TEST_F(StateTest, HoldsZerosOrWhatItIsGiven) {
  const State<int64_t> zeros = Made("zeros", 3), given = Made("given", 3, std::vector<int64_t>{4, 5, 6});
  EXPECT_EQ(Contents(zeros, 3), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(Contents(given, 3), (std::vector<int64_t>{4, 5, 6}));
}

TEST_F(StateTest, IsSetAndResetWhole) {
  State<int64_t> state = Made("s", 2);
  EXPECT_OK(state.Set(std::vector<int64_t>{7, 8}));
  EXPECT_EQ(Contents(state, 2), (std::vector<int64_t>{7, 8}));
  EXPECT_OK(state.Reset());
  EXPECT_EQ(Contents(state, 2), (std::vector<int64_t>{0, 0}));
  EXPECT_OK(state.status());
}

// More than the two blocks a call copies pinned memory through, and a last one that is not full.
TEST_F(StateTest, LargeContentsArriveWhole) {
  constexpr int64_t kN = (int64_t{17} << 20) / 8 + 5;
  HostBuffer<int64_t> contents = *runtime_->MakeHostBuffer<int64_t>(kN), found = *runtime_->MakeHostBuffer<int64_t>(kN);
  const std::span<int64_t> in(contents.begin(), contents.end()), out(found.begin(), found.end());
  std::iota(in.begin(), in.end(), 1);
  State<int64_t> state = Made("large", kN, in);
  EXPECT_OK(state.Read(out));
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
  std::reverse(in.begin(), in.end());
  EXPECT_OK(state.Set(in));
  EXPECT_OK(state.Read(out));
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
}

TEST_F(StateTest, MayBeEmpty) {
  State<int64_t> state = Made("empty", 0);
  EXPECT_OK(state.Set({}));
  EXPECT_OK(state.Reset());
  EXPECT_EQ(Contents(state, 0), std::vector<int64_t>());
}

TEST_F(StateTest, IsOfItsRuntimeDeviceAndGraphsExtent) {
  const auto state = runtime_->MakeState<float>(Name("w", "a.cc", 7), {2, 3});
  ASSERT_OK(state.status());
  EXPECT_EQ(state->name(), "w");
  EXPECT_EQ(state->extent(), Extent(2, 3));
  EXPECT_EQ(state->device(), 0);
}

TEST_F(StateTest, BadRequestsAreRefusedWithTheirNumbers) {
  Graph g("g");
  const auto n = g.Param<int>("n", AtMost(4));
  const auto refusal = [&](Extent extent, StateOptions options = {}, std::vector<int64_t> initial = {}) {
    return runtime_->MakeState<int64_t>(Name("s", "a.cc", 7), extent, initial, options).status().ToString();
  };
  EXPECT_EQ(refusal(n),
            "INVALID_ARGUMENT: state 's' (a.cc:7): dimension 0 is a parameter; a State keeps its size across runs; "
            "give a constant");
  EXPECT_EQ(refusal({2, -1}), "INVALID_ARGUMENT: state 's' (a.cc:7): dimension 1 is -1; it is a count; give 0 or more");
  EXPECT_EQ(refusal({int64_t{1} << 40, int64_t{1} << 40}),
            "INVALID_ARGUMENT: state 's' (a.cc:7): 1099511627776 x 1099511627776 elements of 8 bytes are more than "
            "2^62 bytes; no device holds that; make a dimension smaller");
  EXPECT_EQ(refusal({int64_t{1} << 62, 0, 5}),
            "INVALID_ARGUMENT: state 's' (a.cc:7): 4611686018427387904 x 0 x 5 elements of 8 bytes are more than 2^62 "
            "bytes; no device holds that; make a dimension smaller");
  EXPECT_EQ(refusal(ParamHandle<int>()),
            "INVALID_ARGUMENT: state 's' (a.cc:7): dimension 0 is a parameter; a State keeps its size across runs; "
            "give a constant");
  Extent four;
  four.rank = 4;
  EXPECT_EQ(refusal(four),
            "INVALID_ARGUMENT: state 's' (a.cc:7): has 4 dimensions; an extent has 1 to 3; use one of these");
  EXPECT_EQ(refusal(2, {.device = 1}),
            "INVALID_ARGUMENT: state 's' (a.cc:7): StateOptions::device is 1; the runtime has devices 0 to 0; name one "
            "of them");
  EXPECT_EQ(refusal(2, {}, {1, 2, 3}),
            "INVALID_ARGUMENT: state 's' (a.cc:7): was given 3 elements to begin with; it has 2; give exactly that "
            "many, or none for zeros");
  EXPECT_EQ(runtime_->MakeState<int>(Name("", "a.cc", 7), 1).status().ToString(),
            "INVALID_ARGUMENT: state '' (a.cc:7): has no name; messages call everything by its name; give it one");
  EXPECT_EQ(refusal(int64_t{1} << 45).substr(0, 48), "RESOURCE_EXHAUSTED: state 's' (a.cc:7) on host:0");
  State<int64_t> state = Made(Name("s", "a.cc", 7), 2);
  EXPECT_EQ(state.Set(std::vector<int64_t>(3)).ToString(),
            "INVALID_ARGUMENT: state 's' (a.cc:7) on host:0: Set was given 3 elements; the State has 2; give exactly "
            "that many");
  std::vector<int64_t> one(1);
  EXPECT_EQ(state.Read(one).ToString(),
            "INVALID_ARGUMENT: state 's' (a.cc:7) on host:0: Read was given 1 elements; the State has 2; give exactly "
            "that many");
  EXPECT_EQ(State<int64_t>().Reset().ToString(),
            "FAILED_PRECONDITION: this State was default-constructed or moved from; use Runtime::MakeState");
}

TEST_F(StateTest, ElementsAtANullAddressAreRefused) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), 2);
  const std::string text = " was given 2 elements at a null address; give memory that exists";
  EXPECT_EQ(state.Set(std::span<const int64_t>(static_cast<int64_t*>(nullptr), 2)).ToString(),
            "INVALID_ARGUMENT: state 's' (a.cc:7) on host:0: Set" + text);
  EXPECT_EQ(state.Read(std::span<int64_t>(static_cast<int64_t*>(nullptr), 2)).ToString(),
            "INVALID_ARGUMENT: state 's' (a.cc:7) on host:0: Read" + text);
  EXPECT_EQ(
      runtime_->MakeState<int64_t>("t", 2, std::span<const int64_t>(static_cast<int64_t*>(nullptr), 2)).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(StateTest, MovedFromHasNoElementsAndRefusesCalls) {
  State<int64_t> from = Made("s", 2);
  const State<int64_t> to = std::move(from);
  EXPECT_EQ(to.extent(), Extent(2));
  EXPECT_EQ(from.extent(), Extent());  // NOLINT: moved from on purpose
  EXPECT_EQ(from.device(), -1);
  EXPECT_EQ(from.name(), "");
  EXPECT_EQ(from.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StateTest, OfAnotherRuntimeIsAMistakeOfTheGraph) {
  auto other = Runtime::Create({.devices = "host"});
  ASSERT_OK(other.status());
  const State<int64_t> state = Made(Name("s", "a.cc", 7), 2);
  Graph g("g");
  g.ParallelFor("k", 2, CopyOut<int64_t>{}, Read(state), Write(g.Buffer<int64_t>("t", 2)));
  EXPECT_EQ(other->Compile(g).status().ToString(),
            "INVALID_ARGUMENT: graph 'g' state 's' (a.cc:7): belongs to another runtime; its memory is not known to "
            "this one; "
            "make it with MakeState of the runtime that compiles the graph");
}

TEST_F(StateTest, CannotBeBound) {
  const State<int64_t> state = Made(Name("s", "a.cc", 7), 2);
  Graph g("g");
  const auto handle = g.Use(state);
  g.Fill("fill", handle, 3);
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<int64_t> memory(2);
  EXPECT_EQ(exec.Launch(io.Set(handle, memory)).status().ToString(),
            "INVALID_ARGUMENT: graph 'g' state 's' (a.cc:7): lives across runs and cannot be bound; use State::Set");
}

TEST_F(StateTest, WorksInCopiesFillsAndHostNodes) {
  const State<int64_t> state = Made("s", 2), copy = Made("copy", 2);
  Graph g("g");
  auto x = g.Input<int64_t>("x", 2);
  auto y = g.Output<int64_t>("y", 2);
  g.Copy("load", x, g.Use(state));
  g.Host(
      "twice",
      [](std::span<int64_t> s) {
        for (int64_t& v : s) v *= 2;
      },
      ReadWrite(state));
  g.Copy("keep", g.Use(state), g.Use(copy));
  g.Fill("fill", g.Use(state), 9);
  g.Copy("out", g.Use(copy), y);
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<int64_t> hx = {3, 4}, hy(2);
  auto run = exec.Launch(io.Set(x, hx).Set(y, hy));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(hy, (std::vector<int64_t>{6, 8}));
  EXPECT_EQ(Contents(copy, 2), hy);
  EXPECT_EQ(Contents(state, 2), (std::vector<int64_t>{9, 9}));
}

TEST_F(StateTest, CallsAreRefusedInsideHostNodesAndCallbacks) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), 1);
  const std::string inside = " inside a host node or callback, which it could wait for; call it outside";
  std::vector<std::string> said;
  Graph g("g");
  g.Host("h", [&] {
    std::vector<int64_t> one(1);
    said = {state.Set(one).ToString(), state.Read(one).ToString(), state.Reset().ToString()};
    said.push_back(runtime_->MakeState<int64_t>(Name("t", "a.cc", 8), 1).status().ToString());
    said.push_back(runtime_->MakeReplicatedState<int64_t>(Name("r", "a.cc", 9), 1).status().ToString());
  });
  Executable exec = Compiled(g);
  auto run = exec.Launch(exec.bindings());
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(said,
            (std::vector<std::string>{"FAILED_PRECONDITION: state 's' (a.cc:7) on host:0: Set" + inside,
                                      "FAILED_PRECONDITION: state 's' (a.cc:7) on host:0: Read" + inside,
                                      "FAILED_PRECONDITION: state 's' (a.cc:7) on host:0: Reset" + inside,
                                      "FAILED_PRECONDITION: state 't' (a.cc:8): MakeState" + inside,
                                      "FAILED_PRECONDITION: state 'r 0' (a.cc:9): MakeReplicatedState" + inside}));
}

TEST_F(StateTest, EverybodyMayBeDroppedInAnyOrder) {
  for (int order = 0; order < 24; ++order) {
    std::optional<Runtime> runtime;
    auto made = Runtime::Create({.devices = "host", .workers = 2, .host_device_threads = 2});
    ASSERT_OK(made.status());
    runtime.emplace(*std::move(made));
    auto state = std::make_optional(*runtime->MakeState<int64_t>("s", 64));
    auto graph = std::make_optional<Graph>("g");
    auto meeting = std::make_shared<Meeting>();
    Twin(*graph, "hold", [meeting](int64_t* s) { s[0] += meeting->Await(1); }, ReadWrite(*state));
    std::optional<Executable> exec(*runtime->Compile(*graph));
    auto run = std::make_optional(*exec->Launch(exec->bindings()));
    std::vector<int> who = {0, 1, 2, 3};
    for (int i = 0; i < order; ++i) std::next_permutation(who.begin(), who.end());
    for (const int w : who) {
      if (w == 0) state.reset();
      if (w == 1) graph.reset();
      if (w == 2) exec.reset();
      if (w == 3) run.reset();
    }
    meeting->Arrive();
    runtime.reset();
  }
}

TEST_F(StateTest, OutlivesTheRuntimeHandle) {
  State<int64_t> state = Made("s", 2);
  runtime_.reset();
  EXPECT_EQ(state.Reset().ToString(), "FAILED_PRECONDITION: the runtime has been shut down; make a new one");
}

TEST_F(StateTest, SetGivesUpAtItsDeadlineWhileARunUsesIt) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), 1);
  Meeting release;
  Graph g("g");
  Twin(g, "hold", [&](int64_t* s) { s[0] = 5 * release.Await(1); }, ReadWrite(state));
  Executable exec = Compiled(g);
  auto run = exec.Launch(exec.bindings());
  ASSERT_OK(run.status());
  EXPECT_EQ(
      state.Set(std::vector<int64_t>{1}, milliseconds(1)).ToString(),
      "DEADLINE_EXCEEDED: state 's' (a.cc:7) on host:0: the deadline passed before its turn; nothing was done; it "
      "waits for a run of graph 'g' in the order of state 's' (a.cc:7), which has not drained");
  release.Arrive();
  EXPECT_EQ(Contents(state, 1), std::vector<int64_t>{5});
  ASSERT_OK(run->Wait());
}

// The device's only compute thread is taken by a graph that has nothing to do with States, so the fill of Reset does
// not begin.
class BusyDevice : public StateFixture {
 protected:
  BusyDevice() {
    runtime_.emplace(*Runtime::Create({.devices = "host",
                                       .host_device_threads = 1,
                                       .log = [this](LogLevel, std::string_view text) { logged += text; }}));
  }

  // Returns when it is taken; the first time until `release`.
  void Hold() {
    Graph g("g");
    Twin(g, "hold", [this](int64_t*) { busy.Arrive(), release.Await(1); }, Write(g.Buffer<int64_t>("t", 1)));
    holds_ = Compiled(g);
    run = *holds_.Launch(holds_.bindings());
    ASSERT_TRUE(busy.Await(++held_));
  }
  // Poisons the State by a run that fails.
  void Spoil(const State<int64_t>& state) {
    Graph g("bad");
    Twin(g, "boom", [](int64_t*) { return absl::InternalError("boom"); }, Write(state));
    Executable exec = Compiled(g);
    EXPECT_FALSE(exec.Launch(exec.bindings())->Wait().ok());
    EXPECT_EQ(state.status().code(), absl::StatusCode::kFailedPrecondition);
  }

  std::string logged;
  Meeting busy, release;
  penstock::Run run;

 private:
  int held_ = 0;
  Executable holds_;
};

TEST_F(BusyDevice, AResetThatTheDeadlineCutsShortPoisonsAndIsTakenBackLater) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), 1);
  Hold();
  const std::string late =
      "state 's' (a.cc:7) on host:0: Reset: the deadline passed while its contents were being copied";
  EXPECT_EQ(state.Reset(milliseconds(1)).ToString(), "DEADLINE_EXCEEDED: " + late);
  EXPECT_EQ(state.status().ToString(), "FAILED_PRECONDITION: state 's' (a.cc:7): poisoned by " + late +
                                           "; its contents are unspecified; Set or Reset it");
  EXPECT_EQ(
      state.Set(std::vector<int64_t>{3}, milliseconds(1)).ToString(),
      "DEADLINE_EXCEEDED: state 's' (a.cc:7) on host:0: the deadline passed before its turn; nothing was done; it "
      "waits for a Set, Read or Reset in the order of state 's' (a.cc:7), which has not drained");
  release.Arrive();
  EXPECT_OK(state.Set(std::vector<int64_t>{4}));
  EXPECT_EQ(Contents(state, 1), std::vector<int64_t>{4});
  ASSERT_OK(run.Wait());
}

TEST_F(BusyDevice, AResetThatTheDeadlineCutsShortPoisonsAlsoWhatWasPoisoned) {
  State<int64_t> state = Made(Name("s", "a.cc", 7), 1);
  Spoil(state);
  Hold();
  EXPECT_EQ(state.Reset(milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(state.status().ToString(),
            "FAILED_PRECONDITION: state 's' (a.cc:7): poisoned by state 's' (a.cc:7) on host:0: Reset: the deadline "
            "passed while its contents were being copied; its contents are unspecified; Set or Reset it");
  release.Arrive();
  EXPECT_OK(state.Reset());
  EXPECT_OK(state.status());
  ASSERT_OK(run.Wait());
}

// Behind a Reset that has not ended yet the State is sound, whatever it was before.
TEST_F(BusyDevice, ARunMayBeLaunchedAfterAResetOfAPoisonedState) {
  State<int64_t> state = Made("s", 1);
  Spoil(state);
  int64_t seen = -1;
  Graph g("looks");
  Twin(g, "look", [&](const int64_t* v) { seen = v[0]; }, Read(state));
  Executable exec = Compiled(g);
  Hold();
  std::thread resets([&] { EXPECT_OK(state.Reset()); });
  const auto until = std::chrono::steady_clock::now() + seconds(20);
  while (!state.status().ok() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_OK(state.status());
  const auto behind = exec.Launch(exec.bindings());
  EXPECT_OK(behind.status());
  release.Arrive();
  resets.join();
  if (behind.ok()) {
    EXPECT_OK(behind->Wait());
    EXPECT_EQ(seen, 0);
  }
  ASSERT_OK(run.Wait());
}

TEST_F(BusyDevice, AStateDroppedWhileACopyOfItHasNotEndedIsLeakedNotFreed) {
  auto state = std::make_optional(Made(Name("s", "a.cc", 7), 1));
  Hold();
  EXPECT_EQ(state->Reset(milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  state.reset();
  EXPECT_EQ(logged, "state 's' (a.cc:7): dropped while a copy of its contents has not ended; its memory is leaked");
  release.Arrive();
  ASSERT_OK(run.Wait());
}

TEST_F(BusyDevice, AStateDroppedWhenACopyOfItHasEndedLateIsFreed) {
  auto state = std::make_optional(Made(Name("s", "a.cc", 7), 1));
  Hold();
  EXPECT_EQ(state->Reset(milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  release.Arrive();
  ASSERT_OK(run.Wait());
  Hold();  // comes behind the fill
  state.reset();
  EXPECT_EQ(logged, "");
  ASSERT_OK(run.Wait());
}

}  // namespace
}  // namespace penstock::state_test
