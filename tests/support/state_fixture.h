// What the tests of States share: a runtime on one host device with threads to spare.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "penstock/penstock.h"
#include "tests/support/kernels.h"
#include "tests/support/rendezvous.h"
#include "tests/support/status.h"

namespace penstock {

class StateFixture : public testing::Test {
 protected:
  explicit StateFixture(const std::string& devices = "host", int threads = 4) {
    auto made = Runtime::Create({.devices = devices, .workers = 4, .host_device_threads = threads});
    if (made.ok()) runtime_.emplace(*std::move(made));
  }
  void SetUp() override { ASSERT_TRUE(runtime_.has_value()); }

  State<int64_t> Made(Name name, int64_t n, std::span<const int64_t> initial = {}, StateOptions options = {}) {
    auto state = runtime_->MakeState<int64_t>(std::move(name), n, initial, options);
    EXPECT_OK(state.status());
    return state.ok() ? *std::move(state) : State<int64_t>();
  }
  Executable Compiled(const Graph& graph, CompileOptions options = {}) {
    auto executable = runtime_->Compile(graph, std::move(options));
    EXPECT_OK(executable.status());
    return executable.ok() ? *std::move(executable) : Executable();
  }
  static std::vector<int64_t> Contents(const State<int64_t>& state, int64_t n) {
    std::vector<int64_t> contents(static_cast<size_t>(n), -1);
    EXPECT_OK(state.Read(contents));
    return contents;
  }

  std::optional<Runtime> runtime_;
};

// A node whose work is a callable that runs on a host device's compute threads.
template <class F, class... A>
auto Twin(Graph& graph, Name name, F f, A... accesses) {
  return graph.Launch(std::move(name), [](LaunchContext&, auto...) {}, accesses...).HostFallback(std::move(f));
}

}  // namespace penstock
