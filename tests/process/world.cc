// What can be in flight when a process ends. See world.h.
#include "tests/process/world.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "penstock/status_macros.h"
#include "tests/process/must.h"
#include "tests/support/device_words.h"
#include "tests/support/kernels.h"

namespace penstock::test_support {
namespace {

constexpr int64_t kN = 256;

// Whether a held kernel should end by itself: a GPU is not held for ever.
PENSTOCK_HOST_DEVICE inline bool GiveUp([[maybe_unused]] int64_t& since) {
#if defined(__CUDA_ARCH__)
  if (since == 0) since = Nanoseconds();
  return Nanoseconds() - since > int64_t{20} * 1000 * 1000 * 1000;
#else
  std::this_thread::yield();
  return false;
#endif
}

struct Hold {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, HoldWords* words, int32_t* x) const {
    StoreWord(&words->arrived, 1);
    int64_t since = 0;
    while (LoadWord(&words->released) == 0 && !GiveUp(since)) {
    }
    x[0] += 1;
  }
};

}  // namespace

World::World(const std::string& devices)
    : runtime_(Must(Runtime::Create({.devices = devices, .workers = 2, .host_device_threads = 2}))),
      words_(Must(runtime_->MakeHostBuffer<HoldWords>(1))),
      x_(graph_.InOut<int32_t>("x", kN)),
      hx_(kN) {
  words_[0] = {};
  graph_.ParallelFor("add", kN, AddOne{}, ReadWrite(x_));
  add_ = Must(runtime_->Compile(graph_));
}

absl::Status World::RunOnce() {
  std::vector<int32_t> numbers(kN, 41);
  Bindings io = add_.bindings();
  PENSTOCK_ASSIGN_OR_RETURN(const penstock::Run run, add_.Launch(io.Set(x_, numbers)));
  PENSTOCK_RETURN_IF_ERROR(run.Wait());
  return numbers == std::vector<int32_t>(kN, 42) ? absl::OkStatus() : absl::InternalError("wrong numbers");
}

void World::Start(std::string_view what) {
  if (what == "nothing") ended_ = RunOnce();
  if (what == "kernel") StartKernel();
  if (what == "host node") StartHostNode();
  if (what == "launching") thread_ = std::thread([this] { ended_ = KeepLaunching(); });
  if (what == "pipeline") thread_ = std::thread([this] { ended_ = KeepPiping(); });
  if (thread_.joinable()) started_.wait(false);
}

void World::StartKernel() {
  Graph graph("held");
  auto x = graph.InOut<int32_t>("x", kN);
  graph.ParallelFor("hold", 1, Hold{}, words_.data(), ReadWrite(x));
  graph.ParallelFor("add", kN, AddOne{}, ReadWrite(x));
  held_ = Must(runtime_->Compile(graph));
  Bindings io = held_.bindings();
  run_ = Must(held_.Launch(io.Set(x, hx_)));
  while (LoadWord(&words_[0].arrived) == 0) std::this_thread::yield();
}

void World::StartHostNode() {
  Graph graph("held");
  auto x = graph.InOut<int32_t>("x", kN);
  graph.Host(
      "hold",
      [this](std::span<int32_t>) {
        started_ = true;
        started_.notify_all();
        released_.wait(false);
      },
      ReadWrite(x));
  graph.ParallelFor("add", kN, AddOne{}, ReadWrite(x));
  held_ = Must(runtime_->Compile(graph));
  Bindings io = held_.bindings();
  run_ = Must(held_.Launch(io.Set(x, hx_)));
  started_.wait(false);
}

// Two runs in flight, each with memory of its own.
absl::Status World::KeepLaunching() {
  Executable executable = add_;
  std::vector<int32_t> numbers[2] = {std::vector<int32_t>(kN), std::vector<int32_t>(kN)};
  penstock::Run runs[2];
  Bindings io = executable.bindings();
  for (int64_t i = 0;; ++i) {
    if (i >= 2) PENSTOCK_RETURN_IF_ERROR(runs[i % 2].Wait());
    absl::StatusOr<penstock::Run> run = executable.Launch(io.Set(x_, numbers[i % 2]));
    if (!run.ok()) {
      (void)runs[(i + 1) % 2].Wait();
      return run.status();
    }
    runs[i % 2] = *std::move(run);
    if (i == 8) {
      started_ = true;
      started_.notify_all();
    }
  }
}

absl::Status World::KeepPiping() {
  using Numbers = std::vector<int32_t>;
  int64_t sunk = 0;
  absl::Status first;
  Stages<Numbers> stages;
  stages.Host("before", [](Numbers&) {});
  stages.Run("add", add_, [&](Item<Numbers>& item) { item.Set(x_, item.value()); });
  stages.Host("after", [](Numbers&) {});
  PENSTOCK_ASSIGN_OR_RETURN(Pipeline<Numbers> pipeline, Pipeline<Numbers>::Create(std::move(stages)));
  const auto source = [&]() -> std::optional<Numbers> {
    if (released_) return std::nullopt;
    return Numbers(kN);
  };
  PENSTOCK_RETURN_IF_ERROR(pipeline.Run(source, [&](Item<Numbers>& item) {
    if (first.ok()) first = item.status();
    if (++sunk != 8) return;
    started_ = true;
    started_.notify_all();
  }));
  return first;
}

void World::Release() {
  StoreWord(&words_[0].released, 1);
  released_ = true;
  released_.notify_all();
}

absl::Status World::Join() {
  if (thread_.joinable()) thread_.join();
  return ended_;
}

}  // namespace penstock::test_support
