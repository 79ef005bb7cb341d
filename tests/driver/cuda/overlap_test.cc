// What overlaps and what does not, by rendezvous: while the test holds a kernel, other streams' copies end, and work
// behind the kernel does not begin.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/driver/cuda/gpu_latch.h"
#include "tests/driver/cuda/gpu_test.h"

namespace penstock::driver::overlap_test {
namespace {

using OverlapTest = GpuTest;
constexpr size_t kBytes = 4 << 20;

TEST_F(OverlapTest, UploadAndDownloadEndWhileAKernelIsHeldAndWorkAfterItWaits) {
  const std::vector<std::byte> last = Noise(kBytes, 1), next = Noise(kBytes, 2);
  std::byte *const previous = Device(kBytes), *const coming = Device(kBytes);
  std::byte *const to = Pinned(kBytes), *const from = Pinned(kBytes);
  Upload(previous, last);
  std::copy(next.begin(), next.end(), from);
  const Stream up = NewStream(), down = NewStream();
  const Event behind = NewEvent();

  GpuLatch latch(*driver_);
  ASSERT_TRUE(latch.Hold(stream_).ok());
  ASSERT_TRUE(latch.Probe(stream_).ok());
  ASSERT_TRUE(driver_->Record(behind, stream_).ok());
  ASSERT_TRUE(latch.AwaitRunning());

  ASSERT_TRUE(driver_->Copy(up, {.dst = coming, .src = from, .width = kBytes}).ok());
  ASSERT_TRUE(driver_->Copy(down, {.kind = CopyKind::kDeviceToHost, .dst = to, .src = previous, .width = kBytes}).ok());
  EXPECT_TRUE(Finish(up).ok());
  EXPECT_TRUE(Finish(down).ok());
  EXPECT_EQ(std::vector<std::byte>(to, to + kBytes), last);
  EXPECT_FALSE(*driver_->Query(behind));
  EXPECT_EQ(latch.probe(), GpuLatch::Seen::kNothing);

  latch.Release();
  EXPECT_TRUE(Finish(behind).ok());
  EXPECT_EQ(latch.probe(), GpuLatch::Seen::kReleased);
  EXPECT_FALSE(latch.timed_out());
  EXPECT_EQ(Download(coming, kBytes), next);
}

TEST_F(OverlapTest, AnEventJoinsTwoStreams) {
  const Stream other = NewStream();
  const Event held = NewEvent();
  GpuLatch latch(*driver_);
  ASSERT_TRUE(latch.Hold(stream_).ok());
  ASSERT_TRUE(driver_->Record(held, stream_).ok());
  ASSERT_TRUE(driver_->Wait(other, held).ok());
  ASSERT_TRUE(latch.Probe(other).ok());
  ASSERT_TRUE(latch.AwaitRunning());
  EXPECT_EQ(latch.probe(), GpuLatch::Seen::kNothing);
  latch.Release();
  EXPECT_TRUE(Finish(other).ok());
  EXPECT_EQ(latch.probe(), GpuLatch::Seen::kReleased);
  EXPECT_FALSE(latch.timed_out());
}

// A launch that had to load its kernel would wait for the held one, until that timed out.
TEST_F(OverlapTest, FillsAndLoadedKernelsRunWhileAKernelIsHeld) {
  std::byte* const memory = Device(kBytes);
  const Stream other = NewStream();
  GpuLatch latch(*driver_);
  ASSERT_TRUE(latch.Hold(stream_).ok());
  ASSERT_TRUE(latch.AwaitRunning());
  FillOp fill{.dst = memory, .pattern_size = 3, .count = kBytes / 3};
  fill.pattern[1] = std::byte{7};
  EXPECT_TRUE(driver_->Fill(other, fill).ok());
  EXPECT_TRUE(latch.Probe(other).ok());
  EXPECT_TRUE(Finish(other).ok());
  EXPECT_EQ(latch.probe(), GpuLatch::Seen::kHeld);
  latch.Release();
  EXPECT_TRUE(Finish(stream_).ok());
  EXPECT_FALSE(latch.timed_out());
}

}  // namespace
}  // namespace penstock::driver::overlap_test
