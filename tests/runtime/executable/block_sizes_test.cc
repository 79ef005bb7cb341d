// Sizes of blocks by occupancy, as far as no GPU is needed: a host device tells an occupancy, what it is asked and what
// it launches is noted, and the host fallback runs.
#include "src/runtime/executable/block_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/status.h"

namespace penstock::runtime::block_sizes_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Size = std::array<uint32_t, 3>;

struct Seen {
  absl::StatusOr<driver::BlockSize> answer = driver::BlockSize{.threads = 96, .at_once = 5};
  std::vector<std::pair<int, uint32_t>> asked;  // the device and the shared bytes
  std::vector<std::pair<Size, Size>> launched;  // grid and block
};

class TellsOccupancy final : public driver::ForwardingDriver {
 public:
  TellsOccupancy(std::unique_ptr<driver::Driver> driver, Seen& seen)
      : ForwardingDriver(std::move(driver)), seen_(seen) {}
  absl::StatusOr<driver::KernelCode> LoadKernel(int, const driver::KernelSource&) override {
    return driver::KernelCode{.block_threads = 512, .shared_bytes = 1000};
  }
  absl::StatusOr<driver::BlockSize> FindBlockSize(int device, const driver::KernelCode&, uint32_t shared) override {
    seen_.asked.emplace_back(device, shared);
    return seen_.answer;
  }
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    seen_.launched.emplace_back(op.grid, op.block);
    return ForwardingDriver::Launch(stream, op);
  }
  absl::StatusOr<int32_t> AddNode(driver::Graph graph, std::span<const int32_t> after, const driver::NodeOp& op,
                                  driver::NodePlace place) override {
    Note(op);
    return ForwardingDriver::AddNode(graph, after, op, place);
  }
  absl::Status SetNode(driver::GraphExec exec, int32_t node, const driver::NodeOp& op) override {
    Note(op);
    return ForwardingDriver::SetNode(exec, node, op);
  }

 private:
  void Note(const driver::NodeOp& op) {
    const auto* const kernel = std::get_if<const driver::KernelOp*>(&op);
    if (kernel != nullptr) seen_.launched.emplace_back((*kernel)->grid, (*kernel)->block);
  }
  Seen& seen_;
};

class BlockSizes : public testing::Test {
 protected:
  static void Nothing(int32_t*) {}
  // Declares a kernel on x.
  static NodeRef Declare(Graph& graph, BufferHandle<int32_t> x, const KernelShape& shape) {
    void (*kernel)(int32_t*) = &Nothing;
    return graph.Kernel(Name("k", "a.cc", 1), kernel, shape, Write(x)).HostFallback([](int32_t*) {});
  }
  absl::StatusOr<Executable> Compiled(const KernelShape& shape, CompileOptions options = {}) {
    Graph graph("g");
    Declare(graph, graph.Buffer<int32_t>("x", 4), shape);
    return runtime_.Compile(graph, options);
  }

  Seen seen_;
  const ScopedDriverHook hook_{{.host_options = nullptr, .wrap = [this](auto driver) {
                                  return std::make_unique<TellsOccupancy>(std::move(driver), seen_);
                                }}};
  Runtime runtime_ = *Runtime::Create({.devices = "host:2"});
};

TEST_F(BlockSizes, AreThoseOfTheOccupancyInBothModes) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    seen_.launched.clear();
    absl::StatusOr<Executable> exec = Compiled(Threads(1000, kOccupancy), {.slots = 1, .mode = mode});
    ASSERT_OK(exec.status());
    ASSERT_OK(exec->Launch()->Wait());
    EXPECT_THAT(seen_.launched, ElementsAre(std::pair(Size{11, 1, 1}, Size{96, 1, 1})));
  }
}

TEST_F(BlockSizes, CoverWhatAParameterSays) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    Graph graph("g");
    const auto n = graph.Param<int>("n", AtMost(1000));
    Declare(graph, graph.Buffer<int32_t>("x", 4), Threads(n, kOccupancy, 64));
    absl::StatusOr<Executable> exec = runtime_.Compile(graph, {.slots = 1, .mode = mode});
    ASSERT_OK(exec.status());
    for (const auto& [value, blocks] : {std::pair(1000, 11u), {97, 2u}, {96, 1u}}) {
      seen_.launched.clear();
      ASSERT_OK(exec->Launch(exec->bindings().Set(n, value))->Wait());
      EXPECT_THAT(seen_.launched, ElementsAre(std::pair(Size{blocks, 1, 1}, Size{96, 1, 1}))) << value;
    }
  }
}

TEST_F(BlockSizes, AreAskedForOnceForEachDeviceAndNumberOfSharedBytes) {
  Graph graph("g");
  const auto x = graph.Buffer<int32_t>("x", 4);
  void (*kernel)(int32_t*) = &Nothing;
  for (int i = 0; i < 6; ++i) {
    graph.Kernel(Name("k", i), kernel, Threads(4, kOccupancy, i < 4 ? 8 : 16), Write(x))
        .HostFallback([](int32_t*) {})
        .On(i % 2);
  }
  ASSERT_OK(runtime_.Compile(graph).status());
  EXPECT_THAT(seen_.asked,
              testing::UnorderedElementsAre(std::pair(0, 8u), std::pair(1, 8u), std::pair(0, 16u), std::pair(1, 16u)));
}

TEST_F(BlockSizes, AreNotAskedForWhereTheyAreDeclared) {
  ASSERT_OK(Compiled(Threads(1000, 128)).status());
  EXPECT_TRUE(seen_.asked.empty());
}

TEST_F(BlockSizes, AreToldByTheReport) {
  const auto notes = [&](const KernelShape& shape) {
    return testing::PrintToString(Compiled(shape, {.mode = Mode::kGraph})->submission_report().notes);
  };
  EXPECT_THAT(notes(Threads(1000, kOccupancy, 32)),
              HasSubstr("node 'k' (a.cc:1) has blocks of 96 threads by its occupancy: with 32 bytes of dynamic shared "
                        "memory each, 5 run on a multiprocessor at once, 480 threads"));
  seen_.answer = driver::BlockSize{};
  EXPECT_THAT(notes(Threads(1000, kOccupancy)),
              HasSubstr("node 'k' (a.cc:1) has blocks of 256 threads: a host device has no occupancy"));
  EXPECT_THAT(notes(Threads(1000, 96)), Not(HasSubstr("blocks")));
}

TEST_F(BlockSizes, FailWithTheNodeAndTheCause) {
  constexpr int64_t kMany = int64_t{1} << 38;
  const auto refusal = [&](const KernelShape& shape) { return Compiled(shape).status().ToString(); };
  EXPECT_EQ(refusal(Threads(4, kOccupancy, 227 << 10)),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1) on host:0: its blocks take 232448 and, declared in it, 1000 "
            "bytes of shared memory; a block of this device can have 232448; use less");
  EXPECT_TRUE(seen_.asked.empty());
  EXPECT_EQ(refusal(Threads(kMany, kOccupancy)),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1) on host:0: it may have 274877906944 threads, and a launch "
            "has at most 206158430112 in blocks of 96, the size by its occupancy; use fewer, or name the size of "
            "blocks");
  seen_.answer = driver::BlockSize{.threads = 0};
  EXPECT_EQ(refusal(Threads(4, kOccupancy, 8)),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1) on host:0: its occupancy is 0: no block of it with 8 bytes "
            "of dynamic shared memory fits on a multiprocessor; use less");
  seen_.answer = absl::InternalError("calculating failed");
  EXPECT_EQ(refusal(Threads(4, kOccupancy)), "INTERNAL: graph 'g' node 'k' (a.cc:1) on host:0: calculating failed");
}

TEST_F(BlockSizes, AreKeptByAStepThatIsDeclaredAgain) {
  GraphCache steps(runtime_);
  const auto step = [&](const KernelShape& shape) {
    const auto run =
        steps.Launch([&](Graph& graph, Bindings&) { Declare(graph, graph.Buffer<int32_t>("x", 4), shape); });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  };
  for (int i = 0; i < 3; ++i) step(Threads(4, kOccupancy));
  EXPECT_EQ(seen_.asked.size(), 1u);
  step(Threads(4));
  EXPECT_EQ(seen_.asked.size(), 1u) << "a declared size is another step";
  EXPECT_EQ(steps.counts().compiled, 2);
}

}  // namespace
}  // namespace penstock::runtime::block_sizes_test
