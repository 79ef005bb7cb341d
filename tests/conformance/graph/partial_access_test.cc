// WriteSome and Scratch on every driver, with and without the checked driver and the comparison with the host code, for
// what they are made for: a compaction and a workspace.
#include <algorithm>
#include <numeric>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::partial_access_test {
namespace {

constexpr int kN = 200;

// Writes the even numbers to the front of `to`, and how many there are.
void CompactOnHost(int n, const int32_t* from, int32_t* to, int32_t* count) {
  *count = 0;
  for (int i = 0; i < n; ++i) {
    if (from[i] % 2 == 0) to[(*count)++] = from[i];
  }
}
TEST_KERNEL void Compact([[maybe_unused]] int n, [[maybe_unused]] const int32_t* from, [[maybe_unused]] int32_t* to,
                         [[maybe_unused]] int32_t* count) {
#if defined(__CUDA_ARCH__)
  *count = 0;
  for (int i = 0; i < n; ++i) {
    if (from[i] % 2 == 0) to[(*count)++] = from[i];
  }
#endif
}
// Reverses in two steps, by way of the workspace.
void ReverseOnHost(int n, int32_t* work, const int32_t* from, int32_t* to) {
  std::copy(from, from + n, work);
  std::reverse_copy(work, work + n, to);
}
TEST_KERNEL void Reverse([[maybe_unused]] int n, [[maybe_unused]] int32_t* work, [[maybe_unused]] const int32_t* from,
                         [[maybe_unused]] int32_t* to) {
#if defined(__CUDA_ARCH__)
  for (int i = 0; i < n; ++i) work[i] = from[i];
  for (int i = 0; i < n; ++i) to[i] = work[n - 1 - i];
#endif
}
TEST_KERNEL void AddInto([[maybe_unused]] const int32_t* from, [[maybe_unused]] int32_t* to) {
#if defined(__CUDA_ARCH__)
  to[0] += from[0];
#endif
}

std::string Words(const absl::Status& status) { return std::string(status.message().data(), status.message().size()); }

class PartialAccess : public GraphConformance {
 protected:
  static constexpr bool kWays[] = {false, true};  // whether the host code is compared
  static CompileOptions Checked(bool checked) { return {.slots = 1, .check_against_host = checked}; }
  static std::vector<int32_t> Evens(const std::vector<int32_t>& of) {
    std::vector<int32_t> evens;
    std::copy_if(of.begin(), of.end(), std::back_inserter(evens), [](int32_t v) { return v % 2 == 0; });
    return evens;
  }
};

TEST_P(PartialAccess, ACompactionPassesWhateverIsChecked) {
  for (const bool checked : kWays) {
    Graph g("compaction");
    auto x = g.Input<int32_t>("x", kN);
    auto t = g.Buffer<int32_t>("t", kN);
    auto count = g.Output<int32_t>("count", 1);
    auto y = g.Output<int32_t>("y", kN);
    g.Kernel("compact", Compact, Blocks({1, 1, 1}, {1, 1, 1}), kN, Read(x), WriteSome(t), Write(count))
        .HostFallback(CompactOnHost);
    g.ParallelFor("use", kN, PlusOne{}, Read(t), Write(y));
    auto exec = runtime_->Compile(g, Checked(checked));
    ASSERT_OK(exec.status());
    EXPECT_EQ(exec->PlanText().find("check compact") != std::string::npos, checked);
    Bindings io = exec->bindings();
    for (int r = 0; r < 3; ++r) {
      const std::vector<int32_t> hx = Random(kN), evens = Evens(hx);
      std::vector<int32_t> hcount(1), hy = Poisoned(kN);
      auto run = exec->Launch(io.Set(x, hx).Set(count, hcount).Set(y, hy));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      ASSERT_EQ(hcount[0], static_cast<int32_t>(evens.size()));
      for (size_t i = 0; i < evens.size(); ++i) ASSERT_EQ(hy[i], evens[i] + 1);
    }
  }
}

// What a run does not write is what was bound, or what the run before left.
TEST_P(PartialAccess, WhatIsNotWrittenKeepsItsValueInAStateAndInBoundMemory) {
  for (const bool checked : kWays) {
    auto state = runtime_->MakeState<int32_t>("s", kN, std::vector<int32_t>(kN, -1));
    ASSERT_OK(state.status());
    Graph g("compaction");
    auto x = g.Input<int32_t>("x", kN);
    auto counts = g.Output<int32_t>("counts", 2);
    auto y = g.Output<int32_t>("y", kN);
    g.Kernel("to state", Compact, Blocks({1, 1, 1}, {1, 1, 1}), kN, Read(x), WriteSome(*state),
             Write(counts, Slice(0, 1)))
        .HostFallback(CompactOnHost);
    g.Kernel("to memory", Compact, Blocks({1, 1, 1}, {1, 1, 1}), kN / 2, Read(x, Slice(0, kN / 2)),
             WriteSome(y, Slice(20, kN / 2)), Write(counts, Slice(1, 1)))
        .HostFallback(CompactOnHost);
    auto exec = runtime_->Compile(g, Checked(checked));
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    std::vector<int32_t> expected(kN, -1);
    for (int r = 0; r < 3; ++r) {
      const std::vector<int32_t> hx = Random(kN);
      std::vector<int32_t> hcounts(2), hy = Poisoned(kN), expected_y = hy, got(kN);
      auto run = exec->Launch(io.Set(x, hx).Set(counts, hcounts).Set(y, hy));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      const std::vector<int32_t> all = Evens(hx), half = Evens({hx.begin(), hx.begin() + kN / 2});
      std::copy(all.begin(), all.end(), expected.begin());
      std::copy(half.begin(), half.end(), expected_y.begin() + 20);
      ASSERT_OK(state->Read(got));
      EXPECT_EQ(got, expected);
      EXPECT_EQ(hy, expected_y);
    }
  }
}

TEST_P(PartialAccess, AWorkspacePassesWhateverIsChecked) {
  for (const bool checked : kWays) {
    Graph g("workspace");
    auto x = g.Input<int32_t>("x", kN);
    auto work = g.Buffer<int32_t>("work", kN);
    auto t = g.Buffer<int32_t>("t", kN);
    auto y = g.Output<int32_t>("y", kN);
    g.Kernel("once", Reverse, Blocks({1, 1, 1}, {1, 1, 1}), kN, Scratch(work), Read(x), Write(t))
        .HostFallback(ReverseOnHost);
    g.ParallelFor("between", kN, AddOne{}, ReadWrite(t));
    g.Kernel("twice", Reverse, Blocks({1, 1, 1}, {1, 1, 1}), kN, Scratch(work), Read(t), Write(y))
        .HostFallback(ReverseOnHost);
    const std::vector<int32_t> hx = Random(kN);
    std::vector<int32_t> hy = Poisoned(kN);
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }, Checked(checked)));
    for (int i = 0; i < kN; ++i) ASSERT_EQ(hy[i], hx[i] + 1);
  }
}

TEST_P(PartialAccess, SomeOfABufferAndScratchCostNoCopies) {
  if (!checks_) GTEST_SKIP() << "counted at the checked driver";
  Graph g("copies");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  auto work = g.Buffer<int32_t>("work", kN);
  auto t = g.Buffer<int32_t>("t", kN);
  auto count = g.Output<int32_t>("count", 1, kPinned);
  g.Kernel("reverse", Reverse, Blocks({1, 1, 1}, {1, 1, 1}), kN, Scratch(work), Read(x),
           Write(g.Buffer<int32_t>("u", kN)))
      .HostFallback(ReverseOnHost);
  g.Kernel("compact", Compact, Blocks({1, 1, 1}, {1, 1, 1}), kN, Read(x), WriteSome(t), Write(count))
      .HostFallback(CompactOnHost);
  auto hx = runtime_->MakeHostBuffer<int32_t>(kN), hcount = runtime_->MakeHostBuffer<int32_t>(1);
  ASSERT_OK(hx.status());
  ASSERT_OK(hcount.status());
  std::iota(hx->begin(), hx->end(), 0);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const driver::checked::Totals before = checks_->witness().totals();
  auto run = exec->Launch(io.Set(x, *hx).Set(count, *hcount));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  const driver::checked::Totals done = checks_->witness().totals() - before;
  EXPECT_EQ(done.uploads.bytes + done.batch_uploads.bytes, kN * 4);
  EXPECT_EQ(done.downloads.bytes + done.batch_downloads.bytes, 4);
  EXPECT_EQ((*hcount)[0], kN / 2);
}

// Host code that writes another element, or one more, or one less; on host devices the first call is the node itself.
TEST_P(PartialAccess, HostCodeThatWritesOtherElementsIsFound) {
  struct Wrong {
    int at;  // where it writes a value that the node does not; -1: nowhere
    int32_t value;
    bool all;  // whether it writes what the node does
    const char* text;
  };
  const Wrong wrongs[] = {
      {0, 70, true,
       "buffer 't'; element 0 is 2 (02 00 00 00) by the node and 70 (46 00 00 00) by the host code, 1 of 4"},
      {3, 70, true, "buffer 't'; element 3 is 1515870810 (5a 5a 5a 5a) by the node and 70 (46 00 00 00) by the host"},
      {-1, 0, false,
       "buffer 't'; element 0 is 2 (02 00 00 00) by the node and -1515870811 (a5 a5 a5 a5) by the host code, 2 of 4"}};
  for (const Wrong& wrong : wrongs) {
    Graph g("differs");
    auto x = g.Input<int32_t>("x", 4);
    auto t = g.Buffer<int32_t>("t", 4);
    auto count = g.Output<int32_t>("count", 1);
    int calls = 0;
    const bool cuda = on_cuda();
    g.Kernel("compact", Compact, Blocks({1, 1, 1}, {1, 1, 1}), 4, Read(x), WriteSome(t), Write(count))
        .HostFallback([&calls, cuda, wrong](int n, const int32_t* from, int32_t* to, int32_t* found) {
          const bool node = ++calls == 1 && !cuda;
          int32_t nowhere[4];
          CompactOnHost(n, from, node || wrong.all ? to : nowhere, found);
          if (!node && wrong.at >= 0) to[wrong.at] = wrong.value;
        });
    const std::vector<int32_t> hx = {1, 2, 3, 4};
    std::vector<int32_t> hcount(1);
    const std::string text = Words(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(count, hcount); }, Checked(true)));
    EXPECT_NE(text.find(wrong.text), std::string::npos) << text;
  }
}

// Node and host code start with different contents, so neither can build on them unnoticed.
TEST_P(PartialAccess, CodeThatReadsWhatItOnlyWritesIsFound) {
  Graph g("reads");
  auto x = g.Input<int32_t>("x", 1);
  auto t = g.Buffer<int32_t>("t", 1);
  g.Kernel("add", AddInto, Blocks({1, 1, 1}, {1, 1, 1}), Read(x), WriteSome(t))
      .HostFallback([](const int32_t* from, int32_t* to) { to[0] += from[0]; });
  const std::vector<int32_t> hx = {1};
  const std::string text = Words(RunOnce(g, [&](Bindings& io) { io.Set(x, hx); }, Checked(true)));
  EXPECT_NE(text.find("buffer 't'; element 0 is 1515870811 (5b 5a 5a 5a) by the node and -1515870810 (a6 a5 a5 a5)"),
            std::string::npos)
      << text;
}

TEST_P(PartialAccess, TheElementsOfAStateThatHostCodeChangesAloneAreFound) {
  auto state = runtime_->MakeState<int32_t>("s", 4, std::vector<int32_t>(4, 9));
  ASSERT_OK(state.status());
  Graph g("differs");
  auto x = g.Input<int32_t>("x", 4);
  int calls = 0;
  const bool cuda = on_cuda();
  g.Kernel("compact", Compact, Blocks({1, 1, 1}, {1, 1, 1}), 4, Read(x), WriteSome(*state),
           Write(g.Buffer<int32_t>("count", 1)))
      .HostFallback([&calls, cuda](int n, const int32_t* from, int32_t* to, int32_t* count) {
        CompactOnHost(n, from, to, count);
        if (++calls > 1 || cuda) to[3] = 8;
      });
  const std::vector<int32_t> hx = {1, 2, 3, 4};
  const std::string text = Words(RunOnce(g, [&](Bindings& io) { io.Set(x, hx); }, Checked(true)));
  EXPECT_NE(text.find("buffer 's'; element 3 is 9 (09 00 00 00) by the node and 8 (08 00 00 00) by the host code, 1 of "
                      "4 elements differ"),
            std::string::npos)
      << text;
}

INSTANTIATE_TEST_SUITE_P(Host, PartialAccess, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, PartialAccess, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::partial_access_test
