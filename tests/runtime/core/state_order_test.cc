// The order of runs in shared States, on host devices: sums that come out right however many slots there are, what
// overlaps and what must not, and that nobody waits for ever.
#include <atomic>
#include <future>
#include <memory>
#include <random>
#include <thread>

#include "src/runtime/core/test_hook.h"
#include "tests/support/latch.h"
#include "tests/support/null_driver.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_stack.h"
#include "tests/support/state_fixture.h"

namespace penstock::state_order_test {
namespace {

using std::chrono::seconds;

class StateOrderTest : public StateFixture {};

constexpr int64_t kN = 1000;

// sum += x
Graph Accumulator(const State<int64_t>& sum, BufferHandle<int64_t>* x) {
  Graph g("accumulate");
  *x = g.Input<int64_t>("x", kN);
  g.ParallelFor("add", kN, AddTo<int64_t>{}, Read(*x), ReadWrite(sum));
  return g;
}

TEST_F(StateOrderTest, AccumulatesTheExactSumWithAnyNumberOfSlots) {
  std::mt19937_64 random(20261121);
  for (int slots = 1; slots <= 4; ++slots) {
    const State<int64_t> sum = Made("sum", kN), runs = Made("runs", 1);
    BufferHandle<int64_t> x;
    Graph g = Accumulator(sum, &x);
    Twin(
        g, "count",
        [](int64_t* n) {
          const int64_t seen = n[0];
          for (int i = 0; i < 2; ++i) std::this_thread::yield();  // time for another run to come between
          n[0] = seen + 1;
        },
        ReadWrite(runs))
        .Concurrency(4);
    Executable exec = Compiled(g, {.slots = slots});
    Bindings io = exec.bindings();
    std::vector<int64_t> expected(kN);
    std::vector<penstock::Run> kept;
    for (int64_t r = 0; r < 200; ++r) {
      auto hx = std::make_shared<std::vector<int64_t>>(kN);
      for (int64_t i = 0; i < kN; ++i) (*hx)[static_cast<size_t>(i)] = static_cast<int64_t>(random() % 1000000);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += (*hx)[i];
      auto run = exec.Launch(io.Set(x, *hx, hx), seconds(60));
      ASSERT_OK(run.status());
      if (random() % 2 == 0) kept.push_back(*std::move(run));
      if (!kept.empty() && random() % 4 == 0) {
        ASSERT_OK(kept.front().Wait());
        kept.erase(kept.begin());
      }
    }
    EXPECT_EQ(Contents(sum, kN), expected) << slots << " slots, seed 20261121";
    EXPECT_EQ(Contents(runs, 1), std::vector<int64_t>{200}) << slots << " slots";
  }
}

// The last touch comes after a host node, so it is not submitted when the next run is launched: that one must be pushed
// on although nobody waits for either.
TEST_F(StateOrderTest, RunsMoveOnThroughHostNodesWithoutAnybodyWaiting) {
  const State<int64_t> sum = Made("sum", 1);
  Graph g("g");
  auto t = g.Buffer<int64_t>("t", 1);
  Twin(g, "first", [](const int64_t* s, int64_t* to) { to[0] = s[0]; }, Read(sum), Write(t));
  g.Host("add", [](std::span<int64_t> v) { v[0] = v[0] * 3 + 1; }, ReadWrite(t));
  Twin(g, "last", [](const int64_t* from, int64_t* s) { s[0] = from[0]; }, Read(t), Write(sum));
  Executable exec = Compiled(g, {.slots = 4});
  int64_t expected = 0;
  for (int r = 0; r < 30; ++r) {
    ASSERT_OK(exec.Launch(exec.bindings(), seconds(60)).status());
    expected = expected * 3 + 1;
  }
  EXPECT_EQ(Contents(sum, 1), std::vector<int64_t>{expected});
}

// It has nothing that would have it watched but its place in the order.
TEST_F(StateOrderTest, ARunWithoutHostNodesMovesOnAtItsTurnWithoutAnybodyWaiting) {
  const State<int64_t> s = Made("s", 1);
  Meeting release, touched;
  Graph holds("holds"), waits("waits");
  const NodeRef hold = holds.Host("hold", [&] { return Met(release.Await(1)); });
  Twin(holds, "touch", [](int64_t* v) { ++v[0]; }, ReadWrite(s)).After(hold);
  Twin(waits, "touch", [&](int64_t* v) { ++v[0], touched.Arrive(); }, ReadWrite(s));
  Executable first = Compiled(holds), second = Compiled(waits);
  const auto ahead = first.Launch(first.bindings()), behind = second.Launch(second.bindings());
  ASSERT_OK(ahead.status());
  ASSERT_OK(behind.status());
  release.Arrive();
  EXPECT_TRUE(touched.Await(1));
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{2});
}

// Does nothing, at once and without ringing, but keeps whoever submits a copy. It sees whenever a run is pushed on: its
// device is made current.
class StuckAtCopies final : public runtime::NullDriver {
 public:
  StuckAtCopies(driver::Latch& latch, std::atomic<int>& looks) : latch_(latch), looks_(looks) {}
  int MakeCurrent(int) override {
    looks_.fetch_add(1);
    looks_.notify_all();
    return 0;
  }
  absl::Status Copy(driver::Stream, const driver::CopyOp&) override {
    latch_.Arrive();
    return absl::OkStatus();
  }

 private:
  driver::Latch& latch_;
  std::atomic<int>& looks_;
};

// The run behind sleeps, and the only one who can wake it is held up in what comes after its last touch.
TEST_F(StateOrderTest, ALastTouchWakesWhoeverComesAfter) {
  driver::Latch latch;
  std::atomic<int> looks{0};
  const runtime::ScopedDriverHook hook({.wrap = [&](auto) { return std::make_unique<StuckAtCopies>(latch, looks); }});
  Runtime runtime = *Runtime::Create({.devices = "host", .workers = 2});
  const State<int64_t> s = *runtime.MakeState<int64_t>("s", 1);
  Meeting go;
  Graph ahead("ahead"), behind("behind");
  auto t = ahead.Buffer<int64_t>("t", 1), u = ahead.Buffer<int64_t>("u", 1);
  const NodeRef host = ahead.Host("go", [&] { return Met(go.Await(1)); });
  Twin(ahead, "touch", [](int64_t*, int64_t*) {}, ReadWrite(s), Write(t)).After(host);
  ahead.Copy("stay", t, u);
  Twin(ahead, "need", [](int64_t*) {}, ReadWrite(u));
  Twin(behind, "touch", [](int64_t*) {}, ReadWrite(s));
  Executable first = *runtime.Compile(ahead), second = *runtime.Compile(behind);
  const penstock::Run stuck = *first.Launch(first.bindings());
  const int before = looks;
  std::promise<absl::Status> told;
  second.Launch(second.bindings())->OnDone([&](const absl::Status& status) { told.set_value(status); });
  // Once by Launch, once by or for the completion thread, which sleeps then.
  for (int seen = looks; seen < before + 2; seen = looks) looks.wait(seen);
  go.Arrive();
  ASSERT_TRUE(latch.AwaitArrived());
  auto ended = told.get_future();
  EXPECT_EQ(ended.wait_for(seconds(20)), std::future_status::ready);
  latch.Open();
  EXPECT_OK(ended.get());
  EXPECT_OK(stuck.Wait());
}

TEST_F(StateOrderTest, ManyThreadsAddToOneState) {
  const State<int64_t> sum = Made("sum", kN);
  BufferHandle<int64_t> x;
  Executable exec = Compiled(Accumulator(sum, &x), {.slots = 2});
  std::vector<std::thread> threads;
  for (int64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<int64_t> hx(kN, t);
      Bindings io = exec.bindings();
      for (int r = 0; r < 50; ++r) {
        auto run = exec.Launch(io.Set(x, hx), seconds(60));
        EXPECT_OK(run.ok() ? run->Wait(seconds(60)) : run.status());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Contents(sum, kN), std::vector<int64_t>(kN, 50 * (1 + 2 + 3 + 4)));
}

// Two graphs of one slot each touch two States in opposite order, with host nodes between, so that each run holds one
// State for long before it comes to the other. With States taken one by one, or in the order of the nodes, two runs
// would each hold what the other waits for.
TEST_F(StateOrderTest, RunsThatTouchTwoStatesCrosswiseDoNotDeadlock) {
  const State<int64_t> a = Made("a", 1), b = Made("b", 1);
  const auto crossing = [&](const char* name, const State<int64_t>& first, const State<int64_t>& second) {
    Graph g(name);
    auto t = g.Buffer<int64_t>("t", 1);
    Twin(g, "one", [](int64_t* s, int64_t* to) { to[0] = ++s[0]; }, ReadWrite(first), Write(t));
    g.Host("between", [](std::span<int64_t>) { std::this_thread::yield(); }, ReadWrite(t));
    Twin(g, "two", [](const int64_t*, int64_t* s) { ++s[0]; }, Read(t), ReadWrite(second));
    return Compiled(g, {.slots = 1});
  };
  Executable ab = crossing("ab", a, b), ba = crossing("ba", b, a);
  constexpr int kRuns = 200;
  const auto launch = [&](Executable& exec) {
    for (int r = 0; r < kRuns; ++r) {
      auto run = exec.Launch(exec.bindings(), seconds(60));
      ASSERT_OK(run.status());
      if (r % 3 == 0) {
        ASSERT_OK(run->Wait(seconds(60)));
      }
    }
  };
  std::thread other([&] { launch(ba); });
  launch(ab);
  other.join();
  EXPECT_EQ(Contents(a, 1), std::vector<int64_t>{2 * kRuns});
  EXPECT_EQ(Contents(b, 1), std::vector<int64_t>{2 * kRuns});
}

// One slot, more threads than slots, and another graph on the same State: whoever waits for the slot holds no place in
// the State's order, else the holder of the slot would wait for it.
TEST_F(StateOrderTest, NobodyWaitsForASlotWithAPlaceInTheOrder) {
  const State<int64_t> s = Made("s", 1);
  Graph g("g");
  g.Host("pause", [] { std::this_thread::yield(); });
  Twin(g, "add", [](int64_t* v) { ++v[0]; }, ReadWrite(s)).After(g.Host("again", [] {}));
  Executable one = Compiled(g, {.slots = 1}), two = Compiled(g, {.slots = 1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      Executable& exec = t % 2 == 0 ? one : two;
      for (int r = 0; r < 60; ++r) {
        auto run = exec.Launch(exec.bindings(), seconds(60));
        EXPECT_OK(run.status());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{360});
}

TEST_F(StateOrderTest, RunsOverlapButForTheirTouches) {
  const State<int64_t> s = Made("s", 1);
  Meeting heads, touches;
  Graph g("g");
  auto t = g.Buffer<int64_t>("t", 1);
  auto u = g.Buffer<int64_t>("u", 1);
  // Run 1 touches only once run 2 has begun, and ends only once run 2 has touched.
  Twin(g, "head", [&](int64_t*) { heads.Arrive(); }, Write(t));
  Twin(
      g, "touch",
      [&](const int64_t*, int64_t* v, int64_t*) {
        const absl::Status met = Met(heads.Await(2));
        ++v[0];
        touches.Arrive();
        return met;
      },
      Read(t), ReadWrite(s), Write(u));
  Twin(g, "tail", [&](const int64_t*) { return Met(touches.Await(2)); }, Read(u));
  Executable exec = Compiled(g, {.slots = 2});
  auto first = exec.Launch(exec.bindings()), second = exec.Launch(exec.bindings());
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  EXPECT_OK(first->Wait());
  EXPECT_OK(second->Wait());
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{2});
}

TEST_F(StateOrderTest, ReadersOfSharedWeightsRunAtTheSameTime) {
  const State<int64_t> weights = Made("weights", 1, std::vector<int64_t>{21});
  Meeting both;
  const auto reader = [&](const char* name) {
    Graph g(name);
    Twin(
        g, "read",
        [&](const int64_t* w) {
          both.Arrive();
          return w[0] == 21 ? Met(both.Await(2)) : absl::InternalError("other weights");
        },
        Read(weights));
    return Compiled(g);
  };
  Executable a = reader("a"), b = reader("b");
  auto run_a = a.Launch(a.bindings()), run_b = b.Launch(b.bindings());
  ASSERT_OK(run_a.status());
  ASSERT_OK(run_b.status());
  EXPECT_OK(run_a->Wait());
  EXPECT_OK(run_b->Wait());
}

// A writer between two readers, by three executables: each reads what was there at its turn, every time.
TEST_F(StateOrderTest, AReaderSeesTheWriterBeforeItAndNotTheOneAfter) {
  const State<int64_t> s = Made("s", kN);
  Graph writes("writes");
  auto by = writes.Param<int64_t>("by");
  writes.ParallelFor("set", kN, [](int64_t i, int64_t v, int64_t* to) { to[i] = v; }, by, Write(s));
  Graph reads("reads");
  auto y = reads.Output<int64_t>("y", kN);
  reads.ParallelFor("get", kN, CopyOut<int64_t>{}, Read(s), Write(y));
  Executable writer = Compiled(writes, {.slots = 3}), reader = Compiled(reads, {.slots = 3});
  Bindings out = writer.bindings(), in = reader.bindings();
  for (int64_t r = 1; r <= 60; ++r) {
    std::vector<int64_t> before(kN), again(kN);
    ASSERT_OK(writer.Launch(out.Set(by, r)).status());
    auto one = reader.Launch(in.Set(y, before)), two = reader.Launch(in.Set(y, again));
    ASSERT_OK(one.status());
    ASSERT_OK(two.status());
    ASSERT_OK(writer.Launch(out.Set(by, -r)).status());
    ASSERT_OK(one->Wait());
    ASSERT_OK(two->Wait());
    EXPECT_EQ(before, std::vector<int64_t>(kN, r));
    EXPECT_EQ(again, std::vector<int64_t>(kN, r));
  }
}

// With frames for each run it would end the process: 256 KiB are 131 bytes a run.
TEST_F(StateOrderTest, ALongLineOfRunsIsLookedBackAlongOnASmallStack) {
  constexpr int kRuns = kSanitized ? 1000 : 2000;  // sanitized, a frame is larger
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1);
  Meeting release;
  Graph first("first"), later("later");
  Twin(
      first, Name("fails", "a.cc", 5),
      [&release](int64_t*) {
        EXPECT_TRUE(release.Await(1));
        return absl::InternalError("boom");
      },
      ReadWrite(s));
  Twin(later, "adds", [](int64_t* v) { ++v[0]; }, ReadWrite(s));
  std::vector<Executable> executables;
  std::vector<penstock::Run> runs;
  for (int i = 0; i < kRuns; ++i) {
    executables.push_back(Compiled(i == 0 ? first : later, {.slots = 1}));
    auto run = executables.back().Launch(executables.back().bindings());
    ASSERT_OK(run.status());
    runs.push_back(*std::move(run));
  }
  OnSmallStack([&] { EXPECT_OK(s.status()); });
  release.Arrive();
  EXPECT_EQ(
      runs.back().Wait().ToString(),
      "FAILED_PRECONDITION: graph 'later': state 's' (a.cc:7): poisoned by graph 'first' node 'fails' (a.cc:5) on "
      "host:0: boom; its contents are unspecified; Set or Reset it");
}

TEST_F(StateOrderTest, SetAndReadTakeTheirTurnAmongRuns) {
  State<int64_t> s = Made("s", 1);
  Graph g("g");
  Twin(g, "double", [](int64_t* v) { v[0] *= 2; }, ReadWrite(s));
  Executable exec = Compiled(g, {.slots = 3});
  for (int64_t r = 1; r <= 50; ++r) {
    ASSERT_OK(s.Set(std::vector<int64_t>{r}));
    ASSERT_OK(exec.Launch(exec.bindings()).status());
    ASSERT_OK(exec.Launch(exec.bindings()).status());
    EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{4 * r});
    ASSERT_OK(exec.Launch(exec.bindings()).status());
  }
}

TEST_F(StateOrderTest, APipelineBringsItsItemsToAStateInOrder) {
  const State<int64_t> sum = Made("sum", 1);
  Graph g("prefix");
  auto x = g.Input<int64_t>("x", 1);
  auto y = g.Output<int64_t>("y", 1);
  g.ParallelFor("add", 1, AddTo<int64_t>{}, Read(x), ReadWrite(sum));
  g.ParallelFor("out", 1, CopyOut<int64_t>{}, Read(sum), Write(y));
  struct Numbers {
    std::vector<int64_t> in, out;
  };
  int64_t made = 0, seen = 0;
  Stages<Numbers> stages;
  stages.Host("mix",
              [](Numbers& numbers) {
                for (int64_t i = 0; i < numbers.in[0] * 7 % 5; ++i) std::this_thread::yield();
              },
              {.workers = 4});
  stages.Run("prefix", Compiled(g, {.slots = 3}),
             [&](Item<Numbers>& item) { item.Set(x, item->in).Set(y, item->out); });
  auto pipeline = Pipeline<Numbers>::Create(std::move(stages));
  ASSERT_OK(pipeline.status());
  const auto source = [&]() -> std::optional<Numbers> {
    if (made == 100) return std::nullopt;
    return Numbers{{made++}, {-1}};
  };
  ASSERT_OK(pipeline->Run(source, [&](Item<Numbers>& item) {
    EXPECT_OK(item.status());
    EXPECT_EQ(item->out[0], seen * (seen + 1) / 2) << "item " << seen;
    ++seen;
  }));
  EXPECT_EQ(seen, 100);
}

}  // namespace
}  // namespace penstock::state_order_test
