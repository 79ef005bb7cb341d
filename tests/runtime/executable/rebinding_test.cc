// Launches with bindings that have stayed as they were, which are not bound anew, among those that have not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/held_graph.h"

namespace penstock::rebinding_test {
namespace {

using driver::PointerInfo;

// Counts what is asked of memory, and says of one address that it is pageable.
class ToldDriver : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override {
    ++asked;
    absl::StatusOr<PointerInfo> info = ForwardingDriver::Inspect(memory);
    const auto at = reinterpret_cast<uintptr_t>(pageable);
    return info.ok() && info->Covers(at, 1) ? PointerInfo{} : info;
  }
  int asked = 0;
  const void* pageable = nullptr;
};

constexpr int64_t kN = 4;

struct Digits {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* a, const int32_t* b, const int32_t* c,
                                       int32_t* y) const {
    y[i] = a[i] + 100 * b[i] + 10000 * c[i];
  }
};

class RebindingTest : public testing::Test {
 protected:
  RebindingTest() {
    const runtime::ScopedDriverHook hook({.wrap = [this](std::unique_ptr<driver::Driver> host) {
      auto made = std::make_unique<ToldDriver>(std::move(host));
      driver_ = made.get();
      return made;
    }});
    runtime_.emplace(*Runtime::Create({.devices = "host", .workers = 2, .host_device_threads = 1}));
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = graph_.Input<int32_t>("x" + std::to_string(i), kN);
    y_ = graph_.Output<int32_t>("y", kN);
    graph_.ParallelFor("digits", kN, Digits{}, Read(x_[0]), Read(x_[1]), Read(x_[2]), Write(y_));
  }
  HostBuffer<int32_t> Zeros(int64_t n = kN) {
    HostBuffer<int32_t> memory = *runtime_->MakeHostBuffer<int32_t>(n);
    std::fill(memory.begin(), memory.end(), 0);
    return memory;
  }
  absl::Status Run(Executable& exec, const Bindings& io) {
    const absl::StatusOr<penstock::Run> run = exec.Launch(io);
    return run.ok() ? run->Wait() : run.status();
  }

  Graph graph_{"g"};
  std::array<BufferHandle<int32_t>, 3> x_;
  BufferHandle<int32_t> y_;
  ToldDriver* driver_ = nullptr;
  std::optional<Runtime> runtime_;
};

// Memory of both kinds, bindings that are changed, copied and assigned, on slots that take turns: each launch uses what
// its bindings say at the time.
TEST_F(RebindingTest, EachLaunchUsesWhatItsBindingsSay) {
  std::mt19937 random(20261122);
  std::vector<HostBuffer<int32_t>> pinned;
  std::vector<std::vector<int32_t>> pageable;
  for (int i = 0; i < 6; ++i) {
    pinned.push_back(Zeros());
    pageable.emplace_back(static_cast<size_t>(kN));
  }
  std::vector<std::span<int32_t>> all;
  for (auto& memory : pinned) all.push_back(memory.span());
  for (auto& memory : pageable) all.push_back(memory);
  const size_t inputs = all.size() - 4;  // the last four, of both kinds, are outputs
  std::rotate(all.begin(), all.begin() + 2, all.end());
  for (const int slots : {1, 3}) {
    Executable exec = *runtime_->Compile(graph_, {.slots = slots});
    struct Io {
      Bindings bindings;
      std::array<size_t, 4> set;
    };
    std::vector<Io> ios;
    const auto bind = [&](Io& io, size_t place) {
      io.set[place] = place == 3 ? inputs + random() % 4 : random() % inputs;
      io.bindings.Set(place == 3 ? y_ : x_[place], all[io.set[place]]);
    };
    for (int i = 0; i < 3; ++i) {
      ios.push_back({exec.bindings(), {}});
      for (size_t place = 0; place < 4; ++place) bind(ios.back(), place);
    }
    for (int step = 0; step < 600; ++step) {
      Io& io = ios[random() % ios.size()];
      const uint32_t what = random() % 8;
      if (what == 0) bind(io, random() % 4);
      if (what == 1) io = ios[random() % ios.size()];
      if (what == 2) {
        Io copy = io;
        bind(copy, random() % 4);
        io = std::move(copy);
      }
      if (what == 3) {
        io.bindings.ClearBuffers();
        ASSERT_EQ(Run(exec, io.bindings).code(), absl::StatusCode::kFailedPrecondition) << "step " << step;
        for (size_t place = 0; place < 4; ++place) bind(io, place);
      }
      if (what == 4) {  // refused when most is bound
        Bindings overlapping = io.bindings;
        overlapping.Set(y_, all[io.set[0]]);
        ASSERT_EQ(Run(exec, overlapping).code(), absl::StatusCode::kInvalidArgument) << "step " << step;
      }
      std::vector<std::vector<int32_t>> expected;
      for (const std::span<int32_t> memory : all) {
        for (int32_t& word : memory) word = static_cast<int32_t>(random() % 100);
        expected.emplace_back(memory.begin(), memory.end());
      }
      for (size_t i = 0; i < static_cast<size_t>(kN); ++i) {
        expected[io.set[3]][i] = all[io.set[0]][i] + 100 * all[io.set[1]][i] + 10000 * all[io.set[2]][i];
      }
      std::vector<Lease> taken;  // so the launch gets another slot
      while (taken.size() < random() % static_cast<uint32_t>(slots)) taken.push_back(*exec.Acquire());
      std::shuffle(taken.begin(), taken.end(), random);
      ASSERT_OK(Run(exec, io.bindings)) << "step " << step;
      for (size_t m = 0; m < all.size(); ++m) {
        ASSERT_THAT(all[m], testing::ElementsAreArray(expected[m])) << "step " << step << ", memory " << m;
      }
    }
  }
}

TEST_F(RebindingTest, OnlyAllocationsThatArePinnedAreAskedForAgain) {
  Executable exec = *runtime_->Compile(graph_, {.slots = 1});
  Bindings io = exec.bindings();
  auto one = Zeros(2 * kN);
  std::vector<int32_t> plain(static_cast<size_t>(kN)), out(static_cast<size_t>(kN));
  io.Set(x_[0], one.span().first(kN)).Set(x_[1], one.span().last(kN)).Set(x_[2], plain).Set(y_, out);
  const auto asked = [&] {
    driver_->asked = 0;
    EXPECT_OK(Run(exec, io));
    return driver_->asked;
  };
  const int first = asked();
  EXPECT_GE(first, 3) << "the pinned allocation and each memory that is none";
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(asked(), 1);
  io.Set(y_, out);
  EXPECT_EQ(asked(), first) << "set again";
  EXPECT_EQ(asked(), 1);
}

// A HostBuffer that the bindings hold cannot become anything else, unless somebody else has bound a part of it.
TEST_F(RebindingTest, MemoryThatIsHeldIsNotAskedForAgain) {
  Executable exec = *runtime_->Compile(graph_, {.slots = 1});
  Bindings io = exec.bindings();
  const auto one = Zeros(), two = Zeros(), three = Zeros();
  std::vector<int32_t> out(static_cast<size_t>(kN));
  io.Set(x_[0], one).Set(x_[1], two).Set(x_[2], three).Set(y_, out);
  const auto asked = [&] {
    driver_->asked = 0;
    EXPECT_OK(Run(exec, io));
    return driver_->asked;
  };
  EXPECT_GE(asked(), 1);
  EXPECT_EQ(asked(), 0);
  io.Set(x_[1], two.span());
  EXPECT_GE(asked(), 1);
  EXPECT_GE(asked(), 1) << "a span says nothing of who has the memory";
}

// It is the pool's again when the run has ended.
TEST_F(RebindingTest, MemoryThatWasMovedInIsBoundOnce) {
  Executable exec = *runtime_->Compile(graph_, {.slots = 1});
  Bindings io = exec.bindings();
  std::vector<int32_t> out(static_cast<size_t>(kN));
  for (const auto& x : x_) io.Set(x, Zeros());
  io.Set(y_, out);
  ASSERT_OK(Run(exec, io));
  EXPECT_THAT(Text(Run(exec, io)), testing::HasSubstr("buffer 'x0'"));
  for (const auto& x : x_) io.Set(x, Zeros());
  EXPECT_OK(Run(exec, io));
}

// A launch that fails once all is bound leaves it where it was.
TEST_F(RebindingTest, MemoryMovedIntoALaunchThatFailedIsStillToBeTaken) {
  bool fail = false;
  State<int32_t> state = *runtime_->MakeState<int32_t>("state", 1);
  Graph graph("held");
  auto x = graph.Input<int32_t>("x", kN);
  graph.Launch(
           "look", [](LaunchContext&, auto...) {}, Read(x), ReadWrite(state))
      .HostFallback(
          [&fail](const int32_t*, int32_t*) { return fail ? absl::InternalError("told to") : absl::OkStatus(); });
  Executable exec = *runtime_->Compile(graph, {.slots = 1});
  Bindings io = exec.bindings();
  const std::vector<int32_t> plain(static_cast<size_t>(kN));
  fail = true;
  ASSERT_EQ(Run(exec, io.Set(x, plain)).code(), absl::StatusCode::kInternal);
  fail = false;
  io.Set(x, Zeros());
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Text(Run(exec, io)), testing::HasSubstr("poisoned"));
  ASSERT_OK(state.Reset());
  EXPECT_OK(Run(exec, io));
  EXPECT_THAT(Text(Run(exec, io)), testing::HasSubstr("nothing is bound"));
}

TEST_F(RebindingTest, AfterCountsThoughTheMemoryStays) {
  driver::Latch latch;
  Graph first("first"), second("second");
  auto unused = first.InOut<int32_t>("unused", kN);
  first.Host("hold", [&](std::span<int32_t>) { latch.Arrive(); }, ReadWrite(unused));
  auto x = second.Input<int32_t>("x", kN, kDevice), y = second.Output<int32_t>("y", kN);
  second.Copy("copy", Read(x), Write(y));
  Executable a = *runtime_->Compile(first, {.slots = 1}), b = *runtime_->Compile(second, {.slots = 1});
  const DeviceBuffer<int32_t> memory = *runtime_->MakeDeviceBuffer<int32_t>(kN);
  std::vector<int32_t> words(static_cast<size_t>(kN)), out(static_cast<size_t>(kN));
  Bindings ia = a.bindings(), ib = b.bindings();
  ia.Set(unused, words);
  ib.Set(x, memory).Set(y, out);
  Graph fill("fill");
  auto to = fill.Output<int32_t>("to", kN, kDevice);
  fill.Fill("five", to, 5);
  Executable c = *runtime_->Compile(fill);
  Bindings ic = c.bindings();
  ASSERT_OK(Run(c, ic.Set(to, memory)));
  ASSERT_OK(Run(b, ib));
  const penstock::Run ahead = *a.Launch(ia);
  const penstock::Run behind = *b.Launch(ib.After(x, ahead));
  EXPECT_EQ(behind.Wait(std::chrono::milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
  latch.Open();
  EXPECT_OK(behind.Wait());
  EXPECT_TRUE(ahead.done());
  EXPECT_THAT(out, testing::Each(5));
}

// A launch with bindings that have stayed as they were touches no owner, however many buffers there are.
TEST_F(RebindingTest, RunsShareTheOwnersOfMemoryAndLetGoOfThemWhenTheLastHasEnded) {
  Graph graph("held");
  const auto x = graph.Input<int32_t>("x", kN);
  driver::Latch latch;
  graph.Host("hold", [&latch](std::span<const int32_t>) { latch.Arrive(); }, Read(x));
  Executable exec = *runtime_->Compile(graph, {.slots = 3});
  const auto memory = std::make_shared<std::vector<int32_t>>(kN);
  Bindings io = exec.bindings();
  io.Set(x, std::span(*memory), memory);
  std::vector<penstock::Run> runs;
  runs.push_back(*exec.Launch(io));
  const auto owners = memory.use_count();
  EXPECT_GT(owners, 1);
  runs.push_back(*exec.Launch(io));
  runs.push_back(*exec.Launch(io));
  EXPECT_EQ(memory.use_count(), owners);
  io.ClearBuffers();
  EXPECT_GT(memory.use_count(), 1) << "runs are in flight";
  latch.Open();
  for (const penstock::Run& run : runs) EXPECT_OK(run.Wait());
  runs.clear();
  exec = {};  // a run lets go after it has ended
  runtime_.reset();
  EXPECT_EQ(memory.use_count(), 1);
}

// What runs wait for while a run is held, whose memory a loop keeps bound.
class AfterTest : public RebindingTest {
 protected:
  AfterTest() {
    Graph first("first"), copy("copy");
    auto unused = first.InOut<int32_t>("unused", kN);
    first.Host("hold", [this](std::span<int32_t>) { latch_.Arrive(); }, ReadWrite(unused));
    x_in_ = copy.Input<int32_t>("x", kN, kDevice);
    auto y = copy.Output<int32_t>("y", kN);
    copy.Copy("copy", Read(x_in_), Write(y));
    hold_ = *runtime_->Compile(first, {.slots = 1});
    copy_ = *runtime_->Compile(copy, {.slots = 1});
    io_ = copy_.bindings().Set(x_in_, *runtime_->MakeDeviceBuffer<int32_t>(kN)).Set(y, out_);
    done_ = *copy_.Launch(io_);
    EXPECT_OK(done_.Wait());
    held_ = *hold_.Launch(hold_.bindings().Set(unused, words_));
  }
  ~AfterTest() override {
    latch_.Open();
    EXPECT_OK(held_.Wait());  // it uses the latch
  }

  // Whether a launch with these bindings waits for the held run.
  bool Waits() {
    const absl::StatusOr<penstock::Run> run = copy_.Launch(io_);
    EXPECT_OK(run.status());
    if (!run.ok() || run->Wait(std::chrono::milliseconds(20)).ok()) return false;
    latch_.Open();
    EXPECT_OK(run->Wait());
    return held_.done();
  }

  driver::Latch latch_;
  std::vector<int32_t> words_ = std::vector<int32_t>(kN), out_ = std::vector<int32_t>(kN);
  BufferHandle<int32_t> x_in_;
  Executable hold_, copy_;
  Bindings io_;
  penstock::Run done_, held_;
};

TEST_F(AfterTest, ReplacesWhatAnEarlierAfterNamed) {
  io_.After(x_in_, held_).After(x_in_, done_);
  EXPECT_FALSE(Waits());
  io_.After(x_in_, done_).After(x_in_, held_);
  EXPECT_TRUE(Waits());
}

TEST_F(AfterTest, OfNothingWaitsForNothing) {
  io_.After(x_in_, held_).After(x_in_, std::span<const penstock::Run>());
  EXPECT_FALSE(Waits());
}

TEST_F(AfterTest, NamesSeveralRunsAtOnce) {
  io_.After(x_in_, {held_, done_});
  EXPECT_TRUE(Waits());
}

TEST_F(AfterTest, TakesAVectorOfRuns) {
  const std::vector<penstock::Run> runs = {done_, held_};
  io_.After(x_in_, runs);
  EXPECT_TRUE(Waits());
}

TEST_F(AfterTest, CountsInAStepThatIsDeclaredAgain) {
  GraphCache cache(*runtime_);
  const DeviceBuffer<int32_t> memory = *runtime_->MakeDeviceBuffer<int32_t>(kN);
  const auto step = [&](std::span<const penstock::Run> before) {
    return cache.Launch([&, before](Graph& g, Bindings& io) {
      const auto x = g.Input<int32_t>("x", kN, kDevice), y = g.Output<int32_t>("y", kN);
      g.Copy("copy", Read(x), Write(y));
      io.Set(x, memory).Set(y, out_).After(x, held_).After(x, before);
    });
  };
  const std::vector<penstock::Run> both = {done_, held_};
  EXPECT_OK(step(std::span(both).first(1))->Wait());
  const absl::StatusOr<penstock::Run> run = step(both);
  ASSERT_OK(run.status());
  EXPECT_EQ(run->Wait(std::chrono::milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
  latch_.Open();
  EXPECT_OK(run->Wait());
}

TEST_F(AfterTest, ACorrectOneReplacesAMistake) {
  io_.After(x_in_, penstock::Run());
  EXPECT_THAT(Text(copy_.Launch(io_).status()), testing::HasSubstr("default-constructed or moved from"));
  io_.After(x_in_, done_);
  EXPECT_FALSE(Waits());
}

// Where a parameter says which part of the memory is used, memory that has stayed is patched anew.
TEST_F(RebindingTest, APartThatDependsOnAParameterMovesThoughItsMemoryStays) {
  Graph graph("parts");
  auto from = graph.Param<int64_t>("from", AtMost(kN - 1));
  auto x = graph.Input<int32_t>("x", kN), y = graph.Output<int32_t>("y", 1);
  graph.Copy("copy", Read(x, Slice({from}, {1})), Write(y));
  Executable exec = *runtime_->Compile(graph, {.slots = 1});
  auto memory = Zeros(), out = Zeros(1);
  std::iota(memory.span().begin(), memory.span().end(), 10);
  Bindings io = exec.bindings();
  io.Set(x, memory.span()).Set(y, out.span());
  for (int64_t i = 0; i < kN; ++i) {
    ASSERT_OK(Run(exec, io.Set(from, i)));
    EXPECT_EQ(out.span()[0], 10 + i);
  }
}

TEST_F(RebindingTest, MemoryThatIsNoLongerPinnedIsSeen) {
  Graph graph("pinned only");
  auto x = graph.Input<int32_t>("x", kN, kPinned), y = graph.Output<int32_t>("y", kN);
  graph.Copy("copy", Read(x), Write(y));
  Executable exec = *runtime_->Compile(graph, {.slots = 1});
  auto memory = Zeros();
  std::vector<int32_t> out(static_cast<size_t>(kN));
  Bindings io = exec.bindings();
  io.Set(x, memory.span()).Set(y, out);
  ASSERT_OK(Run(exec, io));
  driver_->pageable = memory.data();
  EXPECT_THAT(Text(Run(exec, io)), testing::HasSubstr("bound to memory that is not pinned"));
  EXPECT_THAT(Text(Run(exec, io)), testing::HasSubstr("bound to memory that is not pinned"));
  driver_->pageable = nullptr;
  std::fill(memory.span().begin(), memory.span().end(), 7);
  ASSERT_OK(Run(exec, io));
  EXPECT_THAT(out, testing::Each(7));
}

TEST_F(RebindingTest, ARunKeepsItsMemoryAliveHoweverOftenItWasBound) {
  driver::Latch latch;
  std::atomic<bool> hold{false};
  Graph graph("held");
  auto x = graph.InOut<int32_t>("x", kN);
  graph.Host(
      "hold",
      [&](std::span<int32_t>) {
        if (hold) latch.Arrive();
      },
      ReadWrite(x));
  Executable exec = *runtime_->Compile(graph, {.slots = 1});
  auto memory = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(kN));
  const std::weak_ptr<std::vector<int32_t>> watch = memory;
  Bindings io = exec.bindings();
  io.Set(x, *memory, memory);
  memory.reset();
  for (int i = 0; i < 3; ++i) ASSERT_OK(Run(exec, io));
  hold = true;
  const penstock::Run run = *exec.Launch(io);
  io.ClearBuffers();
  EXPECT_FALSE(watch.expired());
  latch.Open();
  ASSERT_OK(run.Wait());
  ASSERT_OK(runtime_->Shutdown());
  EXPECT_TRUE(watch.expired());
}

// As CUDA: nobody rings when work ends.
class PolledDriver : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  bool notifies_completion() const override { return false; }
  absl::StatusOr<bool> Query(driver::Event event) override {
    ++asked;
    return ForwardingDriver::Query(event);
  }
  std::atomic<int> asked{0};
};

TEST(PolledTest, ALaunchAsksForNothingItHasJustSubmitted) {
  PolledDriver* polled = nullptr;
  std::optional<Runtime> runtime;
  {
    const runtime::ScopedDriverHook hook({.wrap = [&](std::unique_ptr<driver::Driver> host) {
      auto made = std::make_unique<PolledDriver>(std::move(host));
      polled = made.get();
      return made;
    }});
    runtime.emplace(*Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1}));
  }
  Graph graph("g");
  auto x = graph.InOut<int32_t>("x", kN, kPinned);
  graph.ParallelFor("add", kN, [] PENSTOCK_HOST_DEVICE(int64_t i, int32_t* v) { ++v[i]; }, ReadWrite(x));
  Executable exec = *runtime->Compile(graph, {.slots = 1});
  auto memory = *runtime->MakeHostBuffer<int32_t>(kN);
  std::fill(memory.span().begin(), memory.span().end(), 0);
  Bindings io = exec.bindings();
  io.Set(x, memory.span());
  penstock::Run run = *exec.Launch(io);
  EXPECT_EQ(polled->asked, 0);
  ASSERT_OK(run.Wait());
  EXPECT_GT(polled->asked, 0);
  {
    const penstock::Run dropped = *exec.Launch(io);
  }
  driver::Latch told;
  run = *exec.Launch(io);  // waits for the slot
  run.OnDone([&](const absl::Status&) { told.Arrive(); });
  told.Open();
  ASSERT_OK(run.Wait());
  ASSERT_OK(runtime->Shutdown());
  EXPECT_THAT(memory.span(), testing::Each(3));
}

}  // namespace
}  // namespace penstock::rebinding_test
