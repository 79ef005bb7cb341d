#include "tests/driver/cuda/gpu_test.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "src/base/status.h"
#include "tests/support/environment.h"

namespace penstock::driver {

void GpuTest::SetUp() {
  const absl::StatusOr<int> count = CudaDeviceCount();
  if (!count.ok() || *count < needed_) {
    const std::string reason = "needs " + std::to_string(needed_) + " CUDA device(s): " +
                               (count.ok() ? "there are " + std::to_string(*count) : count.status().ToString());
    if (RequiredDevices() >= needed_) FAIL() << reason;
    GTEST_SKIP() << reason;
  }
  absl::StatusOr<std::unique_ptr<Driver>> driver = CreateCudaDriver({});
  ASSERT_TRUE(driver.ok()) << driver.status();
  driver_ = *std::move(driver);
  token_ = driver_->MakeCurrent(0);
  stream_ = NewStream();
}

void GpuTest::TearDown() {
  if (driver_ == nullptr) return;
  for (const auto& [device, stream] : streams_) EXPECT_TRUE(Finish(stream).ok()) << "a stream of device " << device;
  for (const Event event : events_) driver_->DestroyEvent(event);
  for (const auto& [device, stream] : streams_) driver_->DestroyStream(stream);
  for (const auto& [device, memory] : device_memory_) driver_->FreeDevice(device, memory);
  for (void* memory : pinned_memory_) driver_->FreePinned(memory);
  driver_->RestoreCurrent(token_);
}

std::byte* GpuTest::Device(size_t bytes, int device) {
  const absl::StatusOr<void*> memory = driver_->AllocateDevice(device, bytes);
  if (!memory.ok()) {
    ADD_FAILURE() << memory.status();
    return nullptr;
  }
  device_memory_.emplace_back(device, *memory);
  return static_cast<std::byte*>(*memory);
}

std::byte* GpuTest::Pinned(size_t bytes) {
  const absl::StatusOr<void*> memory = driver_->AllocatePinned(bytes);
  if (!memory.ok()) {
    ADD_FAILURE() << memory.status();
    return nullptr;
  }
  pinned_memory_.push_back(*memory);
  return static_cast<std::byte*>(*memory);
}

Stream GpuTest::NewStream(int device) {
  const absl::StatusOr<Stream> stream = driver_->CreateStream(device, 0);
  EXPECT_TRUE(stream.ok()) << stream.status();
  streams_.emplace_back(device, stream.value_or(Stream{}));
  return streams_.back().second;
}

Event GpuTest::NewEvent(int device) {
  const absl::StatusOr<Event> event = driver_->CreateEvent(device, false);
  EXPECT_TRUE(event.ok()) << event.status();
  events_.push_back(event.value_or(Event{}));
  return events_.back();
}

absl::Status GpuTest::Finish(Stream stream) {
  const auto ours = [&](const auto& entry) { return entry.second == stream; };
  const auto found = std::find_if(streams_.begin(), streams_.end(), ours);
  if (found == streams_.end()) return absl::InternalError("not a stream of this test");
  const Event event = NewEvent(found->first);
  if (absl::Status status = driver_->Record(event, stream); !status.ok()) return status;
  return Finish(event);
}

absl::Status GpuTest::Finish(Event event) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < give_up) {
    const absl::StatusOr<bool> done = driver_->Query(event);
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
    std::this_thread::yield();
  }
  return absl::DeadlineExceededError("the work did not end");
}

void GpuTest::Upload(std::byte* device, const std::vector<std::byte>& from) {
  std::byte* const pinned = Pinned(from.size());
  std::copy(from.begin(), from.end(), pinned);
  ASSERT_TRUE(driver_->Copy(stream_, {.dst = device, .src = pinned, .width = from.size()}).ok());
  ASSERT_TRUE(Finish(stream_).ok());
}

std::vector<std::byte> GpuTest::Download(const std::byte* device, size_t bytes) {
  std::byte* const pinned = Pinned(bytes);
  EXPECT_TRUE(
      driver_->Copy(stream_, {.kind = CopyKind::kDeviceToHost, .dst = pinned, .src = device, .width = bytes}).ok());
  EXPECT_TRUE(Finish(stream_).ok());
  return std::vector<std::byte>(pinned, pinned + bytes);
}

std::vector<std::byte> Noise(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> noise(bytes);
  for (std::byte& b : noise) b = static_cast<std::byte>(random() % 255 + 1);
  return noise;
}

}  // namespace penstock::driver
