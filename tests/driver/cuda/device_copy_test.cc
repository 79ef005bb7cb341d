// Copies of lines, planes and boxes against a CPU oracle: the bytes of the box arrive, and no others change.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/driver/cuda/gpu_test.h"

namespace penstock::driver::device_copy_test {
namespace {

using Bytes = std::vector<std::byte>;

// What the destination holds afterwards.
Bytes Oracle(const CopyOp& op, Bytes dst, const Bytes& src) {
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      for (size_t x = 0; x < op.width; ++x) {
        dst[z * op.dst_slice + y * op.dst_pitch + x] = src[z * op.src_slice + y * op.src_pitch + x];
      }
    }
  }
  return dst;
}

class CopyTest : public GpuTest {
 protected:
  // Does `op`, its addresses aside, between memory of the right kinds, and compares with the oracle.
  void Check(CopyOp op, size_t dst_bytes, size_t src_bytes) {
    SCOPED_TRACE("box " + std::to_string(op.width) + "x" + std::to_string(op.height) + "x" + std::to_string(op.depth) +
                 " pitches " + std::to_string(op.dst_pitch) + " " + std::to_string(op.src_pitch) + " slices " +
                 std::to_string(op.dst_slice) + " " + std::to_string(op.src_slice) + " kind " +
                 std::to_string(static_cast<int>(op.kind)));
    const Bytes before = Noise(dst_bytes, 1), source = Noise(src_bytes, 2);
    const bool to_host = op.kind == CopyKind::kDeviceToHost, from_host = op.kind == CopyKind::kHostToDevice;
    std::byte* const dst = to_host ? Pinned(dst_bytes) : Device(dst_bytes);
    std::byte* const src = from_host ? Pinned(src_bytes) : Device(src_bytes);
    Upload(dst, before);  // pinned memory can be uploaded to, too
    Upload(src, source);
    op.dst = dst;
    op.src = src;
    const absl::Status status = driver_->Copy(stream_, op);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(Finish(stream_).ok());
    EXPECT_EQ(Download(dst, dst_bytes), Oracle(op, before, source));
  }
};

constexpr CopyKind kKinds[] = {CopyKind::kHostToDevice, CopyKind::kDeviceToHost, CopyKind::kDeviceToDevice};

TEST_F(CopyTest, Lines) {
  for (const CopyKind kind : kKinds) {
    for (const size_t bytes : {1, 3, 4096, 1000003}) Check({.kind = kind, .width = bytes}, bytes + 5, bytes + 3);
  }
}

TEST_F(CopyTest, PlanesAndBoxesOfAnyShape) {
  const uint32_t seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto upto = [&](size_t least, size_t most) {
    return std::uniform_int_distribution<size_t>(least, most)(random);
  };
  for (int i = 0; i < 90; ++i) {
    CopyOp op{.kind = kKinds[i % 3], .width = upto(1, 70), .height = upto(1, 9), .depth = i % 2 ? upto(1, 5) : 1};
    op.dst_pitch = op.width + upto(0, 2) * upto(0, 9);
    op.src_pitch = op.width + upto(0, 2) * upto(0, 9);
    op.dst_slice = op.dst_pitch * (op.height + upto(0, 2));
    op.src_slice = op.src_pitch * (op.height + upto(0, 2));
    if (i % 5 == 0) op.dst_slice += upto(1, 7);  // not a whole number of rows
    Check(op, op.depth * op.dst_slice + 9, op.depth * op.src_slice + 9);
    if (HasFatalFailure()) return;
  }
}

TEST_F(CopyTest, EmptyCopiesDoNothing) {
  for (const CopyKind kind : kKinds) {
    EXPECT_TRUE(driver_->Copy(stream_, {.kind = kind, .width = 0}).ok());
    EXPECT_TRUE(driver_->Copy(stream_, {.kind = kind, .width = 4, .height = 0}).ok());
    EXPECT_TRUE(driver_->Copy(stream_, {.kind = kind, .width = 4, .height = 2, .depth = 0}).ok());
  }
  EXPECT_TRUE(Finish(stream_).ok());
}

using PeerCopyTest = TwoGpuTest;

TEST_F(PeerCopyTest, LinesPlanesAndBoxesGoFromDeviceToDevice) {
  const size_t bytes = 4096;
  const Bytes before = Noise(bytes, 1), source = Noise(bytes, 2);
  std::byte *const dst = Device(bytes, 1), *const src = Device(bytes, 0);
  const CopyOp shapes[] = {
      {.width = 1001},
      {.width = 17, .height = 30, .dst_pitch = 40, .src_pitch = 23},
      {.width = 5, .height = 6, .depth = 7, .dst_pitch = 8, .src_pitch = 9, .dst_slice = 64, .src_slice = 90}};
  for (CopyOp op : shapes) {
    Upload(dst, before);
    Upload(src, source);
    op.kind = CopyKind::kPeer;
    op.dst = dst;
    op.src = src;
    op.dst_device = 1;
    op.src_device = 0;
    const int token = driver_->MakeCurrent(1);
    const Stream stream = NewStream(1);
    EXPECT_TRUE(driver_->Copy(stream, op).ok());
    EXPECT_TRUE(Finish(stream).ok());
    driver_->RestoreCurrent(token);
    EXPECT_EQ(Download(dst, bytes), Oracle(op, before, source));
  }
}

TEST_F(PeerCopyTest, InspectNamesTheDevice) {
  EXPECT_EQ(driver_->Inspect(Device(256, 1))->device, 1);
  EXPECT_EQ(driver_->Inspect(Device(256, 0))->device, 0);
}

TEST_F(PeerCopyTest, DevicesAreNumberedAsAskedFor) {
  const auto swapped = CreateCudaDriver({.ordinals = {1, 0}});
  ASSERT_TRUE(swapped.ok()) << swapped.status();
  EXPECT_EQ((*swapped)->device(0).name, "cuda:1");
  EXPECT_EQ((*swapped)->device(1).name, "cuda:0");
  EXPECT_EQ((*swapped)->Inspect(Device(256, 1))->device, 0);
}

TEST_F(PeerCopyTest, PinnedMemoryServesEveryDevice) {
  const size_t bytes = 1000;
  const Bytes source = Noise(bytes, 3);
  std::byte *const pinned = Pinned(bytes), *const back = Pinned(bytes), *const there = Device(bytes, 1);
  std::copy(source.begin(), source.end(), pinned);
  const int token = driver_->MakeCurrent(1);
  const Stream stream = NewStream(1);
  EXPECT_TRUE(driver_->Copy(stream, {.dst = there, .src = pinned, .width = bytes}).ok());
  EXPECT_TRUE(driver_->Copy(stream, {.kind = CopyKind::kDeviceToHost, .dst = back, .src = there, .width = bytes}).ok());
  EXPECT_TRUE(Finish(stream).ok());
  driver_->RestoreCurrent(token);
  EXPECT_EQ(Bytes(back, back + bytes), source);
}

}  // namespace
}  // namespace penstock::driver::device_copy_test
