// Small copies of unpinned memory: made where the run is advanced, not by a worker.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include "penstock/graph.h"
#include "penstock/trace.h"
#include "tests/support/kernels.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::small_copies_test {
namespace {

// The only worker is held inside a Host node, and the runs end nevertheless, with what they should compute.
TEST(SmallCopies, NeedNoWorker) {
  constexpr int64_t kN = 4096;  // 16 KiB each way
  Runtime runtime = *Runtime::Create({.devices = "host:1", .workers = 1, .host_device_threads = 1});
  driver::Latch latch;
  Graph holds("holds");
  holds.Host("hold", [&] { latch.Arrive(); });
  Executable holder = *runtime.Compile(holds);
  const penstock::Run held = *holder.Launch(holder.bindings());
  ASSERT_TRUE(latch.AwaitArrived());

  Graph g("small");
  auto x = g.Input<int32_t>("x", kN);
  auto y = g.Output<int32_t>("y", kN);
  g.ParallelFor("add", kN, [](int64_t i, const int32_t* from, int32_t* to) { to[i] = from[i] + 1; }, Read(x), Write(y));
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    const auto trace = mode == Mode::kStream ? Trace::Create() : nullptr;
    Executable exec = *runtime.Compile(g, {.mode = mode, .trace = trace});
    std::vector<int32_t> in(kN), out(kN, -1), expected(kN);
    std::iota(in.begin(), in.end(), 0);
    std::iota(expected.begin(), expected.end(), 1);
    Bindings io = exec.bindings();
    for (int run = 0; run < 3; ++run)
      EXPECT_OK(exec.Launch(io.Set(x, in).Set(y, out), std::chrono::seconds(60))->Wait());
    EXPECT_EQ(out, expected);
    if (trace == nullptr) continue;
    int copies = 0;
    for (const Span& span : trace->spans()) {
      if (span.kind != SpanKind::kHost) continue;
      ++copies;
      EXPECT_TRUE(span.track.starts_with("small copies slot ")) << span.name << " on " << span.track;
    }
    EXPECT_EQ(copies, 6);
  }
  latch.Open();
  EXPECT_OK(held.Wait());
}

}  // namespace
}  // namespace penstock::small_copies_test
