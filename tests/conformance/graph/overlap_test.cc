// Overlap, proved by rendezvous and not by time: with one run's kernel held on a latch, the next run's upload and the
// previous run's download finish, and what stands behind the kernel in its own stream does not start.
//
// The latch is a word of pinned memory, which CUDA devices see at the same address. A held kernel gives up after 20 s,
// so that a broken library fails the test instead of hanging the machine.
#include <chrono>
#include <thread>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/device_words.h"

namespace penstock::conformance::overlap_test {
namespace {

// Words of the latch of one run.
struct Words {
  int32_t arrived, open, passed, timed_out;
};

struct Arrive {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, Words* w, View<const int32_t> x, View<int32_t> seen) const {
    seen(0) = x(x.width - 1);
    StoreWord(&w->arrived, 1);
  }
};
struct Hold {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, Words* w, View<int32_t> seen) const {
    const int64_t until = Nanoseconds() + int64_t{20} * 1000 * 1000 * 1000;
    while (LoadWord(&w->open) == 0) {
      if (Nanoseconds() > until) {
        StoreWord(&w->timed_out, 1);
        return;
      }
    }
    seen(0) += 1;
  }
};
struct Pass {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, Words* w, View<const int32_t> seen, View<int32_t> y) const {
    for (int64_t i = 0; i < y.width; ++i) y(i) = seen(0);
    StoreWord(&w->passed, 1);
  }
};

class Overlap : public GraphConformance {
 protected:
  void SetUp() override {
    GraphConformance::SetUp();
    if (IsSkipped() || HasFatalFailure() || on_cuda()) return;
    // A held kernel keeps a compute thread of a host device.
    runtime_.reset();
    auto made = Runtime::Create({.devices = GetParam().devices, .workers = 2, .host_device_threads = 4});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }
  static void AwaitWord(const int32_t* word, const char* what) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    while (LoadWord(word) == 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << what << " did not happen while the kernel was held";
      std::this_thread::yield();
    }
  }
};

TEST_P(Overlap, CopiesOfOtherRunsFinishBesideAHeldKernel) {
  constexpr int64_t kN = 1 << 16;
  constexpr int kRuns = 3;
  Graph g("overlap");
  auto words = g.Param<Words*>("words");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  auto y = g.Output<int32_t>("y", kN, kPinned);
  auto seen = g.Buffer<int32_t>("seen", 1);
  g.ParallelFor("arrive", 1, Arrive{}, words, Read(x), Write(seen));
  g.ParallelFor("hold", 1, Hold{}, words, ReadWrite(seen));
  g.ParallelFor("pass", 1, Pass{}, words, Read(seen), Write(y));
  auto exec = runtime_->Compile(g, {.slots = kRuns});
  ASSERT_OK(exec.status());

  auto latch = runtime_->MakeHostBuffer<Words>(kRuns);
  ASSERT_OK(latch.status());
  std::vector<HostBuffer<int32_t>> hx, hy;
  for (int r = 0; r < kRuns; ++r) {
    (*latch)[r] = {};
    for (auto* list : {&hx, &hy}) {
      auto buffer = runtime_->MakeHostBuffer<int32_t>(kN);
      ASSERT_OK(buffer.status());
      list->push_back(*std::move(buffer));
    }
    std::fill(hx[r].begin(), hx[r].end(), 100 * (r + 1));
    std::fill(hy[r].begin(), hy[r].end(), -1);
  }
  std::vector<penstock::Run> runs;
  Bindings io = exec->bindings();
  const auto launch = [&](int r) {
    auto run = exec->Launch(io.Set(words, &(*latch)[r]).Set(x, hx[r]).Set(y, hy[r]));
    ASSERT_OK(run.status());
    runs.push_back(*std::move(run));
  };

  launch(0);
  launch(1);
  AwaitWord(&(*latch)[0].arrived, "the first upload");
  AwaitWord(&(*latch)[1].arrived, "the second upload");
  // From here on the kernel of run 1 is held. The previous run's kernel is let go: its download must finish.
  StoreWord(&(*latch)[0].open, 1);
  ASSERT_OK(runs[0].Wait(std::chrono::seconds(15)));
  EXPECT_EQ(hy[0][kN - 1], 101);
  // The next run's upload must finish: its first kernel has read the last element.
  launch(2);
  AwaitWord(&(*latch)[2].arrived, "the next upload");
  // Nothing behind the held kernel has started.
  EXPECT_EQ(LoadWord(&(*latch)[1].passed), 0);
  EXPECT_EQ(LoadWord(&(*latch)[2].passed), 0);
  EXPECT_EQ(hy[1][0], -1);
  EXPECT_FALSE(runs[1].done());

  StoreWord(&(*latch)[1].open, 1);
  StoreWord(&(*latch)[2].open, 1);
  for (int r = 0; r < kRuns; ++r) {
    ASSERT_OK(runs[r].Wait(std::chrono::seconds(15)));
    EXPECT_EQ(LoadWord(&(*latch)[r].timed_out), 0);
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(hy[r][i], 100 * (r + 1) + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Overlap, testing::Values(Target{"host:1", "stream"}),
                         [](const auto& p) { return p.param.mode; });
INSTANTIATE_TEST_SUITE_P(Cuda, Overlap, testing::Values(Target{"cuda:0", "stream"}),
                         [](const auto& p) { return p.param.mode; });

}  // namespace
}  // namespace penstock::conformance::overlap_test
