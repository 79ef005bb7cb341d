// Constructs: which mistakes are told, what refuses them, and how they end. What they compute is tested on every driver
// (tests/conformance/graph/control_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/runtime.h"
#include "tests/support/environment.h"
#include "tests/support/mode_scope.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::control_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Set {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, float* x) const { *x = 1; }
};
struct Add {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, float* to, const float* from) const { *to += *from; }
};
struct IsPositive {
  PENSTOCK_HOST_DEVICE bool operator()(const float* x) const { return *x > 0; }
};
struct Always {
  PENSTOCK_HOST_DEVICE bool operator()() const { return true; }
};

class ConstructMistakes : public testing::Test {
 protected:
  std::string Told(const Graph& graph) {
    const auto exec = runtime_.Compile(graph);
    EXPECT_FALSE(exec.ok());
    return exec.ok() ? "" : std::string(exec.status().message());
  }
  Runtime runtime_ = HostRuntime();
};

TEST_F(ConstructMistakes, OfTheBodyAreToldWithTheirNodes) {
  Graph g("g");
  auto in = g.Input<float>("in", 1);
  auto a = g.Buffer<float>("a", 1), b = g.Buffer<float>("b", 1);
  auto out = g.Output<float>("out", 1);
  g.If("first", When(IsPositive{}, Read(a)), [&](Graph& then) {  // nobody has written a
    then.ParallelFor("write in", 1, Set{}, Write(in));
  });
  g.While("second", When(Always{}), {.max = 2},
          [&](Graph& body) { body.ParallelFor("read b", 1, Add{}, ReadWrite(out), Read(b)); });
  const std::string told = Told(g);
  EXPECT_THAT(told, HasSubstr("node 'first/condition' "));
  EXPECT_THAT(told, HasSubstr("reads 'a'"));
  EXPECT_THAT(told, HasSubstr("node 'first/then/write in' "));
  EXPECT_THAT(told, HasSubstr("which is an Input"));
  EXPECT_THAT(told, HasSubstr("node 'second/read b' "));
  EXPECT_THAT(told, HasSubstr("reads 'b'"));
}

TEST_F(ConstructMistakes, ABufferOfABodyIsKnownOnlyInIt) {
  Graph g("g");
  auto out = g.Output<float>("out", 1);
  BufferHandle<float> own;
  NodeRef inside = g.ParallelFor("outside", 1, Set{}, Write(out));
  g.Repeat("first", 2, [&](Graph& body) {
    own = body.Buffer<float>("own", 1);
    inside = body.ParallelFor("set", 1, Set{}, Write(own));
    body.If("inner", When(IsPositive{}, Read(own)),
            [&](Graph& then) { then.ParallelFor("add", 1, Add{}, ReadWrite(out), Read(own)); });
  });
  ASSERT_OK(runtime_.Compile(g).status());
  g.Repeat("second", 2,
           [&](Graph& body) { body.ParallelFor("steal", 1, Add{}, ReadWrite(out), Read(own)).After(inside); });
  const std::string told = Told(g);
  EXPECT_THAT(told, HasSubstr("node 'second/steal' "));
  EXPECT_THAT(told, AllOf(HasSubstr("accesses 'first/own'"), HasSubstr("in the body of construct 'first'")));
  EXPECT_THAT(told, HasSubstr("After names node 'first/set'"));
  EXPECT_THAT(told, Not(HasSubstr("first/inner/add")));
}

TEST_F(ConstructMistakes, The65thLevelIsRefusedAndItsBodyNotCalled) {
  const auto levels = [](int most, int& called) {
    Graph g("g");
    auto x = g.InOut<float>("x", 1);
    std::function<void(Graph&)> nest = [&](Graph& body) {
      ++called;
      if (called < most) body.If("r", When(Always{}), nest);
      else body.ParallelFor("set", 1, Set{}, Write(x));
    };
    g.If("r", When(Always{}), nest);
    return g;
  };
  int called = 0;
  ASSERT_OK(runtime_.Compile(levels(64, called), {.slots = 1}).status());
  EXPECT_EQ(called, 64);
  called = 0;
  EXPECT_THAT(Told(levels(70, called)), HasSubstr("is the 65th of constructs within each other"));
  EXPECT_EQ(called, 64);
}

TEST_F(ConstructMistakes, TwoConstructsWithOneNameAreOneMistake) {
  Graph g("g");
  auto x = g.InOut<float>("x", 1);
  for (int i = 0; i < 2; ++i) {
    g.If("twice", When(IsPositive{}, Read(x)), [&](Graph& body) {
      body.ParallelFor("set", 1, Set{}, Write(body.Buffer<float>("own", 1)));
      body.Repeat("inner", 2, [&](Graph& inner) { inner.ParallelFor("set", 1, Set{}, Write(x)); });
    });
  }
  EXPECT_THAT(Told(g), AllOf(HasSubstr("construct 'twice'"), HasSubstr("declared 2 times"), Not(HasSubstr("twice/"))));
}

TEST_F(ConstructMistakes, NumbersThatAreNoneAreRefused) {
  Graph g("g");
  auto x = g.InOut<float>("x", 1);
  g.Repeat("less", -3, [&](Graph& body) { body.ParallelFor("set", 1, Set{}, Write(x)); });
  g.While("never", When(Always{}), {.max = -1}, [&](Graph& body) { body.ParallelFor("set", 1, Set{}, Write(x)); });
  g.While("unexpected", When(Always{}), {.expected = -2},
          [&](Graph& body) { body.ParallelFor("set", 1, Set{}, Write(x)); });
  Graph other("other");
  g.Repeat("of another", other.Param<int32_t>("n", AtMost(3)), [](Graph&) {});
  const std::string told = Told(g);
  EXPECT_THAT(told, AllOf(HasSubstr("construct 'less'"), HasSubstr("-3 times")));
  EXPECT_THAT(told, AllOf(HasSubstr("construct 'never'"), HasSubstr("max is -1")));
  EXPECT_THAT(told, AllOf(HasSubstr("construct 'unexpected'"), HasSubstr("expected is -2")));
  EXPECT_THAT(told, AllOf(HasSubstr("construct 'of another'"), HasSubstr("a parameter of another graph")));
}

TEST_F(ConstructMistakes, NumbersOfIterationsAreInOneElement) {
  Graph g("g");
  auto two = g.Buffer<int64_t>("two", 2);
  auto in = g.Input<int32_t>("in", 1);
  auto x = g.InOut<float>("x", 1);
  const auto set = [&](Graph& body) { body.ParallelFor("set", 1, Set{}, Write(x)); };
  g.While("many", When(Always{}).Count(two), {.max = 2}, set);
  g.While("none", When(Always{}).Capped(Write(two, Slice({0}, {0}))), {.max = 2}, set);
  g.Repeat("often", Read(two), set);
  g.While("input", When(Always{}).Count(in), {.max = 2}, set);
  const std::string told = Told(g);
  for (const char* name : {"many", "none", "often"}) {
    EXPECT_THAT(told, HasSubstr("construct '" + std::string(name) + "' "));
  }
  EXPECT_THAT(told, HasSubstr("what is named for it is not one element"));
  EXPECT_THAT(told, AllOf(HasSubstr("node 'input/condition' "), HasSubstr("which is an Input")));
  EXPECT_THAT(told, Not(HasSubstr("construct 'input'")));
}

TEST(Constructs, AreRefusedWhereTheyCannotBe) {
  const ModeScope mode("");  // that of the test counts
  Runtime runtime = HostRuntime();
  float value = 0;
  const auto declare = [&](Graph& g) {
    auto x = g.InOut<float>("x", 1);
    g.While("loop", When(Always{}), {.max = 2}, [&](Graph& body) { body.ParallelFor("set", 1, Set{}, Write(x)); });
    return x;
  };
  Graph g("g");
  const auto x = declare(g);
  auto exec = runtime.Compile(g, {.mode = Mode::kGraph});
  ASSERT_OK(exec.status());
  const absl::Status exported = exec->Export(exec->bindings().Set(x, std::span(&value, 1))).status();
  EXPECT_THAT(std::string(exported.message()), HasSubstr("such as 'loop'"));
  GraphCache cache(runtime);
  const absl::Status cached =
      cache.Launch([&](Graph& again, Bindings& io) { io.Set(declare(again), std::span(&value, 1)); }).status();
  EXPECT_EQ(cached.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(cached.message()), HasSubstr("construct 'loop'"));
}

TEST(Constructs, AreInThePlanTheReportAndTheMemory) {
  Runtime runtime = HostRuntime();
  Graph g("g");
  auto x = g.InOut<float>("x", 1);
  g.If("choose", When(IsPositive{}, Read(x)), [&](Graph& then) {
    auto own = then.Buffer<float>("own", 1000);
    then.ParallelFor("first", 1, Set{}, Write(own));
    then.ParallelFor("second", 1, Add{}, ReadWrite(x), Read(own));
  });
  auto exec = runtime.Compile(g, {.slots = 3});
  ASSERT_OK(exec.status());
  const std::string plan = exec->PlanText();
  EXPECT_THAT(plan, HasSubstr("condition of construct 'choose'"));
  EXPECT_THAT(plan, HasSubstr("then of construct 'choose'"));
  EXPECT_THAT(plan, HasSubstr("choose/then/second"));
  EXPECT_THAT(plan, Not(HasSubstr("no node uses it")));
  EXPECT_THAT(exec->PlanDot(), AllOf(HasSubstr("choose\\nif"), HasSubstr("label=\"condition\""),
                                     HasSubstr("label=\"then\""), HasSubstr("choose/then/second")));
  EXPECT_THAT(exec->submission_report().notes, testing::Contains(HasSubstr("the device decides construct 'choose'")));
  int64_t bytes = 0;
  for (const MemoryReport::Arena& arena : exec->memory().arenas) {
    if (arena.where != "pinned") bytes += arena.all_bytes;
  }
  EXPECT_GE(bytes, 3 * 4000);
}

// A body consists of the condition and so many kernels; its iterations have at most 48 kernels in all.
TEST(Constructs, HoldSeveralIterationsIfTheirBodiesAreShort) {
  Runtime runtime = HostRuntime();
  const auto held = [&](int kernels, int64_t max, bool nested) {
    Graph g("g");
    auto x = g.InOut<float>("x", 1);
    g.While("loop", When(Always{}), {.max = max}, [&](Graph& body) {
      for (int k = 0; k < kernels; ++k) body.ParallelFor(Name("set", k), 1, Set{}, Write(x));
      if (nested) body.If("choose", When(IsPositive{}, Read(x)), [](Graph&) {});
    });
    auto exec = runtime.Compile(g);
    EXPECT_OK(exec.status());
    for (const std::string& note : exec->submission_report().notes) {
      const size_t at = note.find("holds ");
      if (at != std::string::npos) return std::stoi(note.substr(at + 6));
    }
    return 1;
  };
  EXPECT_EQ(held(1, 1000, false), 8);
  EXPECT_EQ(held(5, 1000, false), 8);
  EXPECT_EQ(held(6, 1000, false), 4);
  EXPECT_EQ(held(23, 1000, false), 2);
  EXPECT_EQ(held(24, 1000, false), 1);
  EXPECT_EQ(held(1, 7, false), 4) << "not more than there may be";
  EXPECT_EQ(held(1, 1, false), 1);
  EXPECT_EQ(held(1, 1000, true), 1) << "kernels cannot switch a construct";
}

// Up to 4 bodies of up to 4 kernels.
TEST(Constructs, OfShortBodiesHaveNoConditionalNode) {
  Runtime runtime = HostRuntime();
  const auto switches = [&](std::vector<int> kernels, bool nested = false) {
    Graph g("g");
    auto x = g.InOut<float>("x", 1);
    const auto body = [&](size_t number) {
      return [&, number](Graph& in) {
        for (int k = 0; k < kernels[number]; ++k) in.ParallelFor(Name("set", k), 1, Set{}, Write(x));
        if (nested) in.If("nested", When(IsPositive{}, Read(x)), [](Graph&) {});
      };
    };
    const auto when = When(IsPositive{}, Read(x));
    if (kernels.size() == 1) g.If("choose", when, body(0));
    else if (kernels.size() == 2) g.If("choose", when, body(0), body(1));
    else if (kernels.size() == 4) g.Switch("choose", when, body(0), body(1), body(2), body(3));
    else g.Switch("choose", when, body(0), body(1), body(2), body(3), body(4));
    auto exec = runtime.Compile(g);
    EXPECT_OK(exec.status());
    for (const std::string& note : exec->submission_report().notes) {
      if (note.find("switches the kernels") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(switches({1}));
  EXPECT_TRUE(switches({4}));
  EXPECT_FALSE(switches({5}));
  EXPECT_TRUE(switches({0, 4}));
  EXPECT_TRUE(switches({4, 4}));
  EXPECT_FALSE(switches({4, 5}));
  EXPECT_TRUE(switches({4, 3, 0, 1}));
  EXPECT_FALSE(switches({1, 1, 1, 1, 1}));
  EXPECT_FALSE(switches({0, 0}));
  EXPECT_FALSE(switches({1}, /*nested=*/true)) << "kernels cannot switch a construct";
}

// What waits for a worker, and all around it, is driven by the host.
TEST(Constructs, AreDecidedByTheDeviceWhereTheyCan) {
  Runtime runtime = HostRuntime();
  Graph g("g");
  auto x = g.InOut<float>("x", 1);
  const auto set = [&](Graph& in) {
    in.ParallelFor("set", 1, Set{}, Write(x));
    in.Host("asked", [](std::span<const float>) {}, Read(x)).Infallible();
  };
  g.While("outer", When(Always{}), {.max = 2}, [&](Graph& outer) {
    outer.If("inner", When(IsPositive{}, Read(x)), set);
    outer.Host("see", [](std::span<const float>) {}, Read(x));
  });
  const auto notes = [&](Lowering lowering) {
    auto exec = runtime.Compile(g, {.constructs = lowering});
    EXPECT_OK(exec.status());
    std::vector<std::string> of_constructs;
    for (const std::string& note : exec->submission_report().notes) {
      if (note.find("construct") != std::string::npos) of_constructs.push_back(note);
    }
    return of_constructs;
  };
  EXPECT_THAT(notes(Lowering::kAuto),
              testing::ElementsAre(AllOf(HasSubstr("the host drives construct 'outer'"), HasSubstr("'outer/see'"),
                                         HasSubstr("mark it Infallible or Inline"))));
  EXPECT_THAT(notes(Lowering::kHost), testing::ElementsAre(HasSubstr("CompileOptions::constructs asks for it")));
  const absl::Status refused = runtime.Compile(g, {.constructs = Lowering::kDevice}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("construct 'outer'"), HasSubstr("'outer/see'")));
  const EnvironmentScope wrong("PENSTOCK_CONSTRUCTS", "gpu");
  EXPECT_THAT(std::string(runtime.Compile(g).status().message()), HasSubstr("PENSTOCK_CONSTRUCTS is 'gpu'"));
}

TEST(Constructs, CountForTheBudgetOfAnExecutable) {
  Runtime runtime = HostRuntime();
  Graph g("g");
  auto x = g.InOut<float>("x", 1000);
  g.If("choose", When(IsPositive{}, Read(x)), [&](Graph& then) {
    auto own = then.Buffer<float>("own", 1000);
    then.ParallelFor("first", 1000, Set{}, Write(own));
    then.ParallelFor("second", 1, Add{}, ReadWrite(x), Read(own));
  });
  const absl::Status refused = runtime.Compile(g, {.slots = 2, .device_bytes = 10'000}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("device_bytes of 10000"));
  EXPECT_OK(runtime.Compile(g, {.slots = 2, .device_bytes = 20'000}).status());
}

struct Double {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, float* x) const { *x *= 2; }
};

// Then a Repeat is nodes like others.
TEST(Constructs, AreUnrolledIfTheirRoundsAreKnownAndFew) {
  const ModeScope mode("");  // that of the test counts
  Runtime runtime = HostRuntime();
  const auto compile = [&](int rounds, BufferHandle<float>& x) {
    Graph g("g");
    x = g.InOut<float>("x", 1);
    g.Repeat("outer", rounds, [&](Graph& outer) {
      outer.Repeat("inner", 2, [&](Graph& inner) { inner.ParallelFor("double", 1, Double{}, ReadWrite(x)); });
    });
    return *runtime.Compile(g, {.mode = Mode::kGraph});
  };
  BufferHandle<float> x;
  Executable exec = compile(3, x);
  EXPECT_THAT(exec.PlanText(), AllOf(HasSubstr("outer/inner/double (2) (3)"), Not(HasSubstr("of construct"))));
  EXPECT_THAT(exec.submission_report().notes, testing::Contains(HasSubstr("unrolled: 3 rounds, 6 nodes in all")));
  float value = 1;
  auto run = exec.Launch(exec.bindings().Set(x, std::span(&value, 1)));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(value, 64);
  EXPECT_THAT(compile(128, x).PlanText(), Not(HasSubstr("of construct")));
  EXPECT_THAT(compile(129, x).PlanText(), HasSubstr("body of construct 'outer'"));
}

// The part of a run that begins while the runtime shuts down is still a part of a run in flight.
TEST(Constructs, AreWaitedForByShutdown) {
  Runtime runtime = HostRuntime();
  Graph g("g");
  auto x = g.InOut<float>("x", 1);
  std::atomic<bool> begun{false}, may_end{false};
  std::atomic<int> calls{0};
  auto five = g.Param<int64_t>("five");
  g.Repeat("loop", five, [&](Graph& body) {
    body.Host(
        "wait",
        [&](std::span<float>) {
          begun = true;
          while (!may_end) std::this_thread::yield();
          ++calls;
        },
        ReadWrite(x));
  });
  auto exec = runtime.Compile(g);
  ASSERT_OK(exec.status());
  float value = 0;
  auto run = exec->Launch(exec->bindings().Set(x, std::span(&value, 1)).Set(five, 5));
  ASSERT_OK(run.status());
  while (!begun) std::this_thread::yield();
  std::thread shuts([&] { EXPECT_OK(runtime.Shutdown()); });
  while (runtime.Compile(Graph("none")).ok()) std::this_thread::yield();  // until it shuts down
  may_end = true;
  shuts.join();
  EXPECT_OK(run->Wait());
  EXPECT_EQ(calls, 5);
}

// A Shutdown that gives up ends the loop before its next iteration.
TEST(Constructs, EndWhenAShutdownGivesUp) {
  Runtime runtime = HostRuntime();
  Graph g("g");
  auto x = g.InOut<float>("x", 1);
  g.While("loop", When(Always{}), {}, [&](Graph& body) { body.ParallelFor("set", 1, Set{}, Write(x)); });
  auto exec = runtime.Compile(g);
  ASSERT_OK(exec.status());
  float value = 0;
  auto run = exec->Launch(exec->bindings().Set(x, std::span(&value, 1)));
  ASSERT_OK(run.status());
  EXPECT_EQ(runtime.Shutdown(std::chrono::milliseconds(10)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(run->Wait().ok());
  EXPECT_OK(runtime.Shutdown());  // now nothing is in flight
}

}  // namespace
}  // namespace penstock::control_test
