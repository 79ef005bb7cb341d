// Many threads on one runtime, each with graphs of its own and with executables shared by all: declaring, compiling,
// launching, waiting, looking, cancelling, dropping. Every result is exact. ThreadSanitizer runs it too.
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "tests/support/status.h"

namespace penstock::threads_test {
namespace {

constexpr int kThreads = 16, kRounds = 12, kElements = 48;

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x, int32_t a) const { x(i) += a; }
};

// x += a on a device, then x *= 2 on a worker.
struct Doubling {
  explicit Doubling(const std::string& name) : graph(name) {
    graph.ParallelFor("add", kElements, AddTo{}, ReadWrite(x), a);
    graph
        .Host(
            "double",
            [](std::span<int32_t> all) {
              for (int32_t& v : all) v *= 2;
            },
            ReadWrite(x))
        .Concurrency(kThreads);
  }
  Graph graph;
  BufferHandle<int32_t> x = graph.InOut<int32_t>("x", kElements);
  ParamHandle<int32_t> a = graph.Param<int32_t>("a");
};

// What went wrong first, told by any thread.
class Wrong {
 public:
  void Note(const std::string& what) {
    std::lock_guard lock(mu_);
    if (what_.empty()) what_ = what;
  }
  void Expect(const absl::Status& status, const char* what) {
    if (!status.ok()) Note(what + (": " + status.ToString()));
  }
  std::string what() {
    std::lock_guard lock(mu_);
    return what_;
  }

 private:
  std::mutex mu_;
  std::string what_;
};

class Threads : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Runtime::Create({.devices = "host:2", .workers = 3, .host_device_threads = 1});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }

  // Calls f(thread) on all of them, which begin together.
  template <class F>
  void OnAll(F f) {
    std::latch start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        f(t);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong_.what(), "");
  }

  // One run of x = (first + a) * 2, ended in one of several ways, and its result.
  void RunOnce(Executable& exec, const Doubling& g, Bindings& io, int thread, int round) {
    const int32_t first = thread * 1000, added = round;
    std::vector<int32_t> x(kElements, first);
    absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(g.a, added).Set(g.x, x));
    if (!run.ok()) return wrong_.Expect(run.status(), "Launch");
    switch (round % 4) {
      case 0: break;
      case 1: {
        while (!run->done()) std::this_thread::yield();
        break;
      }
      case 2: {  // ended by a callback; the handle goes first
        std::latch called(1);
        run->OnDone([&](const absl::Status& status) {
          wrong_.Expect(status, "OnDone");
          called.count_down();
        });
        *run = penstock::Run();
        called.wait();
        break;
      }
      default: {  // another handle waits
        const penstock::Run other = *run;
        std::thread waiter([&] { wrong_.Expect(other.Wait(), "the other's Wait"); });
        waiter.join();
        break;
      }
    }
    if (round % 4 != 2) wrong_.Expect(run->Wait(), "Wait");
    for (const int32_t v : x) {
      if (v != (first + added) * 2)
        return wrong_.Note("thread " + std::to_string(thread) + " read " + std::to_string(v));
    }
  }

  std::optional<Runtime> runtime_;
  Wrong wrong_;
};

TEST_F(Threads, DeclareCompileAndRunTheirOwnGraphs) {
  OnAll([&](int t) {
    for (int r = 0; r < 4; ++r) {
      const Doubling g("g" + std::to_string(t));
      auto exec = runtime_->Compile(g.graph, {.slots = 1 + r % 2, .device = t % 2});
      if (!exec.ok()) return wrong_.Expect(exec.status(), "Compile");
      Bindings io = exec->bindings();
      for (int i = 0; i < 3; ++i) RunOnce(*exec, g, io, t, r + i);
    }
  });
}

TEST_F(Threads, LaunchExecutablesTheyShareWithBindingsOfTheirOwn) {
  const Doubling g[2] = {Doubling("even"), Doubling("odd")};
  Executable shared[2];
  for (int e = 0; e < 2; ++e) {
    auto exec = runtime_->Compile(g[e].graph, {.slots = 3, .device = e});
    ASSERT_OK(exec.status());
    shared[e] = *std::move(exec);
  }
  OnAll([&](int t) {
    Bindings io[2] = {shared[0].bindings(), shared[1].bindings()};
    for (int r = 0; r < kRounds; ++r) RunOnce(shared[(t + r) % 2], g[(t + r) % 2], io[(t + r) % 2], t, r);
  });
  EXPECT_EQ(shared[0].launches() + shared[1].launches(), kThreads * kRounds);
}

// A run that is cancelled ends either so or well, and then with its result; what is launched after it is not disturbed.
TEST_F(Threads, CancelWhatOthersRunBeside) {
  const Doubling g("g");
  auto exec = runtime_->Compile(g.graph, {.slots = 4});
  ASSERT_OK(exec.status());
  std::atomic<int> cancelled{0};
  OnAll([&](int t) {
    Bindings io = exec->bindings();
    for (int r = 0; r < kRounds; ++r) {
      if (t % 2 == 0) {
        RunOnce(*exec, g, io, t, r);
        continue;
      }
      std::vector<int32_t> x(kElements, 1);
      absl::StatusOr<penstock::Run> run = exec->Launch(io.Set(g.a, r).Set(g.x, x));
      if (!run.ok()) return wrong_.Expect(run.status(), "Launch");
      run->Cancel();
      const absl::Status ended = run->Wait();
      if (ended.code() == absl::StatusCode::kCancelled) {
        cancelled.fetch_add(1);
      } else if (!ended.ok() || x[0] != (1 + r) * 2) {
        wrong_.Note("a cancelled run: " + ended.ToString() + ", " + std::to_string(x[0]));
      }
    }
  });
  std::cout << cancelled.load() << " of " << kThreads / 2 * kRounds << " runs were cancelled in time\n";
}

TEST_F(Threads, DropEverythingWhileOthersRun) {
  const Doubling g("g");
  std::atomic<int> done{0};
  OnAll([&](int t) {
    for (int r = 0; r < 4; ++r) {
      auto exec = runtime_->Compile(g.graph, {.slots = 2});
      if (!exec.ok()) return wrong_.Expect(exec.status(), "Compile");
      auto x = std::make_shared<std::vector<int32_t>>(kElements, t);
      Bindings io = exec->bindings();
      auto run = exec->Launch(io.Set(g.a, 1).Set(g.x, std::span<int32_t>(*x), x));
      if (!run.ok()) return wrong_.Expect(run.status(), "Launch");
      run->OnDone([&done, x, t](const absl::Status& status) { done += status.ok() && (*x)[0] == (t + 1) * 2; });
    }  // bindings, run and executable go, in flight
  });
  ASSERT_OK(runtime_->Shutdown());
  EXPECT_EQ(done.load(), kThreads * 4);
}

}  // namespace
}  // namespace penstock::threads_test
