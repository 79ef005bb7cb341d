// A scheduler whose tasks are functions of the test's, with latches that hold them and bounded waits.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "src/driver/host/scheduler.h"
#include "src/host/event_count.h"
#include "tests/support/latch.h"

namespace penstock::driver::host {

class FunctionTask final : public Task {
 public:
  FunctionTask(std::function<absl::Status(int)> run, int chunk_count, OpTag op_tag, TrySemaphore* op_gate)
      : Task(op_tag, chunk_count, op_gate), run_(std::move(run)) {}
  absl::Status Run(int chunk) override { return run_(chunk); }

 private:
  std::function<absl::Status(int)> run_;
};

struct TaskOptions {
  EngineKind engine = EngineKind::kCompute;
  int chunks = 1;
  TrySemaphore* gate = nullptr;
  RunFault* fault = nullptr;
};

class SchedulerTest : public testing::Test {
 protected:
  void SetUp() override { Make(1, 4); }
  void TearDown() override { Drain(); }
  void Make(int devices, int threads) { scheduler_ = std::make_unique<Scheduler>(devices, threads, &event_count_); }
  void Drain() {
    for (Latch& latch : latches_) latch.Open();
    scheduler_.reset();
  }

  // Lives as long as the scheduler and is opened before that ends.
  Latch& NewLatch() { return latches_.emplace_back(); }
  Stream NewStream(int device = 0, int priority = 0) { return *scheduler_->CreateStream(device, priority); }
  Event NewEvent(int device = 0) { return *scheduler_->CreateEvent(device, true); }

  void SubmitStatus(Stream stream, std::function<absl::Status(int)> run, TaskOptions options = {}) {
    const absl::Status status = scheduler_->Submit(
        stream, options.engine,
        std::make_unique<FunctionTask>(std::move(run), options.chunks, OpTag{options.fault, 7}, options.gate));
    ASSERT_TRUE(status.ok()) << status;
  }
  void Submit(Stream stream, std::function<void()> run, TaskOptions options = {}) {
    SubmitStatus(
        stream,
        [run = std::move(run)](int) {
          run();
          return absl::OkStatus();
        },
        options);
  }
  // A task that waits on the latch; returns when it does.
  void Hold(Stream stream, Latch& latch, TaskOptions options = {}) {
    const int before = latch.arrived();
    Submit(stream, [&latch] { latch.Arrive(); }, options);
    ASSERT_TRUE(latch.AwaitArrived(before + 1));
  }
  void Record(Event event, Stream stream) { ASSERT_TRUE(scheduler_->Record(event, stream).ok()); }
  void Wait(Stream stream, Event event) { ASSERT_TRUE(scheduler_->Wait(stream, event).ok()); }
  bool IsComplete(Event event) { return scheduler_->Query(event).value(); }

  // False where the event is not complete after a minute.
  bool Finish(Event event) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (true) {
      const uint64_t ticket = event_count_.ticket();
      if (IsComplete(event)) return true;
      if (std::chrono::steady_clock::now() >= until) return false;
      event_count_.Wait(ticket, until);
    }
  }
  bool Finish(Stream stream, int device = 0) {
    const Event event = NewEvent(device);
    Record(event, stream);
    const bool finished = Finish(event);
    scheduler_->DestroyEvent(event);
    return finished;
  }

  penstock::host::EventCount event_count_;
  std::deque<Latch> latches_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace penstock::driver::host
