// Outputs of which only the first elements count: each run tells how many, on every driver, wherever the memory is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/pipeline.h"
#include "penstock/select.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::output_count_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kN = 3000;

struct IsBelow {
  int32_t bound;
  PENSTOCK_HOST_DEVICE bool operator()(int32_t x) const { return x < bound; }
};
template <class C>
struct SetTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<C> count, C value) const { count(0) = value; }
};
struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> sum, int32_t value) const { sum(0) += value; }
};
// Counts from `first` on.
struct Number {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> y, int32_t first) const {
    y(i) = first + static_cast<int32_t>(i);
  }
};

class OutputCounts : public GraphConformance {
 protected:
  // What is below the bound, in its order.
  static std::vector<int32_t> Below(const std::vector<int32_t>& x, int32_t bound) {
    std::vector<int32_t> kept;
    std::copy_if(x.begin(), x.end(), std::back_inserter(kept), IsBelow{bound});
    return kept;
  }
  // The elements of `memory` that count in a run that has ended.
  template <class T>
  static std::vector<int32_t> Counting(const penstock::Run& run, BufferHandle<int32_t> buffer, const T& memory) {
    const absl::StatusOr<int64_t> count = run.count(buffer);
    EXPECT_OK(count.status());
    if (!count.ok() || *count > static_cast<int64_t>(std::size(memory))) return {-1};
    return {std::begin(memory), std::begin(memory) + *count};
  }
};

// Keeps what is below 0 of n elements.
struct Compaction {
  Compaction(int64_t n, Where where) : x(g.Input<int32_t>("x", n)), kept(Declare(n, where)) {
    Select(g, "keep", Read(x), Write(kept), Write(count), IsBelow{0});
  }
  BufferHandle<int32_t> Declare(int64_t n, Where where) {
    count = g.Buffer<int32_t>("count", 1);
    return g.Output<int32_t>("kept", CountOf(count, n), where);
  }
  Graph g{"compaction"};
  BufferHandle<int32_t> count, x, kept;
};

TEST_P(OutputCounts, TellHowManyElementsEachRunGaveInMemoryOfTheHost) {
  for (const int64_t n : {kN, int64_t{40'000}}) {  // small enough to go through the slot, and not
    if (n > kN && kSanitized) continue;
    Compaction c(n, kHost);
    absl::StatusOr<Executable> exec = runtime_->Compile(c.g, {.slots = 2});
    ASSERT_OK(exec.status());
    auto pinned = runtime_->MakeHostBuffer<int32_t>(n);
    ASSERT_OK(pinned.status());
    for (int r = 0; r < 6; ++r) {
      std::vector<int32_t> x = Random(n), pageable = Poisoned(n);
      std::sort(x.begin(), x.begin() + n / 6 * r);  // others are kept each time
      if (r == 4) std::fill(x.begin(), x.end(), 5);  // none are
      Bindings io = exec->bindings();
      io.Set(c.x, x);
      if (r % 2 == 0) io.Set(c.kept, pageable);
      else io.Set(c.kept, *pinned);
      const absl::StatusOr<penstock::Run> run = exec->Launch(io);
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      if (r % 2 == 0) ASSERT_EQ(Counting(*run, c.kept, pageable), Below(x, 0)) << r;
      else ASSERT_EQ(Counting(*run, c.kept, std::span(pinned->data(), static_cast<size_t>(n))), Below(x, 0)) << r;
    }
  }
}

TEST_P(OutputCounts, WorkInSlotsAndInPinnedMemoryAndOnDevices) {
  const std::vector<int32_t> x = Random(kN);
  {
    Compaction c(kN, kSlot);
    absl::StatusOr<Executable> exec = runtime_->Compile(c.g);
    ASSERT_OK(exec.status());
    absl::StatusOr<Lease> slot = exec->Acquire();
    ASSERT_OK(slot.status());
    const absl::StatusOr<penstock::Run> run = slot->Launch(exec->bindings().Set(c.x, x));
    ASSERT_OK(run->Wait());
    EXPECT_EQ(Counting(*run, c.kept, slot->span(c.kept)), Below(x, 0));
  }
  {
    Compaction c(kN, kPinned);
    absl::StatusOr<Executable> exec = runtime_->Compile(c.g);
    ASSERT_OK(exec.status());
    auto kept = runtime_->MakeHostBuffer<int32_t>(kN);
    const absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(c.x, x).Set(c.kept, *kept));
    ASSERT_OK(run->Wait());
    EXPECT_EQ(Counting(*run, c.kept, std::span(kept->data(), kN)), Below(x, 0));
  }
  Compaction c(kN, kDevice);
  absl::StatusOr<Executable> exec = runtime_->Compile(c.g);
  ASSERT_OK(exec.status());
  auto kept = runtime_->MakeDeviceBuffer<int32_t>(kN);
  const absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(c.x, x).Set(c.kept, *kept));
  ASSERT_OK(run->Wait());
  EXPECT_EQ(run->count(c.kept).value_or(-1), static_cast<int64_t>(Below(x, 0).size()));
}

// The count is written by a functor, and is cut to what there is.
template <class C>
int64_t CountFrom(Runtime& runtime, C value, int64_t most) {
  Graph g("cut");
  const auto n = g.Param<int64_t>("n", AtMost(100));
  const auto to = g.Param<C>("value");
  const auto counts = g.Buffer<C>("counts", 5);
  const auto y = g.Output<int32_t>("y", CountOf(Read(counts, Slice({3}, {1})), n));
  g.Fill("zeros", counts, C{});
  g.ParallelFor("set", 1, SetTo<C>{}, Write(counts, Slice({3}, {1})), to);
  g.ParallelFor("number", n, Number{}, WriteSome(y), 0);
  absl::StatusOr<Executable> exec = runtime.Compile(g);
  EXPECT_OK(exec.status());
  if (!exec.ok()) return -2;
  std::vector<int32_t> memory(static_cast<size_t>(most));
  const absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(n, most).Set(to, value).Set(y, memory));
  EXPECT_OK(run.status());
  EXPECT_OK(run->Wait());
  return run->count(y).value_or(-1);
}

TEST_P(OutputCounts, OfAnyIntegerLieBetweenNoneAndTheMaximumOfTheRun) {
  EXPECT_EQ(CountFrom<int8_t>(*runtime_, 7, 50), 7);
  EXPECT_EQ(CountFrom<int8_t>(*runtime_, -1, 50), 0);
  EXPECT_EQ(CountFrom<uint8_t>(*runtime_, 255, 50), 50);
  EXPECT_EQ(CountFrom<int16_t>(*runtime_, 99, 100), 99);
  EXPECT_EQ(CountFrom<uint32_t>(*runtime_, UINT32_MAX, 3), 3);
  EXPECT_EQ(CountFrom<int64_t>(*runtime_, INT64_MIN, 3), 0);
  EXPECT_EQ(CountFrom<uint64_t>(*runtime_, UINT64_MAX, 3), 3);
  EXPECT_EQ(CountFrom<uint64_t>(*runtime_, 2, 0), 0);
}

TEST_P(OutputCounts, AreThoseAtTheEndOfTheirRunHoweverManyAreInFlight) {
  Graph g("flight");
  const auto value = g.Param<int32_t>("value");
  const auto count = g.Buffer<int32_t>("count", 1);
  const auto y = g.Output<int32_t>("y", CountOf(count, kN));
  const auto z = g.Output<int32_t>("z", CountOf(count, 10));
  g.Fill("none", count, 0);
  g.ParallelFor("number", kN, Number{}, Write(y), value);
  g.ParallelFor("few", 10, Number{}, Write(z), value);
  g.ParallelFor("set", 1, SetTo<int32_t>{}, ReadWrite(count), value);  // after what it counts
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 3});
  ASSERT_OK(exec.status());
  std::vector<std::vector<int32_t>> ys(12, Poisoned(kN)), zs(12, Poisoned(10));
  std::vector<penstock::Run> runs;
  for (int32_t r = 0; r < 12; ++r) {
    const auto at = static_cast<size_t>(r);
    auto run = exec->Launch(exec->bindings().Set(value, 3 * r).Set(y, ys[at]).Set(z, zs[at]));
    ASSERT_OK(run.status());
    runs.push_back(*run);
  }
  for (int32_t r = 11; r >= 0; --r) {  // long after the slots have served others
    const penstock::Run& run = runs[static_cast<size_t>(r)];
    ASSERT_OK(run.Wait());
    EXPECT_EQ(run.count(y).value_or(-1), 3 * r);
    EXPECT_EQ(run.count(z).value_or(-1), std::min(3 * r, 10));
    EXPECT_EQ(ys[static_cast<size_t>(r)][2], 3 * r + 2);
  }
}

TEST_P(OutputCounts, WorkInBodiesOfConstructsAndFromStatesAndUnderTheHostCheck) {
  auto state = runtime_->MakeState<int32_t>("seen", 1);
  ASSERT_OK(state.status());
  Graph g("loop");
  const auto y = g.Output<int32_t>("y", CountOf(Read(*state), kN));
  g.Repeat("thrice", 3, [&](Graph& body) {
    body.ParallelFor("more", 1, AddTo{}, ReadWrite(*state), 100);
    body.ParallelFor("number", kN, Number{}, Write(y), 7);
  });
  absl::StatusOr<Executable> exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  std::vector<int32_t> hy = Poisoned(kN);
  for (int r = 1; r <= 3; ++r) {
    const absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(y, hy));
    ASSERT_OK(run->Wait());
    EXPECT_EQ(run->count(y).value_or(-1), 300 * r);
    EXPECT_EQ(hy[5], 12);
  }
  Compaction c(kN, kHost);
  absl::StatusOr<Executable> checked = runtime_->Compile(c.g, {.check_against_host = true});
  ASSERT_OK(checked.status());
  const std::vector<int32_t> x = Random(kN);
  std::vector<int32_t> kept = Poisoned(kN);
  const absl::StatusOr<penstock::Run> run = checked->Launch(checked->bindings().Set(c.x, x).Set(c.kept, kept));
  ASSERT_OK(run->Wait());
  EXPECT_EQ(Counting(*run, c.kept, kept), Below(x, 0));
}

TEST_P(OutputCounts, NeedNoUploadOfWhatNodesLeaveUnwritten) {
  Compaction counted(kN, kHost);
  EXPECT_THAT(runtime_->Compile(counted.g)->PlanText(), Not(HasSubstr("upload kept")));
  Graph g("plain");
  const auto x = g.Input<int32_t>("x", kN);
  const auto kept = g.Output<int32_t>("kept", kN), count = g.Output<int32_t>("count", 1);
  Select(g, "keep", Read(x), Write(kept), Write(count), IsBelow{0});
  EXPECT_THAT(runtime_->Compile(g)->PlanText(), HasSubstr("upload kept")) << "the rest of a plain Output is kept";
}

TEST_P(OutputCounts, OfStepsThatAreDeclaredAgainAreTheirOwn) {
  GraphCache steps(*runtime_);
  for (int32_t r = 0; r < 4; ++r) {
    std::vector<int32_t> hy = Poisoned(kN);
    BufferHandle<int32_t> y;
    const auto run = steps.Launch([&](Graph& g, Bindings& io) {
      const auto count = g.Buffer<int32_t>("count", 1), other = g.Buffer<int32_t>("other", 1);
      y = g.Output<int32_t>("y", CountOf(r < 3 ? count : other, kN));
      g.Fill("some", count, 20 + r);
      g.Fill("others", other, 70 + r);
      g.ParallelFor("number", kN, Number{}, Write(y), r);
      io.Set(y, hy);
    });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(run->count(y).value_or(-1), r < 3 ? 20 + r : 73);
  }
  EXPECT_EQ(steps.counts().compiled, 2) << "another count makes another graph";
}

struct Work {
  std::vector<int32_t> x, kept = Poisoned32(), few = Poisoned32();
  static std::vector<int32_t> Poisoned32() { return std::vector<int32_t>(static_cast<size_t>(kN), 0x5a5a5a5a); }
};

TEST_P(OutputCounts, ComeWithTheItemsOfAPipeline) {
  Compaction first(kN, kHost);
  Graph second("second");
  const auto n = second.Param<int32_t>("n");
  const auto count = second.Buffer<int32_t>("count", 1);
  const auto few = second.Output<int32_t>("few", CountOf(count, kN));
  second.ParallelFor("set", 1, SetTo<int32_t>{}, Write(count), n);
  second.ParallelFor("number", kN, Number{}, Write(few), 1);
  absl::StatusOr<Executable> a = runtime_->Compile(first.g, {.slots = 2}), b = runtime_->Compile(second, {.slots = 2});
  ASSERT_OK(a.status());
  ASSERT_OK(b.status());
  Stages<Work> stages;
  stages.Run("compact", *a, [&](Item<Work>& item) { item.Set(first.x, item->x).Set(first.kept, item->kept); });
  stages.Run("second", *b, [&](Item<Work>& item) {
    item.Set(n, static_cast<int32_t>(item.count(first.kept).value_or(-7)) / 2).Set(few, item->few);
  });
  absl::StatusOr<Pipeline<Work>> pipe = Pipeline<Work>::Create(std::move(stages), {.window = 3});
  ASSERT_OK(pipe.status());
  int left = 10;
  const absl::Status ran = pipe->Run(
      [&]() -> std::optional<Work> {
        if (left-- == 0) return std::nullopt;
        Work work;
        work.x = Random(kN);
        std::fill_n(work.x.begin(), 100 * left, 1);
        return work;
      },
      [&](Item<Work>& item) {
        ASSERT_OK(item.status());
        const std::vector<int32_t> below = Below(item->x, 0);
        ASSERT_EQ(item.count(first.kept).value_or(-1), static_cast<int64_t>(below.size()));
        EXPECT_TRUE(std::equal(below.begin(), below.end(), item->kept.begin()));
        EXPECT_EQ(item.count(few).value_or(-1), static_cast<int64_t>(below.size()) / 2);
        EXPECT_EQ(item.count(first.x).status().code(), absl::StatusCode::kInvalidArgument);
      });
  EXPECT_OK(ran);
}

TEST_P(OutputCounts, AreRefusedWhereThereAreNone) {
  EXPECT_EQ(penstock::Run().count(BufferHandle<int32_t>()).status().code(), absl::StatusCode::kFailedPrecondition);
  Graph g("g");
  const auto count = g.Buffer<int32_t>("count", 1);
  const auto y = g.Output<int32_t>("y", CountOf(count, kN)), z = g.Output<int32_t>("z", kN);
  const auto fails = g.Param<bool>("fails");
  g.Fill("one", count, 1);
  g.ParallelFor("y", kN, Number{}, Write(y), 1);
  g.ParallelFor("z", kN, Number{}, Write(z), 1);
  g.Host(
      "check", [](bool fail, std::span<const int32_t>) { return fail ? absl::DataLossError("no") : absl::OkStatus(); },
      fails, Read(z));
  absl::StatusOr<Executable> exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  std::vector<int32_t> hy(kN), hz(kN);
  for (const bool fail : {false, true}) {
    const absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(y, hy).Set(z, hz).Set(fails, fail));
    ASSERT_OK(run.status());
    EXPECT_EQ(run->Wait().ok(), !fail);
    const absl::Status of_z = run->count(z).status();
    if (fail) {
      EXPECT_EQ(run->count(y).status(), run->status());
      continue;
    }
    EXPECT_EQ(run->count(y).value_or(-1), 1);
    EXPECT_EQ(of_z.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Text(of_z), HasSubstr("no Output with a count"));
    EXPECT_EQ(run->count(BufferHandle<int32_t>()).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

INSTANTIATE_TEST_SUITE_P(Host, OutputCounts, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, OutputCounts, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::output_count_test
