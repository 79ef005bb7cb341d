// The user's code behind a copy through the ring: it may wait for other copies, so no thread of the ring calls it. On a
// host device that passes for a CUDA device, since only there Launch nodes call their callable while they are
// submitted.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/launch_context.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_graph.h"
#include "tests/support/passes_for_cuda.h"

namespace penstock::runtime::launch_ring_test {
namespace {

class ForeignRing : public testing::TestWithParam<int> {
 protected:
  static Runtime Make() {
    RuntimeOptions options{.devices = "host"};
    options.staging = {.threads = GetParam(), .chunk_bytes = 512, .from_bytes = 0};
    absl::StatusOr<Runtime> made = Runtime::Create(options);
    EXPECT_OK(made.status());
    return *std::move(made);
  }
  // A graph that brings `from_` to the device and then calls `f`.
  template <class F>
  void Declare(Graph& graph, F f) {
    const auto x = graph.Input<int32_t>("x", kN);
    graph.Launch("call", [f](LaunchContext&, const int32_t*) { f(); }, Read(x));
    exec_ = *runtime_.Compile(graph, {.slots = 1});
    io_ = exec_.bindings();
    io_.Set(x, from_);
  }

  static constexpr int64_t kN = 4096;
  const ScopedDriverHook hook_{{.wrap = [](std::unique_ptr<driver::Driver> driver) {
    return std::make_unique<driver::PassesForCuda>(std::move(driver));
  }}};
  std::vector<int32_t> from_ = std::vector<int32_t>(kN, 7);
  Runtime runtime_ = Make();
  Executable exec_;
  Bindings io_;
};

TEST_P(ForeignRing, ACallableThatWaitsForAnotherRunsCopiesGetsThem) {
  std::binary_semaphore called(0), may_end(0);
  std::atomic<bool> came = false;
  Graph first("first"), second("second");
  Declare(first, [&] {
    called.release();
    came = may_end.try_acquire_for(std::chrono::seconds(20));
  });
  const auto in = second.Input<int32_t>("in", kN);
  const auto out = second.Output<int32_t>("out", kN);
  second.Copy("copy", Read(in), Write(out));
  absl::StatusOr<Executable> copies = runtime_.Compile(second);
  ASSERT_OK(copies.status());
  Bindings io = copies->bindings();
  std::vector<int32_t> to(kN);

  absl::Status waiting;
  std::thread waits([&] {  // who launches may be the one who calls it
    auto run = exec_.Launch(io_);
    waiting = run.ok() ? run->Wait() : run.status();
  });
  called.acquire();
  auto run = copies->Launch(io.Set(in, from_).Set(out, to));
  EXPECT_OK(run.ok() ? run->Wait(std::chrono::seconds(10)) : run.status());
  EXPECT_EQ(to, from_);
  may_end.release();
  waits.join();
  EXPECT_OK(waiting);
  EXPECT_TRUE(came);
}

TEST_P(ForeignRing, NoThreadOfTheRingCallsIt) {
  std::atomic<int> calls = 0, by_ring = 0;
  Graph graph("calls");
  Declare(graph, [&] {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    ++calls;
    by_ring += std::string_view(name).starts_with("ps-stage");
  });
  for (int i = 0; i < 300; ++i) {
    auto run = exec_.Launch(io_);
    ASSERT_OK(run.status());
    while (calls <= i) std::this_thread::yield();  // who waits advances the run too
    ASSERT_OK(run->Wait());
  }
  EXPECT_EQ(by_ring, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, ForeignRing, testing::Range(1, 5));

}  // namespace
}  // namespace penstock::runtime::launch_ring_test
