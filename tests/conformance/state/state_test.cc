// States on every driver: exact sums over many runs, shared weights, the order of readers and writers, what overlaps,
// poisoning, and States that live on another device than the node.
#include <atomic>
#include <memory>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"
#include "tests/support/rendezvous.h"

namespace penstock::conformance::state_test {
namespace {

using std::chrono::seconds;

constexpr int64_t kN = 3000;

struct SetTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t value, int32_t* x) const { x[i] = value; }
};

struct Add {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<int32_t> x) const { x(i.y, i.x) += by; }
};
struct CopyAll {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<const int32_t> from, View<int32_t> to) const {
    to(i.y, i.x) = from(i.y, i.x);
  }
};

class StateConformance : public GraphConformance {
 protected:
  State<int32_t> Made(const char* name, int64_t n, std::vector<int32_t> initial = {}, int device = 0) {
    auto state = runtime_->MakeState<int32_t>(name, n, initial, {.device = device});
    EXPECT_OK(state.status());
    return state.ok() ? *std::move(state) : State<int32_t>();
  }
  // Host devices that permute their work do one thing at a time.
  int Rounds(int wanted) const { return GetParam().order_seed == 0 && !kSanitized ? wanted : wanted / 10; }
  static std::vector<int32_t> Contents(const State<int32_t>& state, int64_t n) {
    std::vector<int32_t> contents = Poisoned(n);
    EXPECT_OK(state.Read(contents));
    return contents;
  }
};

TEST_P(StateConformance, AccumulatesTheExactSumWithAnyNumberOfSlots) {
  for (int slots = 1; slots <= 4; ++slots) {
    const State<int32_t> sum = Made("sum", kN);
    Graph g("accumulate");
    auto x = g.Input<int32_t>("x", kN);
    g.ParallelFor("add", kN, AddTo{}, Read(x), ReadWrite(sum));
    auto exec = runtime_->Compile(g, {.slots = slots});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    std::vector<int32_t> expected(kN);
    std::vector<penstock::Run> kept;
    for (int r = 0; r < Rounds(200); ++r) {
      auto hx = std::make_shared<std::vector<int32_t>>(kN, static_cast<int32_t>(rng_() % 1000));
      for (int32_t& v : expected) v += hx->front();
      auto run = exec->Launch(io.Set(x, *hx, hx), seconds(60));
      ASSERT_OK(run.status());
      if (rng_() % 2 == 0) kept.push_back(*std::move(run));
      if (rng_() % 8 == 0) kept.clear();
    }
    EXPECT_EQ(Contents(sum, kN), expected) << slots << " slots";
  }
}

TEST_P(StateConformance, TwoExecutablesReadSharedWeightsAtTheSameTime) {
  const State<int32_t> weights = Made("weights", 3, {4, 5, 6});
  Meeting both;
  const auto reader = [&](const char* name) {
    Graph g(name);
    g.Host(
        "read",
        [&](std::span<const int32_t> w) {
          return w[2] == 6 ? Met(both.Join(2)) : absl::InternalError("other weights");
        },
        Read(weights));
    return runtime_->Compile(g);
  };
  auto a = reader("a"), b = reader("b");
  ASSERT_OK(a.status());
  ASSERT_OK(b.status());
  auto run_a = a->Launch(a->bindings()), run_b = b->Launch(b->bindings());
  ASSERT_OK(run_a.status());
  ASSERT_OK(run_b.status());
  EXPECT_OK(run_a->Wait());
  EXPECT_OK(run_b->Wait());
}

TEST_P(StateConformance, AReaderSeesTheWriterBeforeItAndNotTheOneAfter) {
  const State<int32_t> s = Made("s", kN);
  Graph writes("writes");
  auto by = writes.Param<int32_t>("by");
  writes.ParallelFor("set", kN, SetTo{}, by, Write(s));
  Graph reads("reads");
  auto y = reads.Output<int32_t>("y", kN);
  reads.ParallelFor("get", kN, CopyOut{}, Read(s), Write(y));
  auto writer = runtime_->Compile(writes, {.slots = 3}), reader = runtime_->Compile(reads, {.slots = 2});
  ASSERT_OK(writer.status());
  ASSERT_OK(reader.status());
  Bindings out = writer->bindings(), in = reader->bindings();
  for (int32_t r = 1; r <= Rounds(50); ++r) {
    std::vector<int32_t> before = Poisoned(kN), again = Poisoned(kN);
    ASSERT_OK(writer->Launch(out.Set(by, r)).status());
    auto one = reader->Launch(in.Set(y, before)), two = reader->Launch(in.Set(y, again));
    ASSERT_OK(one.status());
    ASSERT_OK(two.status());
    ASSERT_OK(writer->Launch(out.Set(by, -r)).status());
    ASSERT_OK(one->Wait());
    ASSERT_OK(two->Wait());
    EXPECT_EQ(before, std::vector<int32_t>(kN, r));
    EXPECT_EQ(again, before);
  }
}

TEST_P(StateConformance, RunsOverlapButForTheirTouches) {
  const State<int32_t> s = Made("s", 1);
  Meeting heads, tails;
  Graph g("g");
  auto head = g.Host("head", [&] { return Met(heads.Join(2)); });
  head.Concurrency(2);
  auto touch = g.ParallelFor("touch", 1, AddOne{}, ReadWrite(s));
  touch.After(head);
  // Both at once: the second run has touched the State while the first goes on.
  g.Host("tail", [&] { return Met(tails.Join(2)); }).After(touch).Concurrency(2);
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  auto first = exec->Launch(exec->bindings()), second = exec->Launch(exec->bindings());
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  EXPECT_OK(first->Wait());
  EXPECT_OK(second->Wait());
  EXPECT_EQ(Contents(s, 1), std::vector<int32_t>{2});
}

TEST_P(StateConformance, AFailedRunPoisonsUntilSetOrReset) {
  State<int32_t> s = Made("s", 1);
  bool fail = true;
  Graph g("g");
  auto touch = g.ParallelFor("touch", 1, AddOne{}, ReadWrite(s));
  g.Host("fail", [&] { return fail ? absl::InternalError("boom") : absl::OkStatus(); }).After(touch);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  auto run = exec->Launch(exec->bindings());
  ASSERT_OK(run.status());
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(s.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(exec->Launch(exec->bindings()).status().code(), absl::StatusCode::kFailedPrecondition);
  fail = false;
  EXPECT_OK(s.Set(std::vector<int32_t>{6}));
  run = exec->Launch(exec->bindings());
  ASSERT_OK(run.status());
  EXPECT_OK(run->Wait());
  EXPECT_EQ(Contents(s, 1), std::vector<int32_t>{7});
  EXPECT_OK(s.Reset());
  EXPECT_EQ(Contents(s, 1), std::vector<int32_t>{0});
}

TEST_P(StateConformance, ANodeOnAnotherDeviceBringsItThereAndBack) {
  if (runtime_->devices().size() < 2) GTEST_SKIP() << "needs two devices, there is one";
  const State<int32_t> s = Made("s", kN, {}, 1), here = Made("here", kN);
  Graph g("g");
  g.ParallelFor("add", kN, AddOne{}, ReadWrite(s)).On(0);
  g.ParallelFor("both", kN, AddTo{}, Read(s), ReadWrite(here)).On(1);
  auto exec = runtime_->Compile(g, {.slots = 3});
  ASSERT_OK(exec.status());
  const int rounds = Rounds(40);
  for (int r = 0; r < rounds; ++r) ASSERT_OK(exec->Launch(exec->bindings()).status());
  EXPECT_EQ(Contents(s, kN), std::vector<int32_t>(kN, rounds));
  EXPECT_EQ(Contents(here, kN), std::vector<int32_t>(kN, rounds * (rounds + 1) / 2));
}

// A State of two dimensions whose left and right half different nodes change, as they like side by side; another
// changes two columns in the middle; then all of it is read.
class StateBoxes : public StateConformance {
 protected:
  static constexpr int64_t kH = 6, kW = 8;

  void SetUp() override {
    StateConformance::SetUp();
    if (!runtime_) return;
    auto made = runtime_->MakeState<int32_t>(Name("s", "a.cc", 7), {kH, kW});
    ASSERT_OK(made.status());
    s_ = *std::move(made);
  }
  void TearDown() override {
    s_ = {};
    g_ = Graph("gone");
    StateConformance::TearDown();
  }
  static Box Columns(int64_t from, int64_t count) { return Slice({0, from}, {kH, count}); }
  static constexpr int64_t kMiddle = kW / 2 - 1;

  void AddRest() {
    g_.ParallelFor("middle", {kH, 2}, Add{100}, ReadWrite(s_, Columns(kMiddle, 2)));
    g_.ParallelFor("out", {kH, kW}, CopyAll{}, Read(s_), Write(y_));
  }
  // What each of many runs finds at its end; left and right have added 1 and 10.
  void RunInSlots(int slots) {
    auto exec = runtime_->Compile(g_, {.slots = slots});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    std::vector<penstock::Run> runs;
    std::vector<std::vector<int32_t>> seen(static_cast<size_t>(Rounds(30)), Poisoned(kH * kW));
    for (auto& y : seen) {
      auto run = exec->Launch(io.Set(y_, y), seconds(60));
      ASSERT_OK(run.status());
      runs.push_back(*std::move(run));
    }
    for (size_t r = 0; r < runs.size(); ++r) {
      ASSERT_OK(runs[r].Wait());
      ++times_;
      for (int64_t i = 0; i < kH * kW; ++i) {
        const int64_t x = i % kW, added = (x < kW / 2 ? 1 : 10) + (x == kMiddle || x == kMiddle + 1 ? 100 : 0);
        ASSERT_EQ(seen[r][static_cast<size_t>(i)], times_ * added) << "run " << r << ", element " << i;
      }
    }
  }

  State<int32_t> s_;
  Graph g_{"boxes"};
  BufferHandle<int32_t> y_ = g_.Output<int32_t>("y", {kH, kW});
  int32_t times_ = 0;
};

TEST_P(StateBoxes, OverlappingOnesAreOrderedAndTheWholeIsReadAfterThem) {
  g_.ParallelFor("left", {kH, kW / 2}, Add{1}, ReadWrite(s_, Columns(0, kW / 2)));
  auto right = g_.ParallelFor("right", {kH, kW / 2}, Add{10}, ReadWrite(s_, Columns(kW / 2, kW / 2)));
  if (runtime_->devices().size() > 1) right.On(1);
  AddRest();
  for (int slots = 1; slots <= 3; ++slots) RunInSlots(slots);
}

TEST_P(StateBoxes, DisjointOnesAreWrittenAtTheSameTime) {
  Meeting both;
  std::atomic<bool> missed{false};  // then nobody waits again
  const auto add = [&both, &missed](int32_t by) {
    return [&both, &missed, by, wanted = 0](View<int32_t> v) mutable {
      for (int64_t y = 0; y < kH; ++y) {
        for (int64_t x = 0; x < kW / 2; ++x) v(y, x) += by;
      }
      const bool met = !missed && both.Join(wanted += 2);
      if (!met) missed = true;
      return Met(met);
    };
  };
  g_.Host("left", add(1), ReadWrite(s_, Columns(0, kW / 2)));
  g_.Host("right", add(10), ReadWrite(s_, Columns(kW / 2, kW / 2)));
  AddRest();
  RunInSlots(3);
}

TEST_P(StateBoxes, AnUnorderedReadOfTheWholeNeedsAnAfter) {
  auto left = g_.ParallelFor(Name("left", "a.cc", 1), {kH, kW / 2}, Add{1}, ReadWrite(s_, Columns(0, kW / 2)));
  g_.ParallelFor("right", {kH, kW / 2}, Add{10}, ReadWrite(s_, Columns(kW / 2, kW / 2))).After(left);
  auto out = g_.ParallelFor(Name("out", "a.cc", 3), {kH, kW}, CopyAll{}, Unordered(Read(s_)), Write(y_));
  out.After(left);
  const std::string refusal = runtime_->Compile(g_).status().ToString();
  EXPECT_NE(refusal.find("graph 'boxes' node 'out' (a.cc:3)"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("'right'"), std::string::npos) << refusal;
  EXPECT_EQ(refusal.find("'left'"), std::string::npos) << refusal;
}

TEST_P(StateBoxes, OneOutsideTheStateIsRefused) {
  g_.ParallelFor(Name("k", "a.cc", 9), {2, 2}, Add{1}, ReadWrite(s_, Slice({kH - 1, 0}, {2, 2})));
  g_.ParallelFor("out", {kH, kW}, CopyAll{}, Read(s_), Write(y_));
  EXPECT_EQ(runtime_->Compile(g_).status(),
            absl::InvalidArgumentError(
                "graph 'boxes' node 'k' (a.cc:9): access 0 takes 2 elements from 5 on in dimension 0 of 's' (a.cc:7), "
                "which has 6; a slice lies inside its buffer; make its offset or size smaller"));
}

TEST_P(StateBoxes, OneThatAParameterMovesOutsideIsRefusedAtLaunchAndTouchesNothing) {
  auto top = g_.Param<int32_t>("top");
  g_.ParallelFor(Name("k", "a.cc", 9), {2, kW}, Add{1}, ReadWrite(s_, Slice({top, 0}, {2, kW})));
  g_.ParallelFor("out", {kH, kW}, CopyAll{}, Read(s_), Write(y_));
  auto exec = runtime_->Compile(g_);
  ASSERT_OK(exec.status());
  std::vector<int32_t> y = Poisoned(kH * kW), expected(kH * kW);
  Bindings io = exec->bindings();
  io.Set(y_, y);
  for (const int32_t row : {5, 4, -1, 0, 7, 1}) {
    auto run = exec->Launch(io.Set(top, row));
    const bool inside = row >= 0 && row + 2 <= kH;
    EXPECT_EQ(run.status().code(), inside ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument) << row;
    if (!run.ok()) continue;
    for (int64_t i = row * kW; i < (row + 2) * kW; ++i) ++expected[static_cast<size_t>(i)];
    ASSERT_OK(run->Wait());
    EXPECT_EQ(y, expected) << row;
  }
  EXPECT_OK(s_.status());
}

INSTANTIATE_TEST_SUITE_P(Host, StateBoxes, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, StateBoxes, testing::ValuesIn(CudaTargets()), NameOfTarget);

INSTANTIATE_TEST_SUITE_P(Host, StateConformance, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, StateConformance, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::state_test
