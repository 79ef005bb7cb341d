// Bindings: mistakes that are kept and forgiven, memory that overlaps, handles of nothing; whole texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <numeric>
#include <thread>

#include "penstock/graph.h"
#include "tests/support/held_graph.h"

namespace penstock::bindings_test {
namespace {

std::string At(int line) { return "(bindings_test.cc:" + std::to_string(line) + ")"; }

struct Axpy {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t a, const int32_t* x, int32_t* y) const { y[i] += a * x[i]; }
};

class BindingsTest : public testing::Test {
 protected:
  BindingsTest() {
    a_line_ = __LINE__ + 1;
    a_ = graph_.Param<int32_t>("a");
    x_ = graph_.Input<int32_t>("x", 8);
    y_ = graph_.InOut<int32_t>("y", 8);
    graph_.ParallelFor("axpy", 8, Axpy{}, a_, Read(x_), ReadWrite(y_));
    exec_ = *runtime_.Compile(graph_);
    io_ = exec_.bindings();
    io_.Set(a_, 1).Set(x_, hx_).Set(y_, hy_);
  }
  // The text Launch refuses with; empty where the run is OK.
  std::string Refused() {
    const absl::StatusOr<penstock::Run> run = exec_.Launch(io_);
    return Text(run.ok() ? run->Wait() : run.status());
  }

  Graph graph_{"g"};
  int a_line_ = 0;
  ParamHandle<int32_t> a_;
  BufferHandle<int32_t> x_, y_;
  std::vector<int32_t> hx_ = std::vector<int32_t>(8), hy_ = std::vector<int32_t>(8), small_ = std::vector<int32_t>(7);
  Runtime runtime_ = HostRuntime();
  Executable exec_;
  Bindings io_;
};

TEST_F(BindingsTest, WhatIsNotSetIsNamed) {
  io_ = exec_.bindings();
  EXPECT_EQ(Refused(), "graph 'g' param 'a' " + At(a_line_) +
                           ": not set; every parameter needs a value before the first launch; call Set");
  io_.Set(a_, 1);
  EXPECT_EQ(Refused(), "graph 'g' buffer 'x' " + At(a_line_ + 1) +
                           ": nothing is bound; every Input, Output and InOut needs memory; call Set");
}

TEST(BindingsOfParameters, AreToldWithTheSignOfTheirType) {
  Runtime runtime = HostRuntime();
  Graph graph("g");
  const auto n = graph.Param<uint64_t>(Name("n", "a.cc", 1), AtMost(4));
  const auto m = graph.Param<int8_t>(Name("m", "a.cc", 2), AtMost(4));
  graph.Host("h", [](uint64_t, int8_t) {}, n, m);
  Executable exec = *runtime.Compile(graph);
  EXPECT_EQ(Text(exec.Launch(exec.bindings().Set(n, ~uint64_t{0}).Set(m, int8_t{0})).status()),
            "graph 'g' param 'n' (a.cc:1): set to 18446744073709551615; declared AtMost(4), so it must be 0 to 4");
  EXPECT_EQ(Text(exec.Launch(exec.bindings().Set(n, uint64_t{1}).Set(m, int8_t{-1})).status()),
            "graph 'g' param 'm' (a.cc:2): set to -1; declared AtMost(4), so it must be 0 to 4");
}

TEST_F(BindingsTest, AMistakeIsForgivenWhenTheSameThingIsSetRightly) {
  const BufferHandle<float> wrong_type(x_.graph(), x_.index());
  std::vector<float> floats(8);
  io_.Set(wrong_type, floats);
  EXPECT_EQ(Refused(),
            "graph 'g' buffer 'x' " + At(a_line_ + 1) +
                ": Set with a handle of another type (float; it was declared as int32_t); use the handle that "
                "its declaration returned");
  io_.Set(y_, hy_);  // another buffer: the mistake stays
  EXPECT_NE(Refused(), "");
  io_.Set(x_, hx_);
  EXPECT_EQ(Refused(), "");
  io_.Set(ParamHandle<float>(a_.graph(), a_.index()), 1.f);
  EXPECT_EQ(Refused(),
            "graph 'g' param 'a' " + At(a_line_) +
                ": Set with a handle of another type (float; it was declared as int32_t); use the handle that "
                "its declaration returned");
  io_.Set(a_, 2);
  EXPECT_EQ(Refused(), "");
  io_.Set(x_, small_);
  EXPECT_EQ(Refused(), "graph 'g' buffer 'x' " + At(a_line_ + 1) +
                           ": bound to 7 elements; its extent in this run has 8; bind exactly that many");
  io_.Set(x_, hx_);
  EXPECT_EQ(Refused(), "");
}

TEST_F(BindingsTest, HasIsTrueForWhatTheNextLaunchWouldUse) {
  EXPECT_TRUE(io_.Has(a_) && io_.Has(x_));
  io_.ClearBuffers();
  EXPECT_TRUE(io_.Has(a_) && !io_.Has(x_));
  Bindings fresh = exec_.bindings();
  EXPECT_FALSE(fresh.Has(a_) || fresh.Has(x_));
  std::vector<float> floats(8);
  io_.Set(x_, hx_).Set(BufferHandle<float>(x_.graph(), x_.index()), floats);
  EXPECT_FALSE(io_.Has(x_)) << "a launch is refused";
  io_.Set(x_, *runtime_.MakeHostBuffer<int32_t>(8)).Set(y_, hy_);
  EXPECT_TRUE(io_.Has(x_));
  EXPECT_EQ(Refused(), "");
  EXPECT_FALSE(io_.Has(x_)) << "the run has taken it";
  Graph other("other");
  EXPECT_FALSE(io_.Has(other.Param<int32_t>("a")) || io_.Has(BufferHandle<int32_t>()) || Bindings().Has(a_));
}

// The graph reads and writes variables of one element each, one of them with a type that is a range.
TEST_F(BindingsTest, AVariableIsTheOneElementOfItsBuffer) {
  using Pair = std::array<int32_t, 2>;
  Graph graph("variables");
  const auto from = graph.Input<Pair>("from", 1);
  const auto to = graph.Output<int32_t>("to", 1);
  graph.ParallelFor(
      "add", 1, [](int64_t, const Pair* x, int32_t* y) { *y = x->front() + x->back(); }, Read(from), Write(to));
  Executable exec = *runtime_.Compile(graph);
  Pair pair{3, 4};
  const Pair constant{10, 20};
  int32_t sum = 0;
  Bindings io = exec.bindings();
  EXPECT_EQ(exec.Launch(io.Set(from, pair).Set(to, sum))->Wait(), absl::OkStatus());
  EXPECT_EQ(sum, 7);
  pair = {5, 6};
  EXPECT_EQ(exec.Launch(io)->Wait(), absl::OkStatus());
  EXPECT_EQ(sum, 11);
  EXPECT_EQ(exec.Launch(exec.bindings().Set(from, constant).Set(to, sum))->Wait(), absl::OkStatus());
  EXPECT_EQ(sum, 30);
  const int32_t unwritable = 0;
  EXPECT_THAT(Text(exec.Launch(io.Set(to, unwritable)).status()), testing::HasSubstr("bound to const memory"));
  io_.Set(x_, sum);
  EXPECT_THAT(Refused(), testing::HasSubstr("bound to 1 elements; its extent in this run has 8"));
}

// Threads launch at once, without bindings of their own.
TEST_F(BindingsTest, AGraphThatNeedsNothingIsLaunchedWithoutThem) {
  EXPECT_THAT(Text(exec_.Launch().status()), testing::HasSubstr("param 'a'"));
  EXPECT_THAT(Text(exec_.TryLaunch().status()), testing::HasSubstr("param 'a'"));
  const State<int32_t> count = *runtime_.MakeState<int32_t>("count", 1);
  Graph graph("count");
  graph.ParallelFor("count", 1, [](int64_t, int32_t* n) { *n += 1; }, ReadWrite(count));
  Executable exec = *runtime_.Compile(graph);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) EXPECT_EQ(exec.Launch(std::chrono::minutes(1)).status(), absl::OkStatus());
      });
    }
  }
  absl::StatusOr<penstock::Run> last = exec.TryLaunch();
  while (absl::IsResourceExhausted(last.status())) last = exec.TryLaunch();
  EXPECT_EQ(last.status(), absl::OkStatus());
  std::vector<int32_t> counted(1);
  EXPECT_EQ(count.Read(counted), absl::OkStatus());
  EXPECT_EQ(counted[0], 201);
  const absl::StatusOr<penstock::Run> late = exec.Launch(std::chrono::nanoseconds(-1));
  EXPECT_EQ((late.ok() ? late->Wait() : late.status()).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(BindingsTest, ARunIsTrueIfThereIsAnExecution) {
  penstock::Run run = *exec_.Launch(io_);
  EXPECT_TRUE(run);
  const penstock::Run taken = std::move(run);
  EXPECT_TRUE(taken);
  EXPECT_FALSE(run);  // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(penstock::Run());
  ASSERT_OK(taken.Wait());
}

TEST_F(BindingsTest, AHandleOfAnotherGraphStaysAMistake) {
  Graph other("other");
  auto launch = other.Input<int32_t>("x", 8);
  auto foreign_param = other.Param<int32_t>("a");
  io_.Set(launch, hx_).Set(x_, hx_);
  EXPECT_EQ(Refused(),
            "graph 'g': Set was given a buffer of another graph; a handle is good in the graph that made it; use this "
            "graph's, with fresh bindings or after ClearBuffers");
  io_.ClearBuffers();
  io_.Set(x_, hx_).Set(y_, hy_);
  EXPECT_EQ(Refused(), "");
  io_.Set(foreign_param, 1).Set(a_, 1);
  EXPECT_EQ(Refused(),
            "graph 'g': Set was given a parameter of another graph; a handle is good in the graph that made it; use "
            "this graph's, with fresh bindings");
}

TEST_F(BindingsTest, InternalBuffersCannotBeBound) {
  auto t = graph_.Buffer<int32_t>("t", 8);
  graph_.Fill("fill", t, 0);
  exec_ = *runtime_.Compile(graph_);
  io_ = exec_.bindings();
  io_.Set(a_, 1).Set(x_, hx_).Set(y_, hy_).Set(t, hx_);
  EXPECT_NE(Refused().find("buffer 't' (bindings_test.cc:"), std::string::npos);
  EXPECT_NE(Refused().find(": lives inside the run and cannot be bound; declare it Input, Output or InOut"),
            std::string::npos);
}

TEST_F(BindingsTest, MemoryThatOverlapsIsRefusedWhereOneSideIsWritten) {
  std::vector<int32_t> memory(16);
  const std::span<int32_t> all(memory);
  io_.Set(x_, all.subspan(1, 8)).Set(y_, all.subspan(8, 8));  // one element shared
  EXPECT_EQ(Refused(), "graph 'g' buffer 'y' " + At(a_line_ + 2) +
                           ": bound to memory that overlaps the memory of buffer 'x', and the graph writes one of "
                           "them; bind memory of their own");
  io_.Set(x_, all.first(8));
  EXPECT_EQ(Refused(), "");
}

TEST_F(BindingsTest, MemoryThatIsOnlyReadMayBeSharedAmongManyBuffers) {
  constexpr int kInputs = 100;
  Graph g("many");
  std::vector<BufferHandle<int32_t>> in;
  for (int i = 0; i < kInputs; ++i) in.push_back(g.Input<int32_t>("in " + std::to_string(i), 8));
  auto out = g.InOut<int32_t>("out", 8);
  for (int i = 0; i < kInputs; ++i) {
    g.Host(
        "add " + std::to_string(i),
        [](std::span<const int32_t> from, std::span<int32_t> to) {
          for (size_t e = 0; e < to.size(); ++e) to[e] += from[e];
        },
        Read(in[i]), ReadWrite(out));
  }
  exec_ = *runtime_.Compile(g);
  io_ = exec_.bindings();
  std::iota(hx_.begin(), hx_.end(), 0);
  for (const auto& handle : in) io_.Set(handle, hx_);
  io_.Set(out, hy_);
  ASSERT_EQ(Refused(), "");
  for (int e = 0; e < 8; ++e) EXPECT_EQ(hy_[e], kInputs * e);
  io_.Set(out, hx_);
  EXPECT_NE(Refused().find("overlaps the memory of buffer"), std::string::npos);
}

// Const, not const and moved in: a HostBuffer is a range of elements too, and must not be taken for one.
TEST_F(BindingsTest, AHostBufferIsKeptAliveByTheRunHoweverItIsGiven) {
  HeldGraph held;
  Executable exec = *runtime_.Compile(held.graph, {.slots = 3});
  std::vector<std::weak_ptr<void>> blocks;
  std::vector<penstock::Run> runs;
  for (int way = 0; way < 3; ++way) {
    auto buffer = *runtime_.MakeHostBuffer<int32_t>(4);
    blocks.push_back(buffer.block());
    Bindings io = exec.bindings();
    if (way == 0) io.Set(held.x, std::as_const(buffer));
    if (way == 1) io.Set(held.x, buffer);
    if (way == 2) io.Set(held.x, std::move(buffer));
    runs.push_back(*exec.Launch(io));
  }
  for (const auto& block : blocks) EXPECT_FALSE(block.expired());
  held.latch.Open();
  for (const penstock::Run& run : runs) ASSERT_OK(run.Wait());
  ASSERT_OK(runtime_.Shutdown());
  for (const auto& block : blocks) EXPECT_TRUE(block.expired());
}

TEST_F(BindingsTest, ConstMemoryAndWrongPlacesAreNamed) {
  const std::vector<int32_t> fixed(8);
  io_.Set(y_, fixed);
  EXPECT_EQ(Refused(), "graph 'g' buffer 'y' " + At(a_line_ + 2) +
                           ": bound to const memory, but the graph writes it; bind memory that may be written");
}

TEST_F(BindingsTest, BindingsFitTheExecutablesOfTheirGraphAsItWas) {
  const std::string text =
      "graph 'g': the bindings were made by an executable of another graph, or by none; use this one's bindings()";
  Executable same = *runtime_.Compile(graph_);
  auto run = same.Launch(io_);
  ASSERT_EQ(run.status(), absl::OkStatus());
  EXPECT_EQ(run->Wait(), absl::OkStatus());
  EXPECT_EQ(Text(exec_.Launch(Bindings()).status()), text);
  graph_.Param<int>("one more");
  Executable grown = *runtime_.Compile(graph_);
  EXPECT_EQ(Text(grown.Launch(io_).status()), text);
  EXPECT_EQ(Text(exec_.Launch(grown.bindings()).status()), text);
  Graph buffers("g");
  buffers.Input<int32_t>("x", 1);
  EXPECT_EQ(Text(exec_.Launch(runtime_.Compile(buffers)->bindings()).status()), text);
}

TEST_F(BindingsTest, AnEmptyExecutableRefusesWhateverIsSet) {
  Executable none;
  EXPECT_EQ(none.Launch().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.TryLaunch().status().code(), absl::StatusCode::kFailedPrecondition);
  Bindings io = none.bindings();
  io.Set(a_, 1).Set(x_, hx_);
  io.ClearBuffers();
  const std::string text = "this Executable was default-constructed or moved from; use Runtime::Compile";
  EXPECT_EQ(Text(none.Launch(io).status()), text);
  EXPECT_EQ(none.TryLaunch(io).status().code(), absl::StatusCode::kFailedPrecondition);
  Executable taken = std::move(exec_);
  EXPECT_EQ(Text(exec_.Launch(exec_.bindings()).status()), text);  // NOLINT: moved from on purpose
}

}  // namespace
}  // namespace penstock::bindings_test
