// Memory, copies and fills, against plain loops on host memory.
#include "tests/conformance/driver/driver_conformance.h"

#include <cstring>
#include <limits>

namespace penstock::driver::conformance {
namespace {

using Bytes = std::vector<std::byte>;

// What `op` does, in host memory: `dst` and `src` stand for the whole blocks that its addresses start in.
void CopyBox(const CopyOp& op, Bytes& dst, size_t dst_first, const Bytes& src, size_t src_first) {
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      std::memcpy(&dst[dst_first + z * op.dst_slice + y * op.dst_pitch],
                  &src[src_first + z * op.src_slice + y * op.src_pitch], op.width);
    }
  }
}

struct Shape {
  size_t width, height, depth, dst_pitch, src_pitch, dst_slice, src_slice;
};
// One row; rows, dense and with padding that differs; one column; slices; slices of one row; one big row.
const std::vector<Shape> kShapes = {
    {1, 1, 1, 0, 0, 0, 0},        {1000, 1, 1, 0, 0, 0, 0},           {100, 7, 1, 100, 100, 0, 0},
    {100, 7, 1, 128, 100, 0, 0},  {100, 7, 1, 100, 131, 0, 0},        {1, 50, 1, 3, 2, 0, 0},
    {20, 5, 4, 20, 20, 100, 100}, {20, 5, 4, 32, 24, 32 * 6, 24 * 5}, {20, 1, 4, 20, 20, 40, 60},
    {300001, 1, 1, 0, 0, 0, 0},   {1000, 700, 1, 1024, 1000, 0, 0},
};
constexpr size_t kBlock = 1 << 20;
constexpr size_t kDstFirst = 13, kSrcFirst = 5;  // odd, and apart from both ends

TEST_P(DriverConformance, UploadsCopyExactlyTheirBox) {
  const std::byte *const src = PinnedNoise(kBlock, 1), *const before = PinnedNoise(kBlock, 2);
  std::byte* const dst = Device<std::byte>(kBlock);
  for (const Shape& s : kShapes) {
    const CopyOp op{CopyKind::kHostToDevice,
                    dst + kDstFirst,
                    src + kSrcFirst,
                    s.width,
                    s.height,
                    s.depth,
                    s.dst_pitch,
                    s.src_pitch,
                    s.dst_slice,
                    s.src_slice};
    ASSERT_OK(Upload(stream_, dst, before, kBlock));
    ASSERT_OK(driver_->Copy(stream_, op));
    ASSERT_TRUE(Finish(stream_));
    Bytes expected(before, before + kBlock);
    CopyBox(op, expected, kDstFirst, Bytes(src, src + kBlock), kSrcFirst);
    ASSERT_TRUE(BytesOf(dst, kBlock) == expected) << s.width << " x " << s.height << " x " << s.depth;
  }
}

TEST_P(DriverConformance, DownloadsCopyExactlyTheirBox) {
  const std::byte *const noise = PinnedNoise(kBlock, 3), *const before = PinnedNoise(kBlock, 4);
  std::byte *const src = Device<std::byte>(kBlock), *const dst = Pinned<std::byte>(kBlock);
  ASSERT_OK(Upload(stream_, src, noise, kBlock));
  for (const Shape& s : kShapes) {
    ASSERT_TRUE(Finish(stream_));
    std::memcpy(dst, before, kBlock);
    const CopyOp op{CopyKind::kDeviceToHost,
                    dst + kDstFirst,
                    src + kSrcFirst,
                    s.width,
                    s.height,
                    s.depth,
                    s.dst_pitch,
                    s.src_pitch,
                    s.dst_slice,
                    s.src_slice};
    ASSERT_OK(driver_->Copy(stream_, op));
    ASSERT_TRUE(Finish(stream_));
    Bytes expected(before, before + kBlock);
    CopyBox(op, expected, kDstFirst, Bytes(noise, noise + kBlock), kSrcFirst);
    ASSERT_TRUE(Bytes(dst, dst + kBlock) == expected) << s.width << " x " << s.height << " x " << s.depth;
  }
}

TEST_P(DriverConformance, CopiesInsideADeviceCopyExactlyTheirBox) {
  const std::byte *const noise = PinnedNoise(kBlock, 5), *const before = PinnedNoise(kBlock, 6);
  std::byte *const src = Device<std::byte>(kBlock), *const dst = Device<std::byte>(kBlock);
  ASSERT_OK(Upload(stream_, src, noise, kBlock));
  for (const Shape& s : kShapes) {
    const CopyOp op{CopyKind::kDeviceToDevice,
                    dst + kDstFirst,
                    src + kSrcFirst,
                    s.width,
                    s.height,
                    s.depth,
                    s.dst_pitch,
                    s.src_pitch,
                    s.dst_slice,
                    s.src_slice};
    ASSERT_OK(Upload(stream_, dst, before, kBlock));
    ASSERT_OK(driver_->Copy(stream_, op));
    ASSERT_TRUE(Finish(stream_));
    Bytes expected(before, before + kBlock);
    CopyBox(op, expected, kDstFirst, Bytes(noise, noise + kBlock), kSrcFirst);
    ASSERT_TRUE(BytesOf(dst, kBlock) == expected) << s.width << " x " << s.height << " x " << s.depth;
  }
}

TEST_P(DriverConformance, PeerCopiesMoveBytesBothWays) {
  SKIP_UNLESS_TWO_DEVICES();
  const std::byte* const noise = PinnedNoise(kBlock, 7);
  std::byte *const here = Device<std::byte>(kBlock), *const there = Device<std::byte>(kBlock, 1);
  std::byte* const back = Device<std::byte>(kBlock);
  ASSERT_OK(Upload(stream_, here, noise, kBlock));
  CopyOp op{.kind = CopyKind::kPeer, .dst = there, .src = here, .width = kBlock, .dst_device = 1, .src_device = 0};
  ASSERT_OK(driver_->Copy(stream_, op));
  op.dst = back;
  op.src = there;
  std::swap(op.dst_device, op.src_device);
  ASSERT_OK(driver_->Copy(stream_, op));
  ASSERT_TRUE(Finish(stream_));
  const Bytes expected(noise, noise + kBlock);
  EXPECT_TRUE(BytesOf(there, kBlock, 1) == expected);
  EXPECT_TRUE(BytesOf(back, kBlock) == expected);
}

TEST_P(DriverConformance, CopiesAndFillsOfNothingDoNothing) {
  std::byte *const device = Device<std::byte>(16), *const pinned = Pinned<std::byte>(16);
  ASSERT_OK(driver_->Copy(stream_, {.dst = device, .src = pinned, .width = 0}));
  ASSERT_OK(
      driver_->Copy(stream_, {.dst = device, .src = pinned, .width = 4, .height = 0, .dst_pitch = 4, .src_pitch = 4}));
  ASSERT_OK(driver_->Fill(stream_, {.dst = device, .count = 0}));
  EXPECT_TRUE(Finish(stream_));
}

TEST_P(DriverConformance, RowsThatOverlapAreRefusedAndTheStreamGoesOn) {
  std::byte *const device = Device<std::byte>(256), *const pinned = Pinned<std::byte>(256);
  const CopyOp narrow{.dst = device, .src = pinned, .width = 16, .height = 4, .dst_pitch = 8, .src_pitch = 16};
  EXPECT_EQ(driver_->Copy(stream_, narrow).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_OK(Upload(stream_, device, pinned, 256));
  EXPECT_TRUE(Finish(stream_));
}

// --- fills ---

TEST_P(DriverConformance, FillsRepeatPatternsOfAnySizeAndTouchNothingElse) {
  const std::byte* const before = PinnedNoise(kBlock, 8);
  std::byte* const dst = Device<std::byte>(kBlock);
  for (uint32_t size = 1; size <= 16; ++size) {
    for (const size_t count : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}, (kBlock - 1024) / size}) {
      FillOp op{.dst = dst + size * 16, .pattern_size = size, .count = count};
      for (uint32_t i = 0; i < size; ++i) op.pattern[i] = static_cast<std::byte>(17 * i + size);
      ASSERT_OK(Upload(stream_, dst, before, kBlock));
      ASSERT_OK(driver_->Fill(stream_, op));
      ASSERT_TRUE(Finish(stream_));
      Bytes expected(before, before + kBlock);
      for (size_t i = 0; i < size * count; ++i) expected[size * 16 + i] = op.pattern[i % size];
      ASSERT_TRUE(BytesOf(dst, kBlock) == expected) << count << " patterns of " << size << " bytes";
    }
  }
}

// --- memory ---

TEST_P(DriverConformance, DeviceMemoryIsAlignedAndBlocksAreApart) {
  std::byte *const a = Device<std::byte>(1), *const b = Device<std::byte>(257), *const c = Device<std::byte>(1);
  for (const std::byte* memory : {a, b, c}) EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
  ASSERT_OK(driver_->Fill(stream_, {.dst = a, .count = 1}));
  FillOp ones{.dst = b, .count = 257};
  ones.pattern[0] = std::byte{1};
  ASSERT_OK(driver_->Fill(stream_, ones));
  ASSERT_OK(driver_->Fill(stream_, {.dst = c, .count = 1}));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(b, 257), Bytes(257, std::byte{1}));
  EXPECT_EQ(BytesOf(a, 1), Bytes(1, std::byte{0}));
}

TEST_P(DriverConformance, TooMuchMemoryIsResourceExhaustedAndNamesTheBytes) {
  const size_t bytes = size_t{1} << 50;
  for (const absl::Status& status :
       {driver_->AllocateDevice(0, bytes).status(), driver_->AllocatePinned(bytes).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(status.ToString().find("1125899906842624 bytes"), std::string::npos) << status;
  }
  EXPECT_NE(Device<std::byte>(256), nullptr);
}

TEST_P(DriverConformance, FreedDeviceMemoryCanBeHadAgain) {
  const size_t bytes = static_cast<size_t>(driver_->device(0).memory_bytes) / 8 * 3;
  for (int i = 0; i < 8; ++i) {  // three times what there is
    const auto memory = driver_->AllocateDevice(0, bytes);
    ASSERT_OK(memory.status());
    driver_->FreeDevice(0, *memory);
  }
}

TEST_P(DriverConformance, InspectKnowsKindsOfMemory) {
  using Kind = PointerInfo::Kind;
  std::byte *const device = Device<std::byte>(4096), *const pinned = Pinned<std::byte>(4096);
  const PointerInfo info = driver_->Inspect(device + 4095).value();
  EXPECT_EQ(info.kind, Kind::kDevice);
  EXPECT_EQ(info.device, 0);
  EXPECT_EQ(driver_->Inspect(pinned)->kind, Kind::kPinned);
  EXPECT_EQ(driver_->Inspect(pinned + 4095)->kind, Kind::kPinned);
  const int local = 0;
  EXPECT_EQ(driver_->Inspect(&local)->kind, Kind::kPageable);
  EXPECT_EQ(driver_->Inspect(nullptr)->kind, Kind::kPageable);
}

TEST_P(DriverConformance, InspectNamesTheDevice) {
  SKIP_UNLESS_TWO_DEVICES();
  EXPECT_EQ(driver_->Inspect(Device<std::byte>(16, 1))->device, 1);
}

TEST_P(DriverConformance, DevicesAreNamedAndNumbered) {
  for (int i = 0; i < driver_->device_count(); ++i) {
    const DeviceInfo& info = driver_->device(i);
    EXPECT_NE(info.name.find(":" + std::to_string(i)), std::string::npos);
    EXPECT_FALSE(info.description.empty());
    EXPECT_GT(info.memory_bytes, 0);
    EXPECT_GT(info.compute_units, 0);
  }
}

}  // namespace
}  // namespace penstock::driver::conformance
