// What the tests of States share: a runtime on one host device with threads to spare, small graphs, and meeting points.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "penstock/penstock.h"

namespace penstock {

#define ASSERT_OK(expr) ASSERT_EQ((expr), absl::OkStatus())
#define EXPECT_OK(expr) EXPECT_EQ((expr), absl::OkStatus())

// A count that threads wait for. Waits give up after a long while, so that a broken order fails instead of hanging.
class Meeting {
 public:
  int Arrive() {
    std::lock_guard<std::mutex> lock(mu_);
    cv_.notify_all();
    return ++count_;
  }
  bool Await(int count) {
    std::unique_lock<std::mutex> lock(mu_);
    return cv_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ >= count; });
  }
  int count() {
    std::lock_guard<std::mutex> lock(mu_);
    return count_;
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  int count_ = 0;
};

inline absl::Status Met(bool met) { return met ? absl::OkStatus() : absl::InternalError("nobody came"); }

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int64_t* x, int64_t* sum) const { sum[i] += x[i]; }
};
struct CopyOut {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int64_t* from, int64_t* to) const { to[i] = from[i]; }
};

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
