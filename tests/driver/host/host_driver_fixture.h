// A host driver of two devices with its memory, latches that hold its threads, and bounded waits.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/driver/host/host_driver.h"
#include "src/host/event_count.h"
#include "tests/support/latch.h"
#include "tests/support/status.h"

namespace penstock::driver::host {

inline constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

// Code of a kernel whose callable is a Latch.
inline absl::Status Arrive(void* latch, void* const* /*argv*/) {
  static_cast<Latch*>(latch)->Arrive();
  return absl::OkStatus();
}

// A callable that counts itself, meets the test at a latch and may fail.
struct Twin {
  Latch* latch = nullptr;
  absl::Status result;
  std::atomic<int> calls{0};
  Crowd crowd;
  static absl::Status Call(void* self, void* const* /*argv*/) {
    auto* const fallback = static_cast<Twin*>(self);
    ++fallback->calls;
    fallback->crowd.Enter();
    if (fallback->latch) fallback->latch->Arrive();
    fallback->crowd.Leave();
    return fallback->result;
  }
};

// A callable that notes its number. For a device of one compute thread.
struct Runner {
  std::vector<int>* seen = nullptr;
  int number = 0;
  static absl::Status Call(void* self, void* const* /*argv*/) {
    const auto* const runner = static_cast<Runner*>(self);
    runner->seen->push_back(runner->number);
    return absl::OkStatus();
  }
};

class HostDriverTest : public testing::Test {
 protected:
  void SetUp() override { Make({.devices = 2, .threads_per_device = 3, .memory_bytes = 64 << 20}); }
  void TearDown() override {
    for (Latch& latch : latches_) latch.Open();
    driver_.reset();
  }
  void Make(HostDriverOptions options) {
    options.event_count = &event_count_;
    absl::StatusOr<std::unique_ptr<Driver>> made = CreateHostDriver(options);
    ASSERT_TRUE(made.ok()) << made.status();
    driver_ = *std::move(made);
    stream_ = *driver_->CreateStream(0, 0);
  }

  template <class T = std::byte>
  T* Device(size_t count, int device = 0) {
    return static_cast<T*>(driver_->AllocateDevice(device, count * sizeof(T)).value());
  }
  template <class T = std::byte>
  T* Pinned(size_t count) {
    return static_cast<T*>(driver_->AllocatePinned(count * sizeof(T)).value());
  }
  // False where the work has not ended after a minute.
  bool Finish(Stream stream) {
    const Event event = *driver_->CreateEvent(0, false);
    EXPECT_TRUE(driver_->Record(event, stream).ok());
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    bool done = false;
    while (!done && std::chrono::steady_clock::now() < until) {
      const uint64_t ticket = event_count_.ticket();
      done = driver_->Query(event).value();
      if (!done) event_count_.Wait(ticket, until);
    }
    driver_->DestroyEvent(event);
    return done;
  }
  template <class T>
  std::vector<T> Download(const T* from, size_t count) {
    T* const staged = Pinned<T>(count);
    EXPECT_TRUE(
        driver_
            ->Copy(stream_, {.kind = CopyKind::kDeviceToHost, .dst = staged, .src = from, .width = count * sizeof(T)})
            .ok());
    EXPECT_TRUE(Finish(stream_));
    std::vector<T> out(staged, staged + count);
    driver_->FreePinned(staged);
    return out;
  }
  Latch& NewLatch() { return latches_.emplace_back(); }
  static KernelOp CallOf(Latch& latch) { return {.call = &Arrive, .callable = &latch}; }
  static KernelOp CallOf(Twin& fallback, OpTag tag = {}) {
    return {.call = &Twin::Call, .callable = &fallback, .tag = tag};
  }
  static FillOp FillOf(void* to, size_t bytes, int value) {
    FillOp op{.dst = to, .count = bytes};
    op.pattern[0] = std::byte(value);
    return op;
  }

  penstock::host::EventCount event_count_;
  std::deque<Latch> latches_;
  std::unique_ptr<Driver> driver_;
  Stream stream_;
};

}  // namespace penstock::driver::host
