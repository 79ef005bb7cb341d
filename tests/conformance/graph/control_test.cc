// If, Switch, While and Repeat on every driver: random programs against an interpreter that runs them as C++ would,
// and what a body may hold.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/conformance/graph/compiled_program.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::control_test {
namespace {

class Controls : public GraphConformance {
 protected:
  void Check(uint32_t seed);

 private:
  void CheckFailure(CompiledProgram& program, CompiledProgram::Io io, uint32_t random);
  void CheckCancel(CompiledProgram& program, CompiledProgram::Io io, uint32_t random);
};

void ExpectResults(const CompiledProgram& program, const CompiledProgram::Io& io, Values& of_state) {
  Interpreter interpreter = program.Interpret(io, of_state);
  EXPECT_EQ(io.got, interpreter.memory()[0]);
  EXPECT_EQ(io.now, interpreter.memory()[1]);
  EXPECT_EQ(io.end, interpreter.memory()[3]);
}

// Runs a program twice at once and once more, with a Host node that fails, with a Cancel at some time, and once more.
void Controls::Check(uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  CompiledProgram program(*runtime_,
                          {.draw = [&](uint32_t most) { return rng() % (uint64_t{most} + 1); },
                           .on_host = seed % 2 == 0,
                           .compile = {.slots = 2, .constructs = seed % 3 == 0 ? Lowering::kHost : Lowering::kAuto}});
  ASSERT_OK(program.compiled());
  const auto random = [&]() -> CompiledProgram::Io { return {.input = Random(kN), .now = Random(kN)}; };
  Values of_state(kN);
  for (int round = 0; round < 2; ++round) {
    CompiledProgram::Io io[2] = {random(), random()};
    io[1].input = io[0].input;
    std::vector<penstock::Run> runs;
    for (CompiledProgram::Io& of : io) {
      auto run = program.Launch(of);
      ASSERT_OK(run.status());
      runs.push_back(*std::move(run));
    }
    for (size_t r = 0; r < 2; ++r) {
      ASSERT_OK(runs[r].Wait());
      ExpectResults(program, io[r], of_state);
    }
  }
  Values left(kN);
  ASSERT_OK(program.state().Read(std::span(left)));
  EXPECT_EQ(left, of_state);
  CheckFailure(program, random(), rng());
  CheckCancel(program, random(), rng());
}

// A run that reaches the Host node fails with it, and any other is right.
void Controls::CheckFailure(CompiledProgram& program, CompiledProgram::Io io, uint32_t random) {
  if (program.hosts() == 0) return;
  const int fails = 1 + static_cast<int>(random % static_cast<uint32_t>(program.hosts()));
  Values of_state = Random(kN);
  ASSERT_OK(program.state().Set(of_state));
  program.Fail(fails);
  auto run = program.Launch(io);
  ASSERT_OK(run.status());
  const absl::Status status = run->Wait();
  program.Fail(0);
  if (Values after = of_state; program.Interpret(io, after).Called(fails)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find("may fail " + std::to_string(fails)), std::string::npos) << status;
  } else {
    ASSERT_OK(status);
    ExpectResults(program, io, of_state);
  }
}

// A cancelled run leaves nothing to the next one.
void Controls::CheckCancel(CompiledProgram& program, CompiledProgram::Io io, uint32_t random) {
  Values of_state = Random(kN);
  ASSERT_OK(program.state().Set(of_state));
  auto run = program.Launch(io);
  ASSERT_OK(run.status());
  for (uint32_t yields = random % 30; yields > 0; --yields) std::this_thread::yield();
  run->Cancel();
  const absl::Status status = run->Wait();
  if (status.ok()) ExpectResults(program, io, of_state);
  else EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  of_state = Random(kN);
  ASSERT_OK(program.state().Set(of_state));
  CompiledProgram::Io next{.input = Random(kN), .now = Random(kN)};
  auto after = program.Launch(next);
  ASSERT_OK(after.status());
  ASSERT_OK(after->Wait());
  ExpectResults(program, next, of_state);
}

TEST_P(Controls, OfRandomProgramsDoWhatAnInterpreterDoes) {
  const uint64_t first = FromEnvironment("PENSTOCK_RANDOM_SEED", 1);
  const uint64_t programs = FromEnvironment("PENSTOCK_RANDOM_PROGRAMS", kSanitized ? 10 : 50);
  for (uint64_t seed = first; seed < first + programs; ++seed) {
    Check(static_cast<uint32_t>(seed));
    if (HasFailure()) return;
  }
}

struct Halve {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<float> x) const { x(i) *= 0.5F; }
};
struct Above {
  PENSTOCK_HOST_DEVICE bool operator()(float limit, View<const float> x) const { return x(0) > limit; }
};
struct Count {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> round) const { ++round(0); }
};
TEST_KERNEL void CheckOnDevice([[maybe_unused]] View<int32_t> value) {}
struct Always {
  PENSTOCK_HOST_DEVICE bool operator()() const { return true; }
};

// A loop whose condition reads a parameter and what a Reduce in its body has made; a host node sees each iteration.
TEST_P(Controls, HoldReducesHostNodesAndParameters) {
  Graph g("halve");
  auto limit = g.Param<float>("limit");
  auto x = g.InOut<float>("x", kN);
  auto largest = g.Buffer<float>("largest", 1);
  std::vector<float> seen;
  g.Reduce("first", Read(x), Write(largest), Max());
  g.While("loop", When(Above{}, limit, Read(largest)), {}, [&](Graph& body) {
    body.ParallelFor("halve", kN, Halve{}, ReadWrite(x));
    body.Reduce("max", Read(x), Write(largest), Max());
    body.Host("see", [&seen](std::span<const float> value) { seen.push_back(value[0]); }, Read(largest));
  });
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const float end : {0.3F, 100.F, 2.F}) {
    std::vector<float> values(kN, 1.F);
    values[7] = 16.F;
    seen.clear();
    auto run = exec->Launch(io.Set(limit, end).Set(x, values));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    std::vector<float> expected;
    float value = 16.F;
    while (value > end) expected.push_back(value *= 0.5F);
    EXPECT_EQ(seen, expected) << end;
    EXPECT_EQ(values[7], value) << end;
    EXPECT_EQ(values[8], value / 16.F) << end;
  }
}

TEST_P(Controls, RepeatAsOftenAsAParameterSays) {
  Graph g("repeat");
  auto trips = g.Param<int64_t>("trips");
  auto n = g.Param<int32_t>("n", AtMost(kN));
  auto x = g.InOut<float>("x", n);
  g.Repeat("loop", trips, [&](Graph& body) { body.ParallelFor("halve", n, Halve{}, ReadWrite(x)); });
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const int times : {3, 0, 1, 20}) {
    std::vector<float> values(static_cast<size_t>(times) + 1, 1024.F);
    auto run = exec->Launch(io.Set(trips, int64_t{times}).Set(n, times + 1).Set(x, values));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (const float value : values) EXPECT_EQ(value, 1024.F / static_cast<float>(1 << times));
  }
  std::vector<float> value(1, 1.F);
  auto run = exec->Launch(io.Set(trips, int64_t{-1}).Set(n, 1).Set(x, value));
  const absl::Status refused = run.ok() ? run->Wait() : run.status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
}

TEST_P(Controls, AFailureInABodyEndsTheRunWithItsNode) {
  Graph g("fails");
  auto x = g.InOut<float>("x", 1);
  int calls = 0;
  g.While("outer", When(Always{}), {}, [&](Graph& outer) {
    outer.Repeat("inner", 2, [&](Graph& inner) {
      inner.ParallelFor("halve", 1, Halve{}, ReadWrite(x));
      inner.Host(
          "check",
          [&calls](std::span<const float>) {
            return ++calls < 5 ? absl::OkStatus() : absl::DataLossError("it is the fifth");
          },
          Read(x));
    });
  });
  float value = 1;
  const absl::Status status = RunOnce(g, [&](Bindings& io) { io.Set(x, std::span(&value, 1)); });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(status.message().find("node 'outer/inner/check (1)'"), std::string::npos) << status;
  EXPECT_NE(status.message().find("it is the fifth"), std::string::npos) << status;
  EXPECT_EQ(calls, 5);
}

// The loop would never end.
TEST_P(Controls, CancelAndDeadlinesEndALoopBeforeItsNextIteration) {
  Graph g("endless");
  auto x = g.InOut<float>("x", 1);
  std::atomic<int> calls{0};
  g.While("loop", When(Always{}), {}, [&](Graph& body) {
    body.ParallelFor("halve", 1, Halve{}, ReadWrite(x));
    body.Host("count", [&calls](std::span<const float>) { ++calls; }, Read(x));
  });
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  float value = 1;
  io.Set(x, std::span(&value, 1));
  auto cancelled = exec->Launch(io);
  ASSERT_OK(cancelled.status());
  while (calls.load() < 3) std::this_thread::yield();
  cancelled->Cancel();
  EXPECT_EQ(cancelled->Wait().code(), absl::StatusCode::kCancelled);
  auto late = exec->Launch(io, std::chrono::milliseconds(20));  // waits for the slot of the cancelled one
  ASSERT_OK(late.status());
  EXPECT_EQ(late->Wait().code(), absl::StatusCode::kDeadlineExceeded);
  auto next = exec->Launch(io);
  ASSERT_OK(next.status());  // the slot came back
  next->Cancel();
  EXPECT_EQ(next->Wait().code(), absl::StatusCode::kCancelled);
}

// The loops would not end in a lifetime, and one that goes on would keep the slot.
TEST_P(Controls, CancelAndDeadlinesReachIntoLoopsOfTheDevice) {
  Graph g("long");
  auto most = g.Param<int64_t>("most");
  auto x = g.InOut<float>("x", 1);
  g.While("outer", When(Always{}), {}, [&](Graph& outer) {
    outer.Repeat("inner", most, [&](Graph& inner) { inner.ParallelFor("halve", 1, Halve{}, ReadWrite(x)); });
  });
  g.Repeat("last", most, [&](Graph& last) { last.ParallelFor("halve", 1, Halve{}, ReadWrite(x)); });
  auto exec = runtime_->Compile(g, {.slots = 1, .constructs = Lowering::kDevice});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  float value = 1;
  io.Set(x, std::span(&value, 1)).Set(most, int64_t{1} << 60);
  auto cancelled = exec->Launch(io);
  ASSERT_OK(cancelled.status());
  cancelled->Cancel();
  EXPECT_EQ(cancelled->Wait().code(), absl::StatusCode::kCancelled);
  auto late = exec->Launch(io, std::chrono::milliseconds(20));
  ASSERT_OK(late.status());
  EXPECT_EQ(late->Wait().code(), absl::StatusCode::kDeadlineExceeded);
  auto next = exec->Launch(io.Set(most, int64_t{1}));  // waits for the slot
  ASSERT_OK(next.status());
  next->Cancel();
  EXPECT_EQ(next->Wait().code(), absl::StatusCode::kCancelled);
}

struct First {
  PENSTOCK_HOST_DEVICE int32_t operator()(View<const int32_t> of) const { return of(0); }
};
TEST_P(Controls, BodiesMayBeEmpty) {
  Graph g("empty");
  auto x = g.InOut<int32_t>("x", 1);
  auto trips = g.Param<int64_t>("trips");
  const auto nothing = [](Graph&) {};
  const auto count = [&](Graph& in) { in.ParallelFor("count", 1, Count{}, ReadWrite(x)); };
  g.If("if", When(Always{}), nothing, count);
  g.Switch("switch", When(First{}, Read(x)), nothing, count, nothing);
  g.While("while", When(Always{}), {.max = 3}, nothing);
  g.Repeat("repeat", trips, nothing);
  int32_t value = 1;  // case 1
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, std::span(&value, 1)).Set(trips, 5); }));
  EXPECT_EQ(value, 2);
}

// Two launches differ in nothing else.
TEST_P(Controls, BodiesUseTheDeviceMemoryThatALaunchBinds) {
  Graph g("bound");
  auto from = g.Input<int32_t>("from", kN, kDevice);
  auto to = g.Output<int32_t>("to", kN);
  auto trips = g.Param<int64_t>("trips");
  g.Fill("zero", to, 0);
  g.Repeat("loop", trips, [&](Graph& body) { body.ParallelFor("mix", kN, Mix{3}, ReadWrite(to), Read(from)); });
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  io.Set(trips, 2);
  DeviceBuffer<int32_t> memory[2];
  Values values[2];
  for (int m = 0; m < 2; ++m) {
    auto made = runtime_->MakeDeviceBuffer<int32_t>(kN);
    ASSERT_OK(made.status());
    memory[m] = *made;
    values[m] = Random(kN);
    Graph fill("fill");
    auto in = fill.Input<int32_t>("in", kN);
    auto out = fill.Output<int32_t>("out", kN, kDevice);
    fill.ParallelFor("take", kN, Take{5}, Write(out), Read(in));
    ASSERT_OK(RunOnce(fill, [&](Bindings& bindings) { bindings.Set(in, values[m]).Set(out, memory[m]); }));
    for (int32_t& v : values[m]) v = Mixed(0, v, 5);
  }
  for (const int m : {0, 1, 1, 0}) {
    Values got = Poisoned(kN), expected(kN);
    auto run = exec->Launch(io.Set(from, memory[m]).Set(to, got));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < kN; ++i) expected[i] = Mixed(Mixed(0, values[m][i], 3), values[m][i], 3);
    EXPECT_EQ(got, expected);
  }
}

// What fails is the host's code of a kernel, which only host devices run.
TEST_P(Controls, AFailureInALoopOfTheDeviceEndsItAndIsForgotten) {
  if (!runtime_->devices()[0].name.starts_with("host")) GTEST_SKIP() << "no kernel can fail a run on CUDA devices";
  Graph g("fails");
  auto x = g.InOut<int32_t>("x", 1);
  auto most = g.Param<int64_t>("most");
  g.While("outer", When(Always{}), {.max = 4}, [&](Graph& outer) {
    outer.Repeat("inner", most, [&](Graph& inner) {
      inner.Kernel("check", CheckOnDevice, Threads(1), ReadWrite(x)).HostFallback([](View<int32_t> value) {
        return ++value(0) == 5 ? absl::DataLossError("it is the fifth") : absl::OkStatus();
      });
    });
  });
  auto exec = runtime_->Compile(g, {.slots = 1, .constructs = Lowering::kDevice});
  ASSERT_OK(exec.status());
  int32_t value = 0;
  Bindings io = exec->bindings();
  io.Set(x, std::span(&value, 1));
  const auto launch = [&](int64_t trips, int32_t from) {
    value = from;
    auto run = exec->Launch(io.Set(most, trips));
    return run.ok() ? run->Wait() : run.status();
  };
  for (const int64_t trips : {int64_t{1} << 60, int64_t{3}}) {
    const absl::Status status = launch(trips, 0);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find("node 'outer/inner/check'"), std::string::npos) << status;
    EXPECT_NE(status.message().find("it is the fifth"), std::string::npos) << status;
  }
  for (const int64_t trips : {3, 3, 2}) {  // the first time nothing differs from the run that failed
    EXPECT_OK(launch(trips, 10));
    EXPECT_EQ(value, 10 + 4 * trips);
  }
}

// The run of the inner loop is part of another run, whose word it looks at.
TEST_P(Controls, CancelReachesIntoALoopOfTheDeviceInOneThatTheHostDrives) {
  Graph g("inside");
  auto most = g.Param<int64_t>("most");
  auto x = g.InOut<float>("x", 1);
  std::atomic<bool> begun{false};
  g.While("outer", When(Always{}), {}, [&](Graph& outer) {
    outer.Host("begin", [&begun](std::span<const float>) { begun = true; }, Read(x));
    outer.Repeat("inner", most, [&](Graph& inner) { inner.ParallelFor("halve", 1, Halve{}, ReadWrite(x)); });
  });
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  float value = 1;
  auto run = exec->Launch(exec->bindings().Set(x, std::span(&value, 1)).Set(most, int64_t{1} << 60));
  ASSERT_OK(run.status());
  while (!begun) std::this_thread::yield();
  run->Cancel();
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kCancelled);
}

// Loops in several slots and on several streams: the device would run them at once.
TEST_P(Controls, SeveralLoopsOfTheDeviceAreInFlight) {
  Graph g("several");
  auto trips = g.Param<int64_t>("trips");
  std::vector<BufferHandle<int32_t>> x;
  for (int i = 0; i < 3; ++i) {
    x.push_back(g.InOut<int32_t>(Name("x", i), 1));
    g.Repeat(Name("loop", i), trips, [&](Graph& body) { body.ParallelFor("count", 1, Count{}, ReadWrite(x.back())); });
  }
  auto exec = runtime_->Compile(g, {.slots = 4, .constructs = Lowering::kDevice});
  ASSERT_OK(exec.status());
  Values counts[8];
  std::vector<penstock::Run> runs;
  for (int r = 0; r < 8; ++r) {
    counts[r].assign(3, r);
    Bindings io = exec->bindings();
    io.Set(trips, int64_t{100} + r);
    for (size_t i = 0; i < 3; ++i) io.Set(x[i], std::span(&counts[r][i], 1));
    auto run = exec->Launch(io);
    ASSERT_OK(run.status());
    runs.push_back(*std::move(run));
  }
  for (int r = 0; r < 8; ++r) {
    ASSERT_OK(runs[static_cast<size_t>(r)].Wait());
    EXPECT_EQ(counts[r], Values(3, 100 + 2 * r));
  }
}

struct NoteOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> notes, View<const int32_t> from,
                                       View<const int32_t> round) const {
    if (i == round(0)) notes(i) = from(i);
  }
};
struct AddThree {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> notes) const {
    to(i) = Mixed(to(i), notes(i), 1);
  }
};
struct IsThird {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> round) const { return round(0) == 2; }
};
// Only the loop uses `notes`, of which each round writes one element; what comes after that has other bytes.
TEST_P(Controls, FindWhatEarlierIterationsHaveLeft) {
  Graph g("left");
  auto sum = g.InOut<int32_t>("sum", kN), round = g.InOut<int32_t>("round", 1);
  auto three = g.Param<int64_t>("three");
  g.Repeat("loop", three, [&](Graph& body) {
    auto notes = body.Buffer<int32_t>("notes", kN), more = body.Buffer<int32_t>("more", kN);
    body.ParallelFor("note", kN, NoteOne{}, WriteSome(notes), Read(sum), Read(round));
    body.If("third", When(IsThird{}, Read(round)),
            [&](Graph& then) { then.ParallelFor("add", 3, AddThree{}, ReadWrite(sum), Read(notes)); });
    body.ParallelFor("count", 1, Count{}, ReadWrite(round));
    body.ParallelFor("more", kN, Take{4}, Write(more), Read(sum));
    body.ParallelFor("add more", kN, Mix{5}, ReadWrite(sum), Read(more));
  });
  const Values begin = Random(kN);
  Values got = begin, expected = begin, notes(3);
  int32_t count = 0;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(sum, got).Set(round, std::span(&count, 1)).Set(three, 3); }));
  for (size_t r = 0; r < 3; ++r) {
    notes[r] = expected[r];
    for (size_t i = 0; i < 3 && r == 2; ++i) expected[i] = Mixed(expected[i], notes[i], 1);
    for (int32_t& v : expected) v = Mixed(v, Mixed(0, v, 4), 5);
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(count, 3);
}

// A functor that computes something else on the device each time.
struct Drift {
  int32_t* calls;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<float> x) const {
#if defined(__CUDA_ARCH__)
    x(i) += 1;
#else
    x(i) += static_cast<float>(++*calls);
#endif
  }
};
TEST_P(Controls, AreCheckedAgainstHostCodeInTheirBodies) {
  int32_t calls = 1;  // on host devices both calls count
  Graph g("checked");
  auto x = g.InOut<float>("x", 1);
  g.ParallelFor("before", 1, Halve{}, ReadWrite(x));
  auto two = g.Param<int64_t>("two");
  g.Repeat("loop", two, [&](Graph& body) { body.ParallelFor("drift", 1, Drift{&calls}, ReadWrite(x)); });
  float value = 8;
  const absl::Status status =
      RunOnce(g, [&](Bindings& io) { io.Set(x, std::span(&value, 1)).Set(two, 2); }, {.check_against_host = true});
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("loop/drift"), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(Host, Controls, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Controls, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::control_test
