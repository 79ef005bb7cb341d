// States on every driver: exact sums over many runs, shared weights, the order of readers and writers, what overlaps,
// poisoning, and States that live on another device than the node.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/conformance/graph_fixture.h"

namespace penstock::conformance {
namespace {

using std::chrono::seconds;

constexpr int64_t kN = 3000;

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* x, int32_t* sum) const { sum[i] += x[i]; }
};
struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const { x[i] += 1; }
};
struct SetTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t value, int32_t* x) const { x[i] = value; }
};
struct CopyOut {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* from, int32_t* to) const { to[i] = from[i]; }
};

// Threads that wait until so many have come; gives up after a long while.
class Meeting {
 public:
  bool Join(int wanted) {
    std::unique_lock<std::mutex> lock(mu_);
    ++count_;
    cv_.notify_all();
    return cv_.wait_for(lock, seconds(20), [&] { return count_ >= wanted; });
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  int count_ = 0;
};

absl::Status Met(bool met) { return met ? absl::OkStatus() : absl::InternalError("nobody came"); }

class StateConformance : public GraphConformance {
 protected:
  State<int32_t> Made(const char* name, int64_t n, std::vector<int32_t> initial = {}, int device = 0) {
    auto state = runtime_->MakeState<int32_t>(name, n, initial, {.device = device});
    EXPECT_OK(state.status());
    return state.ok() ? *std::move(state) : State<int32_t>();
  }
  // Host devices that permute their work do one thing at a time.
  int Rounds(int wanted) const { return GetParam().order_seed == 0 ? wanted : wanted / 10; }
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

INSTANTIATE_TEST_SUITE_P(Host, StateConformance,
                         testing::Values(Target{"host:1", "stream"}, Target{"host:3", "stream"}),
                         [](const auto& p) { return p.param.devices == "host:1" ? "one" : "three"; });
INSTANTIATE_TEST_SUITE_P(HostChecked, StateConformance,
                         testing::Values(Target{"host:1", "stream", true}, Target{"host:3", "stream", true, 1},
                                         Target{"host:3", "stream", true, 2}),
                         [](const auto& p) { return "order" + std::to_string(p.param.order_seed); });
INSTANTIATE_TEST_SUITE_P(Cuda, StateConformance,
                         testing::Values(Target{"cuda", "stream"}, Target{"cuda", "stream", true}),
                         [](const auto& p) { return p.param.mode + (p.param.checked ? "_checked" : ""); });

}  // namespace
}  // namespace penstock::conformance
