// What only a loaded kernel tells of its limits: Compile refuses shapes over them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"

namespace penstock::runtime::kernel_limits_test {
namespace {

// Every kernel has 1000 bytes of static shared memory, and blocks of at most 128 threads.
class SmallKernels : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  absl::StatusOr<driver::KernelCode> LoadKernel(int, const driver::KernelSource&) override {
    return driver::KernelCode{.block_threads = 128, .shared_bytes = 1000};
  }
};

template <class Declare>
std::string RefusalOf(Declare declare) {
  const ScopedDriverHook hook(
      {.host_options = nullptr, .wrap = [](auto driver) { return std::make_unique<SmallKernels>(std::move(driver)); }});
  Runtime runtime = *Runtime::Create({.devices = "host:1"});
  Graph graph("g");
  declare(graph, graph.InOut<int32_t>("x", 4));
  return runtime.Compile(graph).status().ToString();
}
std::string Refusal(const KernelShape& shape) {
  return RefusalOf([&](Graph& graph, BufferHandle<int32_t> x) {
    void (*kernel)(int32_t*) = [](int32_t*) {};
    graph.Kernel(Name("k", "a.cc", 1), kernel, shape, ReadWrite(x)).HostFallback([](int32_t*) {});
  });
}
std::string Refusal(const TaskOptions& options) {
  return RefusalOf([&](Graph& graph, BufferHandle<int32_t> x) {
    graph.Task(Name("t", "a.cc", 1), options, [](const Block&, int32_t*) {}, ReadWrite(x));
  });
}

TEST(KernelLimits, OfALoadedKernelAreCheckedByCompile) {
  constexpr uint32_t kMost = (227 << 10) - 1000;
  EXPECT_EQ(Refusal(Threads(4, 128, kMost)), "OK");
  EXPECT_EQ(
      Refusal(Threads(4, 129)),
      "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1) on host:0: its blocks have 129 threads; this kernel can have "
      "128, for its registers or launch bounds; use fewer, or more blocks");
  EXPECT_EQ(Refusal(Threads(4, 128, kMost + 1)),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:1) on host:0: its blocks take 231449 and, declared in it, 1000 "
            "bytes of shared memory; a block of this device can have 232448; use less");
}

TEST(KernelLimits, OfATaskAreCheckedByCompile) {
  constexpr uint32_t kMost = (227 << 10) - 1000;
  EXPECT_EQ(Refusal(TaskOptions{.threads = 128, .shared_bytes = kMost}), "OK");
  EXPECT_EQ(Refusal(TaskOptions{.threads = 129}),
            "INVALID_ARGUMENT: graph 'g' node 't' (a.cc:1) on host:0: its block has 129 threads; this kernel can have "
            "128, for its registers or launch bounds; use fewer");
  EXPECT_EQ(Refusal(TaskOptions{.threads = 128, .shared_bytes = kMost + 1}),
            "INVALID_ARGUMENT: graph 'g' node 't' (a.cc:1) on host:0: its block takes 231449 and, declared in it, 1000 "
            "bytes of shared memory; a block of this device can have 232448; use less");
}

}  // namespace
}  // namespace penstock::runtime::kernel_limits_test
