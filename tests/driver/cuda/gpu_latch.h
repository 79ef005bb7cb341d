// A kernel that a test holds: it says that it runs, then waits until the test lets it go.
//
// One thread on the device polls a word in mapped pinned memory, at most 10 s; a test that finds timed_out() has failed
// to let go. For tests of overlap: what must not depend on the kernel's end can be waited for while it is held.
#pragma once

#include <cstdint>

#include "src/driver/driver.h"

namespace penstock::driver {

class GpuLatch {
 public:
  explicit GpuLatch(Driver& driver);
  ~GpuLatch();
  GpuLatch(const GpuLatch&) = delete;
  GpuLatch& operator=(const GpuLatch&) = delete;

  // Queues the kernel. Once.
  absl::Status Hold(Stream stream);
  // Queues a kernel that notes whether the latch was open when it began.
  absl::Status Probe(Stream stream);
  // Waits until the held kernel runs on the device; false if it has not begun after 20 s.
  bool AwaitRunning() const;
  void Release();

  bool timed_out() const;
  enum class Seen : uint32_t { kNothing = 0, kHeld = 1, kReleased = 2 };
  Seen probe() const;

 private:
  struct Words;
  Driver& driver_;
  Words* words_ = nullptr;
  const void* hold_ = nullptr;
  const void* probe_ = nullptr;
};

}  // namespace penstock::driver
