// Host nodes in constructs that the device decides: the device asks for them in each iteration.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::control_host_nodes_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr int64_t kN = 40;

PENSTOCK_HOST_DEVICE int32_t Mixed(int32_t to, int32_t from, int32_t by) {
  return static_cast<int32_t>(static_cast<uint32_t>(to) * 5U + static_cast<uint32_t>(from) * 3U +
                              static_cast<uint32_t>(by));
}
struct Mix {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> from) const {
    to(i) = Mixed(to(i), from(i), by);
  }
};
struct Count {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> round) const { ++round(0); }
};
struct Below {
  PENSTOCK_HOST_DEVICE bool operator()(int32_t limit, View<const int32_t> round) const { return round(0) < limit; }
};
struct IsOdd {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> round) const { return round(0) % 2 != 0; }
};
struct Always {
  PENSTOCK_HOST_DEVICE bool operator()() const { return true; }
};

class AskedInConstructs : public GraphConformance {};

// Each node sees what the kernels before it have made in this iteration, and the kernels after it see what it made. One
// body has nothing but a Host node.
TEST_P(AskedInConstructs, AreCalledInEachIterationWithItsData) {
  Graph g("asked");
  auto limit = g.Param<int32_t>("limit"), by = g.Param<int32_t>("by");
  auto x = g.InOut<int32_t>("x", kN), round = g.InOut<int32_t>("round", 1);
  auto y = g.Buffer<int32_t>("y", kN);
  const auto mix = [](std::span<int32_t> to, std::span<const int32_t> from, int32_t add) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = Mixed(to[i], from[i], add);
  };
  g.Fill("zero", y, 0);
  g.While("loop", When(Below{}, limit, Read(round)), {}, [&](Graph& body) {
    body.ParallelFor("first", kN, Mix{1}, ReadWrite(x), Read(y));
    body.Host("asked", mix, ReadWrite(y), Read(x), by).Infallible();
    body.ParallelFor("second", kN, Mix{2}, ReadWrite(x), Read(y));
    body.If("odd", When(IsOdd{}, Read(round)),
            [&](Graph& then) { then.Host("only", mix, ReadWrite(y), Read(x), 3).Inline(); });
    body.ParallelFor("count", 1, Count{}, ReadWrite(round));
  });
  auto exec = runtime_->Compile(g, {.slots = 2, .constructs = Lowering::kDevice});
  ASSERT_OK(exec.status());
  EXPECT_THAT(exec->submission_report().notes, Contains(HasSubstr("the device decides construct 'loop'")));
  for (const int32_t rounds : {5, 0, 12}) {
    std::vector<int32_t> values[2], expected[2];
    int32_t begin[2] = {0, 0};
    std::vector<penstock::Run> runs;
    for (int r = 0; r < 2; ++r) {
      expected[r] = values[r] = Random(kN);
      auto run = exec->Launch(
          exec->bindings().Set(limit, rounds + r).Set(by, 7 * r).Set(x, values[r]).Set(round, std::span(&begin[r], 1)));
      ASSERT_OK(run.status());
      runs.push_back(*std::move(run));
    }
    for (int r = 0; r < 2; ++r) {
      ASSERT_OK(runs[static_cast<size_t>(r)].Wait());
      for (int32_t& v : expected[r]) {
        int32_t other = 0;
        for (int32_t i = 0; i < rounds + r; ++i) {
          v = Mixed(v, other, 1);
          other = Mixed(other, v, 7 * r);
          v = Mixed(v, other, 2);
          if (i % 2 != 0) other = Mixed(other, v, 3);
        }
      }
      EXPECT_EQ(values[r], expected[r]) << rounds << " rounds, run " << r;
      EXPECT_EQ(begin[r], rounds + r);
    }
  }
}

// What a body asks for belongs to the run around the body, which is itself part of another.
TEST_P(AskedInConstructs, AreCalledInALoopThatTheHostDrives) {
  Graph g("inside");
  auto inner_trips = g.Param<int64_t>("inner"), outer_trips = g.Param<int64_t>("outer");
  auto x = g.InOut<int32_t>("x", 1);
  int seen = 0;
  std::atomic<int> asked{0};
  g.Repeat("outer", outer_trips, [&](Graph& outer) {
    outer.Repeat("inner", inner_trips, [&](Graph& inner) {
      inner.ParallelFor("count", 1, Count{}, ReadWrite(x));
      inner
          .Host(
              "asked",
              [&asked](std::span<int32_t> value) {
                ++asked;
                value[0] *= 2;
              },
              ReadWrite(x))
          .Infallible();
    });
    outer.Host("see", [&seen](std::span<const int32_t> value) { seen = value[0]; }, Read(x));
  });
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  EXPECT_THAT(exec->submission_report().notes,
              Contains(testing::AllOf(HasSubstr("the host drives construct 'outer'"), HasSubstr("'outer/see'"))));
  EXPECT_THAT(exec->PlanText(), HasSubstr("outer/inner conditional"));
  int32_t value = 0, expected = 0;
  for (int round = 0; round < 2; ++round) {
    auto run = exec->Launch(
        exec->bindings().Set(x, std::span(&value, 1)).Set(inner_trips, int64_t{3}).Set(outer_trips, int64_t{4}));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (int i = 0; i < 12; ++i) expected = (expected + 1) * 2;
    EXPECT_EQ(value, expected);
    EXPECT_EQ(seen, expected);
    value = expected = round;
  }
  EXPECT_EQ(asked, 24);
}

// They promise not to; the loops would not end in a lifetime.
TEST_P(AskedInConstructs, AFailureEndsTheLoopsAndIsForgotten) {
  Graph g("fails");
  auto how = g.Param<int32_t>("how");
  auto most = g.Param<int64_t>("most");
  auto x = g.InOut<int32_t>("x", 1);
  std::atomic<int> calls{0}, calls_behind{0};
  g.Repeat("outer", most, [&](Graph& outer) {
    outer.Repeat("inner", most, [&](Graph& inner) {
      inner.ParallelFor("count", 1, Count{}, ReadWrite(x));
      inner
          .Host(
              "asked",
              [&calls](std::span<const int32_t>, int32_t what) {
                if (++calls < 5 || what == 0) return absl::OkStatus();
                if (what == 1) throw std::runtime_error("it is the fifth");
                return absl::DataLossError("it is the fifth");
              },
              Read(x), how)
          .Infallible();
      inner.Host("behind", [&calls_behind](std::span<int32_t>) { ++calls_behind; }, ReadWrite(x)).Inline();
    });
  });
  auto exec = runtime_->Compile(g, {.slots = 1, .constructs = Lowering::kDevice});
  ASSERT_OK(exec.status());
  int32_t value = 0;
  const auto launch = [&](int32_t what, int64_t trips) {
    calls = calls_behind = 0;
    auto run = exec->Launch(exec->bindings().Set(x, std::span(&value, 1)).Set(how, what).Set(most, trips));
    return run.ok() ? run->Wait() : run.status();
  };
  for (const int32_t what : {1, 2}) {
    const absl::Status status = launch(what, int64_t{1} << 60);
    EXPECT_EQ(status.code(), what == 1 ? absl::StatusCode::kInternal : absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("node 'outer/inner/asked'"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("it is the fifth"));
    EXPECT_EQ(calls, 5);
    EXPECT_EQ(calls_behind, 4) << "from the failure on the device is answered without a call";
    value = 0;
    EXPECT_OK(launch(0, 3));
    EXPECT_EQ(value, 9);
    EXPECT_EQ(calls, 9);
  }
}

TEST_P(AskedInConstructs, CancelAndDeadlinesEndTheirLoops) {
  Graph g("endless");
  auto x = g.InOut<int32_t>("x", 1);
  std::atomic<int> calls{0};
  g.While("loop", When(Always{}), {}, [&](Graph& body) {
    body.ParallelFor("count", 1, Count{}, ReadWrite(x));
    body.Host("asked", [&calls](std::span<const int32_t>) { ++calls; }, Read(x)).Inline();
  });
  auto exec = runtime_->Compile(g, {.slots = 1, .constructs = Lowering::kDevice});
  ASSERT_OK(exec.status());
  int32_t value = 0;
  Bindings io = exec->bindings();
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

TEST_P(AskedInConstructs, TheHostDrivesWhereTooLittleRoomIsLeft) {
  Graph taking("takes"), g("none left");
  auto y = taking.InOut<int32_t>("y", 1, kPinned);
  taking.ParallelFor("count", 1, Count{}, ReadWrite(y));
  taking.Host("asked", [](std::span<int32_t>) {}, ReadWrite(y)).Inline();
  taking.ParallelFor("count again", 1, Count{}, ReadWrite(y));
  auto trips = g.Param<int64_t>("trips");
  auto x = g.InOut<int32_t>("x", 1);
  g.Repeat("loop", trips, [&](Graph& body) {
    body.ParallelFor("count", 1, Count{}, ReadWrite(x));
    body.Host("asked", [](std::span<int32_t> value) { value[0] *= 2; }, ReadWrite(x)).Infallible();
  });
  auto taken = runtime_->Compile(taking, {.slots = 31});
  ASSERT_OK(taken.status());
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  EXPECT_THAT(exec->submission_report().notes,
              Contains(testing::AllOf(HasSubstr("the host drives construct 'loop'"), HasSubstr("node 'loop/asked'"),
                                      HasSubstr("the room for 32"))));
  int32_t value = 0;
  auto run = exec->Launch(exec->bindings().Set(x, std::span(&value, 1)).Set(trips, int64_t{3}));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(value, 14);
  const absl::Status refused = runtime_->Compile(g, {.slots = 2, .constructs = Lowering::kDevice}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the room for 32"));
}

INSTANTIATE_TEST_SUITE_P(Host, AskedInConstructs, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, AskedInConstructs, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::control_host_nodes_test
