// A fixture for tests on real CUDA devices: a driver, a stream, memory that is given back, and a bounded wait.
//
// Where there are too few devices the test skips and says why; PENSTOCK_REQUIRE_GPU=n makes a skip for want of up to n
// devices a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "src/driver/cuda/cuda_driver.h"

namespace penstock::driver {

class GpuTest : public ::testing::Test {
 protected:
  explicit GpuTest(int devices_needed = 1) : needed_(devices_needed) {}
  void SetUp() override;
  void TearDown() override;

  // Device memory of device `device`, or pinned memory, until the test ends.
  std::byte* Device(size_t bytes, int device = 0);
  std::byte* Pinned(size_t bytes);
  Stream NewStream(int device = 0);
  Event NewEvent(int device = 0);

  // Waits until the stream's work is done. Gives up after 20 s, as a guard against hanging, with DeadlineExceeded.
  absl::Status Finish(Stream stream);
  absl::Status Finish(Event event);
  // Copies between pageable memory and the device, through pinned memory, and waits.
  void Upload(std::byte* device, const std::vector<std::byte>& from);
  std::vector<std::byte> Download(const std::byte* device, size_t bytes);

  std::unique_ptr<Driver> driver_;
  Stream stream_;

 private:
  const int needed_;
  int token_ = 0;
  std::vector<std::pair<int, void*>> device_memory_;
  std::vector<void*> pinned_memory_;
  std::vector<std::pair<int, Stream>> streams_;
  std::vector<Event> events_;
};

// For tests of two devices.
class TwoGpuTest : public GpuTest {
 protected:
  TwoGpuTest() : GpuTest(2) {}
};

// Bytes that differ from place to place and between seeds, never 0.
std::vector<std::byte> Noise(size_t bytes, uint32_t seed);

}  // namespace penstock::driver
