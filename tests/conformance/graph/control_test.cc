// If, Switch, While and Repeat on every driver: random programs against an interpreter that runs them as C++ would,
// and what a body may hold.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::control_test {
namespace {

constexpr int64_t kN = 40;

// The values of a buffer; arithmetic is modulo 2^32, as kernels and interpreter both do it.
using Values = std::vector<int32_t>;
PENSTOCK_HOST_DEVICE int32_t Mixed(int32_t to, int32_t from, int32_t by) {
  return static_cast<int32_t>(static_cast<uint32_t>(to) * 5U + static_cast<uint32_t>(from) * 3U +
                              static_cast<uint32_t>(by));
}
PENSTOCK_HOST_DEVICE int32_t Shown(int32_t value, int32_t by) { return (value >> 3 ^ by) & 3; }

struct Mix {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> from) const {
    to(i) = Mixed(to(i), from(i), by);
  }
};
struct Take {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> from) const {
    to(i) = Mixed(0, from(i), by);
  }
};
struct Below {
  int32_t by, limit;
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> of) const { return Shown(of(1), by) < limit; }
};
struct Which {
  int32_t by;
  PENSTOCK_HOST_DEVICE int32_t operator()(View<const int32_t> of) const { return Shown(of(1), by); }
};

// Both use what a loop tells.
struct MixCount {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int64_t> count) const {
    to(i) = Mixed(to(i), static_cast<int32_t>(count(0)), by);
  }
};
struct MixEnd {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int64_t> count,
                                       View<const uint8_t> capped) const {
    to(i) = Mixed(to(i), static_cast<int32_t>(count(0)) + 8 * capped(0), by);
  }
};
struct SayTrips {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int64_t> trips, View<const int32_t> from) const {
    trips(0) = Shown(from(1), by) - 1;
  }
};

struct Statement {
  enum Kind { kMix, kTake, kHost, kCopy, kFill, kPart, kIf, kIfElse, kSwitch, kWhile, kRepeat };
  Kind kind;
  int to, from;  // buffers
  int32_t by;
  int limit;  // of a condition or a loop
  int device;  // of a kernel
  std::vector<std::vector<Statement>> bodies;
  bool local;  // the body has a buffer of its own, which `to` becomes
  HostWay way;  // of a Host node

  // Whether a While tells its iterations to its body, and both numbers to what comes after it; and whether the number
  // of a Repeat is in a buffer.
  bool counts() const { return by % 3 == 0; }
};
using Program = std::vector<Statement>;

class Writer {
 public:
  Writer(std::mt19937& rng, int buffers, bool on_host) : rng_(rng), buffers_(buffers), on_host_(on_host) {}

  Program Write(int statements, int depth) {
    Program program;
    for (int i = 0; i < statements; ++i) program.push_back(One(depth));
    return program;
  }

 private:
  int Below(int n) { return static_cast<int>(rng_() % static_cast<uint32_t>(n)); }

  Statement One(int depth) {
    Statement s{static_cast<Statement::Kind>(Below(depth > 0 ? 11 : 6)),
                Below(buffers_),
                Below(buffers_),
                static_cast<int32_t>(rng_()),
                Below(5),
                Below(6),
                {},
                Below(3) == 0,
                HostWay::kWorker};
    if (!on_host_) s.way = s.by % 2 == 0 ? HostWay::kHostcallWorker : HostWay::kHostcallInline;
    if (!on_host_) s.device = 5;
    if (s.to == s.from) s.from = (s.from + 1) % buffers_;
    const int bodies = s.kind < Statement::kIf        ? 0
                       : s.kind == Statement::kSwitch ? Below(4)
                       : s.kind == Statement::kIfElse ? 2
                                                      : 1;
    for (int b = 0; b < bodies; ++b) s.bodies.push_back(Write(1 + Below(3), depth - 1));
    return s;
  }

  std::mt19937& rng_;
  const int buffers_;
  const bool on_host_;  // Host nodes may wait, and nodes be pinned to devices
};

void Interpret(const Program& program, std::vector<Values>& memory);

void InterpretBody(const Statement& s, size_t body, std::vector<Values>& memory) {
  Values* const to = &memory[static_cast<size_t>(s.to)];
  if (!s.local) return Interpret(s.bodies[body], memory);
  Values kept = *to;  // what the body's own buffer hides
  for (size_t i = 0; i < kept.size(); ++i) (*to)[i] = Mixed(0, memory[static_cast<size_t>(s.from)][i], s.by);
  Interpret(s.bodies[body], memory);
  const Values made = *to;
  *to = kept;
  Values& from = memory[static_cast<size_t>(s.from)];
  for (size_t i = 0; i < kept.size(); ++i) from[i] = Mixed(from[i], made[i], s.by);
}

void InterpretWhile(const Statement& s, std::vector<Values>& memory) {
  Values &to = memory[static_cast<size_t>(s.to)], &from = memory[static_cast<size_t>(s.from)];
  const auto mix = [&](int32_t with) {
    for (int32_t& value : to) value = Mixed(value, with, s.by);
  };
  int count = 0;
  for (; count < 3 && Shown(from[1], s.by) < s.limit; ++count) {
    if (s.counts()) mix(count);
    InterpretBody(s, 0, memory);
  }
  if (s.counts()) mix(count + (Shown(from[1], s.by) < s.limit ? 8 : 0));
}

void Interpret(const Program& program, std::vector<Values>& memory) {
  for (const Statement& s : program) {
    Values &to = memory[static_cast<size_t>(s.to)], &from = memory[static_cast<size_t>(s.from)];
    const auto shown = [&] { return Shown(from[1], s.by); };
    switch (s.kind) {
      case Statement::kMix:
      case Statement::kHost:
        for (size_t i = 0; i < to.size(); ++i) to[i] = Mixed(to[i], from[i], s.by);
        break;
      case Statement::kTake:
        for (size_t i = 0; i < to.size(); ++i) to[i] = Mixed(0, from[i], s.by);
        break;
      case Statement::kCopy: to = from; break;
      case Statement::kFill: std::fill(to.begin(), to.end(), s.by); break;
      case Statement::kPart: std::fill(to.begin() + 1, to.begin() + 5, s.by); break;
      case Statement::kIf:
        if (shown() < s.limit) InterpretBody(s, 0, memory);
        break;
      case Statement::kIfElse: InterpretBody(s, shown() < s.limit ? 0 : 1, memory); break;
      case Statement::kSwitch:
        if (static_cast<size_t>(shown()) < s.bodies.size()) InterpretBody(s, static_cast<size_t>(shown()), memory);
        break;
      case Statement::kWhile: InterpretWhile(s, memory); break;
      case Statement::kRepeat:
        for (int i = s.counts() ? shown() - 1 : s.limit; i > 0; --i) InterpretBody(s, 0, memory);
    }
  }
}

using Handles = std::vector<BufferHandle<int32_t>>;

class Declarer {
 public:
  // `rounds`: parameters with the values 0, 1, 2, ...
  Declarer(std::vector<ParamHandle<int32_t>> rounds, int devices) : rounds_(std::move(rounds)), devices_(devices) {}

  void Declare(Graph& g, const Program& program, Handles& b) {
    for (const Statement& s : program) One(g, s, b);
  }

 private:
  Name Next(const char* what) { return {what, ++names_}; }

  void Body(Graph& g, const Statement& s, size_t body, Handles& b) {
    const auto to = static_cast<size_t>(s.to), from = static_cast<size_t>(s.from);
    if (!s.local) return Declare(g, s.bodies[body], b);
    const BufferHandle<int32_t> kept = b[to];
    b[to] = g.Buffer<int32_t>(Next("own"), kN);
    g.ParallelFor(Next("first"), kN, Take{s.by}, Write(b[to]), Read(b[from]));
    Declare(g, s.bodies[body], b);
    g.ParallelFor(Next("last"), kN, Mix{s.by}, ReadWrite(b[from]), Read(b[to]));
    b[to] = kept;
  }

  void One(Graph& g, const Statement& s, Handles& b) {
    const BufferHandle<int32_t> to = b[static_cast<size_t>(s.to)], from = b[static_cast<size_t>(s.from)];
    const auto body = [&](size_t number) { return [&, number](Graph& in) { Body(in, s, number, b); }; };
    const int32_t by = s.by;
    switch (s.kind) {
      case Statement::kMix: Pin(g.ParallelFor(Next("mix"), kN, Mix{by}, ReadWrite(to), Read(from)), s); break;
      case Statement::kTake: Pin(g.ParallelFor(Next("take"), kN, Take{by}, Write(to), Read(from)), s); break;
      case Statement::kHost: Host(g, s, to, from); break;
      case Statement::kCopy: g.Copy(Next("copy"), from, to); break;
      case Statement::kFill: g.Fill(Next("fill"), to, by); break;
      case Statement::kPart: g.Fill(Next("part"), Write(to, Slice({1}, {4})), by); break;
      case Statement::kIf: g.If(Next("if"), When(Below{by, s.limit}, Read(from)), body(0)); break;
      case Statement::kIfElse: g.If(Next("if"), When(Below{by, s.limit}, Read(from)), body(0), body(1)); break;
      case Statement::kSwitch: Choose(g, s, from, body); break;
      case Statement::kWhile: Loop(g, s, from, to, body(0)); break;
      case Statement::kRepeat:
        if (s.counts()) RepeatBuffer(g, s, from, body(0));
        else if (by % 2 == 0) g.Repeat(Next("repeat"), s.limit, body(0));
        else g.Repeat(Next("repeat"), rounds_[static_cast<size_t>(s.limit)], body(0));
    }
  }

  void Host(Graph& g, const Statement& s, BufferHandle<int32_t> to, BufferHandle<int32_t> from) {
    NodeRef node = g.Host(
        Next("host"),
        [by = s.by](View<int32_t> into, View<const int32_t> of) {
          for (int64_t i = 0; i < kN; ++i) into(i) = Mixed(into(i), of(i), by);
        },
        ReadWrite(to), Read(from));
    if (s.way == HostWay::kHostcallWorker) node.Infallible();
    if (s.way == HostWay::kHostcallInline) node.Inline();
  }

  template <class B>
  void Loop(Graph& g, const Statement& s, BufferHandle<int32_t> from, BufferHandle<int32_t> to, const B& body) {
    const auto when = When(Below{s.by, s.limit}, Read(from));
    if (!s.counts()) return g.While(Next("while"), when, {.max = 3}, body);
    const auto count = g.Buffer<int64_t>(Next("count"), 1);
    const auto capped = g.Buffer<uint8_t>(Next("capped"), 1);
    g.While(Next("while"), when.Count(count).Capped(capped), {.max = 3}, [&](Graph& in) {
      in.ParallelFor(Next("index"), kN, MixCount{s.by}, ReadWrite(to), Read(count));
      body(in);
    });
    g.ParallelFor(Next("end"), kN, MixEnd{s.by}, ReadWrite(to), Read(count), Read(capped));
  }
  template <class B>
  void RepeatBuffer(Graph& g, const Statement& s, BufferHandle<int32_t> from, const B& body) {
    const auto trips = g.Buffer<int64_t>(Next("trips"), 1);
    g.ParallelFor(Next("say"), 1, SayTrips{s.by}, Write(trips), Read(from));
    g.Repeat(Next("repeat"), Read(trips), body);
  }

  template <class B>
  void Choose(Graph& g, const Statement& s, BufferHandle<int32_t> from, const B& body) {
    const auto when = When(Which{s.by}, Read(from));
    switch (s.bodies.size()) {
      case 0: return g.Switch(Next("switch"), when);
      case 1: return g.Switch(Next("switch"), when, body(0));
      case 2: return g.Switch(Next("switch"), when, body(0), body(1));
      default: return g.Switch(Next("switch"), when, body(0), body(1), body(2));
    }
  }

  void Pin(NodeRef node, const Statement& s) const {
    if (s.device < devices_) node.On(s.device);
  }

  const std::vector<ParamHandle<int32_t>> rounds_;
  const int devices_;
  int names_ = 0;
};

class Controls : public GraphConformance {
 protected:
  // Every other program can be decided by the device; every third is driven by the host. Runs a program whose buffers
  // are an Input, an InOut, an Output that is copied to from inside, a State and an internal one, twice at once and
  // once more.
  void Check(uint32_t seed) {
    std::mt19937 rng(seed);
    const Program program = Writer(rng, 4, seed % 2 == 0).Write(4, 3);
    auto state = runtime_->MakeState<int32_t>("state", {kN});
    ASSERT_OK(state.status());
    Graph g("program");
    auto in = g.Input<int32_t>("in", kN);
    auto io = g.InOut<int32_t>("io", kN);
    auto out = g.Output<int32_t>("out", kN), last = g.Output<int32_t>("last", kN);
    Handles b{g.Buffer<int32_t>("a", kN), io, g.Use(*state), g.Buffer<int32_t>("b", kN)};
    g.Copy("begin a", in, b[0]);
    g.ParallelFor("begin b", kN, Take{7}, Write(b[3]), Read(in));
    std::vector<ParamHandle<int32_t>> rounds;
    for (int r = 0; r < 5; ++r) rounds.push_back(g.Param<int32_t>(Name("rounds", r)));
    Declarer(rounds, static_cast<int>(runtime_->devices().size())).Declare(g, program, b);
    g.Copy("end a", b[0], out);
    g.ParallelFor("end b", kN, Take{9}, Write(last), Read(b[3]));
    auto exec = runtime_->Compile(g, {.slots = 2, .constructs = seed % 3 == 0 ? Lowering::kHost : Lowering::kAuto});
    ASSERT_OK(exec.status());
    Values of_state(kN);
    for (int round = 0; round < 2; ++round) {
      const Values input = Random(kN);
      Values now[2] = {Random(kN), Random(kN)}, got[2] = {Poisoned(kN), Poisoned(kN)}, end[2] = {got[0], got[0]};
      const Values was[2] = {now[0], now[1]};
      std::vector<penstock::Run> runs;
      for (int r = 0; r < 2; ++r) {
        Bindings bindings = exec->bindings();
        bindings.Set(in, input).Set(io, now[r]).Set(out, got[r]).Set(last, end[r]);
        for (int32_t i = 0; i < 5; ++i) bindings.Set(rounds[static_cast<size_t>(i)], i);
        auto run = exec->Launch(bindings);
        ASSERT_OK(run.status());
        runs.push_back(*std::move(run));
      }
      for (int r = 0; r < 2; ++r) {
        ASSERT_OK(runs[static_cast<size_t>(r)].Wait());
        std::vector<Values> memory{input, was[r], of_state, Values(kN)};
        for (size_t i = 0; i < kN; ++i) memory[3][i] = Mixed(0, input[i], 7);
        Interpret(program, memory);
        of_state = memory[2];
        for (int32_t& v : memory[3]) v = Mixed(0, v, 9);
        EXPECT_EQ(got[r], memory[0]) << "seed " << seed;
        EXPECT_EQ(now[r], memory[1]) << "seed " << seed;
        EXPECT_EQ(end[r], memory[3]) << "seed " << seed;
      }
    }
    Values left(kN);
    ASSERT_OK(state->Read(std::span(left)));
    EXPECT_EQ(left, of_state) << "seed " << seed;
  }
};

TEST_P(Controls, OfRandomProgramsDoWhatAnInterpreterDoes) {
  for (uint32_t seed = 1; seed <= (kSanitized ? 10U : 50U); ++seed) {
    Check(seed);
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
