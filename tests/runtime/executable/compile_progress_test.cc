// CompileOptions::progress: what a Compile that takes long tells, and how it ends if it is told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/mode_scope.h"
#include "tests/support/status.h"

namespace penstock::compile_progress_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kWords = 100'000;  // staged by the ring

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { ++x[i]; }
};

// Each look at the clock finds a second more, or always the same time.
runtime::DriverHook WithClock(std::chrono::seconds step) {
  runtime::DriverHook hook;
  hook.progress_clock = [step, now = std::chrono::steady_clock::time_point{}]() mutable { return now += step; };
  return hook;
}

class CompileProgress : public testing::Test {
 protected:
  CompileProgress() {
    const auto x = graph_.InOut<int32_t>("x", kWords);
    graph_.ParallelFor("add", kWords, AddOne{}, ReadWrite(x));
    graph_.Repeat("again", 3, [&](Graph& in) { in.ParallelFor("in the body", kWords, AddOne{}, ReadWrite(x)); });
    x_ = x;
  }
  CompileOptions Telling(ProgressFunction progress) {
    return {.slots = 2, .mode = Mode::kGraph, .constructs = Lowering::kDevice, .progress = std::move(progress)};
  }
  void ExpectRuns(Executable& exec) {
    std::vector<int32_t> words(kWords, 1);
    ASSERT_OK(exec.Launch(exec.bindings().Set(x_, words))->Wait());
    EXPECT_EQ(words[kWords - 1], 5);
  }

  const ModeScope mode_{""};
  const runtime::ScopedDriverHook hook_{WithClock(std::chrono::seconds(1))};
  Graph graph_{"long"};
  BufferHandle<int32_t> x_;
  Runtime runtime_ = *Runtime::Create({.devices = "host", .workers = 2, .host_device_threads = 1});
};

// The body of the loop is compiled as the graph is.
TEST_F(CompileProgress, IsToldOfEachStep) {
  std::vector<std::string> steps;
  const std::thread::id caller = std::this_thread::get_id();
  int64_t last = -1;
  auto exec = runtime_.Compile(graph_, Telling([&](const Progress& at) {
                                 EXPECT_EQ(std::this_thread::get_id(), caller);
                                 EXPECT_LT(at.done, at.total);
                                 if (steps.empty() || steps.back() != at.what) {
                                   steps.emplace_back(at.what);
                                   last = -1;
                                 }
                                 EXPECT_TRUE(at.done == last + 1 || at.done == 0) << at.what;
                                 last = at.done;
                                 return true;
                               }));
  ASSERT_OK(exec.status());
  EXPECT_EQ(steps.front(), "graph 'long': planning");
  EXPECT_EQ(steps.back(), "graph 'long': making CUDA graphs");
  EXPECT_THAT(steps, testing::IsSupersetOf({std::string("graph 'long': loading kernels"),
                                            std::string("graph 'long': making slots"),
                                            std::string("graph 'long': pinning memory to stage copies in")}));
  ExpectRuns(*exec);
}

TEST_F(CompileProgress, EndsCompileWhereverItSaysSo) {
  int64_t all = 0;
  ASSERT_OK(runtime_.Compile(graph_, Telling([&](const Progress&) { return ++all > 0; })).status());
  for (int64_t end = 1; end <= all; ++end) {
    int64_t told = 0;
    const absl::Status ended =
        runtime_.Compile(graph_, Telling([&](const Progress&) { return ++told < end; })).status();
    EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled) << end;
    EXPECT_THAT(std::string(ended.message()), HasSubstr("graph 'long': CompileOptions::progress returned false"));
    EXPECT_EQ(told, end);
  }
  auto exec = runtime_.Compile(graph_);
  ASSERT_OK(exec.status());
  ExpectRuns(*exec);
}

TEST_F(CompileProgress, ThatThrowsIsTheFailureOfCompile) {
  const auto throws = [](const Progress&) -> bool { throw std::runtime_error("boom"); };
  const absl::Status ended = runtime_.Compile(graph_, Telling(throws)).status();
  EXPECT_EQ(ended.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("graph 'long': CompileOptions::progress threw: boom"));
}

// Nothing is locked meanwhile.
TEST_F(CompileProgress, MayUseTheRuntime) {
  int compiled = 0;
  auto exec = runtime_.Compile(graph_, Telling([&](const Progress&) {
                                 Graph other("other");
                                 other.Fill("fill", other.Output<int32_t>("y", 4, kDevice), 1);
                                 compiled += runtime_.Compile(other).ok() ? 1 : 0;
                                 return runtime_.pinned_memory().budget > 0;
                               }));
  ASSERT_OK(exec.status());
  EXPECT_GT(compiled, 0);
}

TEST_F(CompileProgress, IsToldInAGraphCacheToo) {
  std::vector<std::string> steps;
  GraphCache cache(runtime_, {.compile = {.progress = [&](const Progress& at) {
                                steps.emplace_back(at.what);
                                return true;
                              }}});
  std::vector<int32_t> words(8, 1);
  for (int r = 0; r < 2; ++r) {
    auto run = cache.Launch([&](Graph& graph, Bindings& io) {
      const auto x = graph.InOut<int32_t>("x", 8);
      graph.ParallelFor("step", 8, AddOne{}, ReadWrite(x));
      io.Set(x, words);
    });
    ASSERT_OK(run->Wait());
    if (r == 0) {
      EXPECT_FALSE(steps.empty());
    } else {
      EXPECT_THAT(steps, IsEmpty());
    }
    steps.clear();
  }
}

TEST(CreateProgress, IsToldOfDevicesAndMayEndCreate) {
  const runtime::ScopedDriverHook hook(WithClock(std::chrono::seconds(1)));
  std::vector<std::string> steps;
  RuntimeOptions options{.devices = "host:2", .workers = 2, .host_device_threads = 1};
  options.progress = [&](const Progress& at) {
    steps.emplace_back(at.what);
    return steps.size() < 2;
  };
  ASSERT_OK(Runtime::Create(options).status());
  EXPECT_THAT(steps, ElementsAre("opening host devices"));
  const absl::Status ended = Runtime::Create(options).status();
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("RuntimeOptions::progress returned false"));
}

TEST(CompileProgressOfShortCalls, IsNotTold) {
  const runtime::ScopedDriverHook hook(WithClock(std::chrono::seconds(0)));
  Runtime runtime = *Runtime::Create({.devices = "host", .workers = 2, .host_device_threads = 1});
  Graph graph("short");
  graph.Fill("fill", graph.Output<int32_t>("y", 4, kDevice), 1);
  int told = 0;
  ASSERT_OK(runtime.Compile(graph, {.progress = [&](const Progress&) { return ++told > 0; }}).status());
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace penstock::compile_progress_test
