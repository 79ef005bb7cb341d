// Task: a functor of one block of threads, with shared memory and phases, in streams, graphs, loops and regions.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::task_test {
namespace {

constexpr int64_t kMost = 512;  // elements of a scan
constexpr uint32_t kScanBytes = 2 * kMost * sizeof(int32_t);

// Each element becomes the sum of those up to it, times a factor. In each phase threads read what others wrote.
struct Scan {
  int32_t factor = 1;
  PENSTOCK_HOST_DEVICE void operator()(const Block& block, View<int32_t> x, int64_t n) const {
    int32_t* from = block.Shared<int32_t>(kMost);
    int32_t* to = block.Shared<int32_t>(kMost, kMost * int64_t{sizeof(int32_t)});
    block.Each(n, [&](int64_t i) { from[n - 1 - i] = x(n - 1 - i); });
    block.Sync();
    for (int64_t by = 1; by < n; by *= 2) {
      block.Each(n, [&](int64_t i) { to[i] = from[i] + (i >= by ? from[i - by] : 0); });
      block.Sync();
      int32_t* const next = to;
      to = from;
      from = next;
    }
    block.Each(n, [&](int64_t i) { x(i) = from[i] * factor; });
  }
};
std::vector<int32_t> Scanned(std::vector<int32_t> x, int64_t n, int32_t factor = 1) {
  std::partial_sum(x.begin(), x.begin() + n, x.begin());
  std::for_each(x.begin(), x.begin() + n, [&](int32_t& v) { v *= factor; });
  return x;
}

// A tile of kSide rows, which lie kSide + 1 elements apart in shared memory.
template <int64_t kSide>
struct Transpose {
  static constexpr uint32_t kBytes = kSide * (kSide + 1) * sizeof(int32_t);
  PENSTOCK_HOST_DEVICE void operator()(const Block& block, View<const int32_t> from, View<int32_t> to) const {
    int32_t* const tile = block.Shared<int32_t>(kSide * (kSide + 1));
    block.Each(kSide * kSide,
               [&](int64_t i) { tile[i / kSide * (kSide + 1) + i % kSide] = from(i / kSide, i % kSide); });
    block.Sync();
    block.Each(kSide * kSide, [&](int64_t i) { to(i / kSide, i % kSide) = tile[i % kSide * (kSide + 1) + i / kSide]; });
  }
};

// Puts a number of its own into all of its memory and looks often whether it stays there.
struct Own {
  int32_t number;
  PENSTOCK_HOST_DEVICE void operator()(const Block& block, View<int32_t> wrong) const {
    constexpr int64_t kCount = 1056;
    int32_t* const own = block.Shared<int32_t>(kCount);
    block.Each(kCount, [&](int64_t i) { own[i] = number + static_cast<int32_t>(i); });
    block.Each(wrong.width, [&](int64_t i) { wrong(i) = 0; });
    for (int round = 0; round < 50; ++round) {
      block.Sync();
      block.Each(wrong.width, [&](int64_t i) {
        for (int64_t at = i; at < kCount; at += wrong.width) {
          if (own[at] != number + static_cast<int32_t>(at)) wrong(i) += 1;
        }
      });
    }
  }
};

// Smooths a line in place.
struct Smooth {
  PENSTOCK_HOST_DEVICE static int32_t Of(int32_t a, int32_t b, int32_t c) { return (a + 2 * b + c) / 4; }
  PENSTOCK_HOST_DEVICE void operator()(const Block& block, View<int32_t> x) const {
    int32_t* const old = block.Shared<int32_t>(x.width);
    block.Each(x.width, [&](int64_t i) { old[i] = x(i); });
    block.Sync();
    block.Each(x.width - 2, [&](int64_t i) { x(i + 1) = Of(old[i], old[i + 1], old[i + 2]); });
  }
};
struct IsRough {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> x, int32_t limit) const {
    for (int64_t i = 1; i < x.width; ++i) {
      if (x(i) - x(i - 1) > limit || x(i - 1) - x(i) > limit) return true;
    }
    return false;
  }
};

// Adds what all kinds of arguments say, in a loop of its own.
struct AddAll {
  PENSTOCK_HOST_DEVICE void operator()(const Block& block, Views<const int32_t> parts, int32_t* to, int32_t by,
                                       View<const int32_t> row) const {
    for (int64_t i = block.Index(); i < row.width; i += block.Size()) {
      for (const View<const int32_t>& part : parts) to[i] += part(i);
      to[i] += by + row(i);
    }
  }
};

struct TooMuch {
  int64_t count, from;
  PENSTOCK_HOST_DEVICE void operator()(const Block& block, int32_t* x) const {
    int32_t* const memory = block.Shared<int32_t>(count, from);
    block.Each(1, [&](int64_t i) { x[i] = static_cast<int32_t>(memory - block.Shared<int32_t>(0)); });
  }
};

// Free functions, as nvcc wants them around lambdas.
void ReverseAndAdd(Graph& graph, int32_t add, BufferHandle<int32_t> x) {
  graph.Task(
      "reverse", {.threads = 64, .shared_bytes = 100 * sizeof(int32_t)},
      [add] PENSTOCK_HOST_DEVICE(const Block& block, View<int32_t> of) {
        int32_t* const old = block.Shared<int32_t>(100);
        block.Each(100, [&](int64_t i) { old[i] = of(i); });
        block.Sync();
        block.Each(100, [&](int64_t i) { of(i) = old[99 - i] + add; });
      },
      ReadWrite(x));
}

class Tasks : public GraphConformance {
 protected:
  std::vector<int32_t> Small(int64_t n) {
    std::vector<int32_t> values = Random(n);
    for (int32_t& v : values) v /= 1000;
    return values;
  }
  template <int64_t kSide>
  void CheckTranspose();
};

TEST_P(Tasks, ComputeInPhasesWithAnyNumberOfThreads) {
  Graph g("scans");
  const auto n = g.Param<int64_t>("n", AtMost(kMost));
  std::vector<BufferHandle<int32_t>> x;
  const std::vector<uint32_t> threads{1, 31, 32, 77, 256, 1024};
  for (const uint32_t count : threads) {
    x.push_back(g.InOut<int32_t>(Name("x", count), kMost));
    g.Task(Name("scan", count), {.threads = count, .shared_bytes = kScanBytes}, Scan{}, ReadWrite(x.back()), n);
  }
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const int64_t count : {512, 1, 0, 37, 300}) {
    const std::vector<int32_t> given = Small(kMost);
    std::vector<std::vector<int32_t>> got(2 * x.size(), given);
    std::vector<penstock::Run> runs;
    for (size_t r = 0; r < 2; ++r) {
      for (size_t i = 0; i < x.size(); ++i) io.Set(x[i], got[r * x.size() + i]);
      auto run = exec->Launch(io.Set(n, count));
      ASSERT_OK(run.status());
      runs.push_back(*std::move(run));
    }
    for (penstock::Run& run : runs) ASSERT_OK(run.Wait());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], Scanned(given, count)) << count << " with threads " << threads[i % threads.size()];
    }
  }
}

template <int64_t kSide>
void Tasks::CheckTranspose() {
  constexpr int64_t kRows = 2 * kSide, kColumns = 3 * kSide;
  Graph g("transpose");
  const auto a = g.Input<int32_t>("a", {kRows, kColumns});
  const auto b = g.Output<int32_t>("b", {kColumns, kRows});
  for (int64_t y = 0; y < kRows; y += kSide) {
    for (int64_t x = 0; x < kColumns; x += kSide) {
      g.Task(Name("tile", y, x), {.shared_bytes = Transpose<kSide>::kBytes}, Transpose<kSide>{},
             Read(a, Slice({y, x}, {kSide, kSide})), Write(b, Slice({x, y}, {kSide, kSide})));
    }
  }
  const std::vector<int32_t> given = Random(kRows * kColumns);
  std::vector<int32_t> got = Poisoned(kRows * kColumns), expected(given.size());
  for (int64_t y = 0; y < kRows; ++y) {
    for (int64_t x = 0; x < kColumns; ++x) {
      expected[static_cast<size_t>(x * kRows + y)] = given[static_cast<size_t>(y * kColumns + x)];
    }
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(a, given).Set(b, got); }));
  EXPECT_EQ(got, expected) << kSide;
}
TEST_P(Tasks, ShareMemoryAmongTheirThreads) {
  CheckTranspose<16>();
  CheckTranspose<32>();
  CheckTranspose<100>();  // 40 KiB
}

TEST_P(Tasks, HaveTheirSharedMemoryToThemselves) {
  constexpr int kTasks = 70;
  Graph g("own");
  const auto wrong = g.Output<int32_t>("wrong", {kTasks, 40});
  for (int32_t t = 0; t < kTasks; ++t) {
    g.Task(Name("own", t), {.threads = 64, .shared_bytes = 4224}, Own{10'000 * t},
           Write(wrong, Slice({t, 0}, {1, 40})));
  }
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  std::vector<std::vector<int32_t>> got(4, Poisoned(kTasks * 40));
  std::vector<penstock::Run> runs;
  for (std::vector<int32_t>& to : got) runs.push_back(*exec->Launch(exec->bindings().Set(wrong, to)));
  for (size_t r = 0; r < got.size(); ++r) {
    ASSERT_OK(runs[r].Wait());
    EXPECT_EQ(got[r], std::vector<int32_t>(kTasks * 40)) << r;
  }
}

TEST_P(Tasks, RunInBodiesOfConstructs) {
  constexpr int64_t kN = 90;
  Graph g("smooth");
  const auto trips = g.Param<int32_t>("trips");
  const auto limit = g.Param<int32_t>("limit");
  const auto x = g.InOut<int32_t>("x", kN), y = g.InOut<int32_t>("y", kN);
  const TaskOptions options{.threads = 96, .shared_bytes = kN * sizeof(int32_t)};
  g.Repeat("repeat", trips, [&](Graph& body) { body.Task("smooth", options, Smooth{}, ReadWrite(x)); });
  g.While("while", When(IsRough{}, Read(y), limit), {.max = 1000}, [&](Graph& body) {
    body.Task("again", options, Smooth{}, ReadWrite(y));
    body.Task("once more", options, Smooth{}, ReadWrite(y));
  });
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  const auto smooth = [](std::vector<int32_t>& of) {
    const std::vector<int32_t> old = of;
    for (size_t i = 1; i + 1 < of.size(); ++i) of[i] = Smooth::Of(old[i - 1], old[i], old[i + 1]);
  };
  const auto is_rough = [](const std::vector<int32_t>& of, int32_t most) {
    for (size_t i = 1; i < of.size(); ++i) {
      if (std::abs(of[i] - of[i - 1]) > most) return true;
    }
    return false;
  };
  for (const int32_t count : {7, 0, 30}) {
    std::vector<int32_t> got_x = Small(kN), got_y = got_x, expected_x = got_x, expected_y = got_x;
    for (std::vector<int32_t>* const of : {&got_y, &expected_y}) of->front() = of->back() = 0;
    for (int32_t t = 0; t < count; ++t) smooth(expected_x);
    const int32_t most = 300 - count;
    while (is_rough(expected_y, most)) smooth(expected_y), smooth(expected_y);
    auto run = exec->Launch(exec->bindings().Set(trips, count).Set(limit, most).Set(x, got_x).Set(y, got_y));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(got_x, expected_x) << count;
    EXPECT_EQ(got_y, expected_y) << count;
  }
}

TEST_P(Tasks, TakeAllKindsOfArguments) {
  constexpr int64_t kN = 70;
  auto total = runtime_->MakeState<int32_t>("total", kN);
  ASSERT_OK(total.status());
  std::vector<int32_t> expected = Random(kN);
  ASSERT_OK(total->Set(expected));
  Graph g("arguments");
  const auto row = g.Param<int64_t>("row");
  const auto by = g.Param<int32_t>("by");
  const auto a = g.Input<int32_t>("a", {3, kN}), b = g.Input<int32_t>("b", kN);
  g.Task("add", AddAll{}, ReadAll(std::vector{b, b}), ReadWrite(*total), by, Read(a, Slice({row, 0}, {1, kN})));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  const std::vector<int32_t> ha = Random(3 * kN), hb = Random(kN);
  for (const int64_t at : {2, 0, 1}) {
    const auto add = static_cast<int32_t>(1000 * at + 3);
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] += 2 * hb[i] + add + ha[static_cast<size_t>(at * kN) + i];
    }
    auto run = exec->Launch(exec->bindings().Set(row, at).Set(by, add).Set(a, ha).Set(b, hb));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  }
  std::vector<int32_t> got(kN);
  ASSERT_OK(total->Read(got));
  EXPECT_EQ(got, expected);
}

// Graphs then have the other instance of the code.
TEST_P(Tasks, GetParametersThatComeByReference) {
  constexpr int kScans = 20;
  Graph g("by reference");
  const auto x = g.InOut<int32_t>("x", {kScans, kMost}, kPinned);
  std::vector<ParamHandle<int64_t>> n;
  for (int i = 0; i < kScans; ++i) {
    n.push_back(g.Param<int64_t>(Name("n", i)));
    g.Task(Name("scan", i), {.shared_bytes = kScanBytes}, Scan{2}, ReadWrite(x, Slice({i, 0}, {1, kMost})), n.back());
  }
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  auto got = runtime_->MakeHostBuffer<int32_t>(kScans * kMost);
  ASSERT_OK(got.status());
  Bindings io = exec->bindings();
  io.Set(x, *got);
  for (int round = 0; round < 14; ++round) {
    const std::vector<int32_t> given = Small(kScans * kMost);
    std::copy(given.begin(), given.end(), got->begin());
    for (int i = 0; i < kScans; ++i) io.Set(n[i], int64_t{25} * i + round);
    auto run = exec->Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (int i = 0; i < kScans; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i * kMost);
      const std::vector<int32_t> one(given.begin() + at, given.begin() + at + kMost);
      const std::vector<int32_t> of_run(got->begin() + at, got->begin() + at + kMost);
      ASSERT_EQ(of_run, Scanned(one, 25 * i + round, 2)) << round << " " << i;
    }
  }
  EXPECT_EQ(exec->submission_report().refreshes > 0, in_graphs() && !GetParam().resident);
}

// Another block is another graph; another value in the functor is not.
TEST_P(Tasks, OfAStepDeclaredAgainAreThatStepsOwn) {
  GraphCache cache(*runtime_, {.compile = {.slots = 1}});
  const struct {
    uint32_t threads, bytes;
    int32_t value;
  } kSteps[] = {{64, kScanBytes, 2},      {64, kScanBytes, 3}, {32, kScanBytes, 3},
                {64, kScanBytes + 16, 3}, {64, kScanBytes, 3}, {64, kScanBytes, 5}};
  for (const auto& step : kSteps) {
    const std::vector<int32_t> given = Small(100);
    std::vector<int32_t> got = given, reversed = given;
    auto run = cache.Launch([&](Graph& g, Bindings& io) {
      const auto x = g.InOut<int32_t>("x", 100), y = g.InOut<int32_t>("y", 100);
      g.Task("scan", {.threads = step.threads, .shared_bytes = step.bytes}, Scan{step.value}, ReadWrite(x),
             int64_t{100});
      ReverseAndAdd(g, step.value, y);
      io.Set(x, got).Set(y, reversed);
    });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(got, Scanned(given, 100, step.value));
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(reversed[i], given[99 - i] + step.value) << i;
  }
  EXPECT_EQ(cache.counts().compiled, 3);
}

TEST_P(Tasks, AreCheckedAgainstTheirHostCode) {
  Graph g("checked");
  const auto n = g.Param<int64_t>("n");
  const auto x = g.InOut<int32_t>("x", kMost), y = g.InOut<int32_t>("y", 100);
  g.Task("scan", {.shared_bytes = kScanBytes}, Scan{3}, ReadWrite(x), n);
  ReverseAndAdd(g, 7, y);
  const std::vector<int32_t> given = Small(kMost), lines = Small(100);
  std::vector<int32_t> got = given, reversed = lines;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(n, int64_t{200}).Set(x, got).Set(y, reversed); },
                    {.check_against_host = true}));
  EXPECT_EQ(got, Scanned(given, 200, 3));
  for (size_t i = 0; i < 100; ++i) ASSERT_EQ(reversed[i], lines[99 - i] + 7) << i;
}

TEST_P(Tasks, FailOnHostDevicesIfTheyTakeMemoryThatWasNotDeclared) {
  if (on_cuda()) GTEST_SKIP() << "memory is not checked on a GPU";
  const auto run = [&](const TooMuch& take) {
    Graph g("g");
    const auto x = g.InOut<int32_t>("x", 1);
    g.Task(Name("task", "a.cc", 5), {.shared_bytes = 64}, take, ReadWrite(x));
    int32_t got = -1;
    const absl::Status status = RunOnce(g, [&](Bindings& io) { io.Set(x, std::span(&got, 1)); });
    return status.ok() ? std::to_string(got) : Text(status);
  };
  EXPECT_EQ(run({16, 0}), "0");
  EXPECT_EQ(run({15, 4}), "1");
  EXPECT_EQ(run({0, 64}), "16");
  const std::string refused = run({17, 0});
  EXPECT_NE(refused.find("graph 'g' node 'task' (a.cc:5) on host:0: "), std::string::npos) << refused;
  EXPECT_NE(refused.find("the callable took 17 elements of 4 bytes, from byte 0 on, of a shared memory of 64 bytes; "
                         "declare enough in TaskOptions::shared_bytes, and begin at a multiple of the elements' "
                         "alignment"),
            std::string::npos)
      << refused;
  for (const TooMuch& wrong : {TooMuch{16, 4}, TooMuch{1, 2}, TooMuch{1, -4}, TooMuch{-1, 0}, TooMuch{0, 68},
                               TooMuch{INT64_MAX, 4}, TooMuch{1, INT64_MAX - 3}}) {
    EXPECT_NE(run(wrong).find("of a shared memory of 64 bytes"), std::string::npos) << wrong.count << " " << wrong.from;
  }
}

// On a CUDA device those are not whose memory is more than a worker has.
TEST_P(Tasks, AreInRegions) {
  if (!GetParam().resident) GTEST_SKIP() << "the targets with resident have regions";
  Graph g("regions");
  const auto x = g.InOut<int32_t>("x", kMost), y = g.InOut<int32_t>("y", kMost);
  for (int i = 0; i < 4; ++i) {
    g.Task(Name("small", i), {.shared_bytes = kScanBytes}, Scan{}, ReadWrite(x), int64_t{10});
  }
  for (int i = 0; i < 3; ++i) {
    g.Task(Name("large", i), {.shared_bytes = kScanBytes + 129}, Scan{}, ReadWrite(y), int64_t{10});
  }
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  std::vector<int32_t> got(kMost, 1), other(kMost, 1), expected(kMost, 1), third;
  for (int i = 0; i < 4; ++i) {
    if (i == 3) third = expected;
    expected = Scanned(expected, 10);
  }
  ASSERT_OK(exec->Launch(exec->bindings().Set(x, got).Set(y, other))->Wait());
  EXPECT_EQ(got, expected);
  EXPECT_EQ(other, third);
  const SubmissionReport report = exec->submission_report();
  EXPECT_EQ(report.region_nodes, on_cuda() ? 4 : 7) << report.Text();
  const std::string why = "in no region: node 'large 0' (task_test.cc:";
  EXPECT_EQ(report.Text().find(why) != std::string::npos, on_cuda()) << report.Text();
  EXPECT_EQ(report.Text().find("takes 4225 bytes of shared memory, and a worker has 4224") != std::string::npos,
            on_cuda())
      << report.Text();
}

INSTANTIATE_TEST_SUITE_P(Host, Tasks, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Tasks, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::task_test
