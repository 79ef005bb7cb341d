// Memory, copies and fills, against plain loops on host memory.
#include "tests/conformance/driver/box_oracle.h"
#include "tests/conformance/driver/driver_conformance.h"
#include "tests/support/sanitized.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

namespace penstock::driver::conformance::copy_conformance_test {
namespace {

constexpr size_t kBlock = 1 << 20;

// One row; rows, dense and with padding that differs; one column; slices, also of one row, and no whole number of rows
// apart on either side; one big row; big rows; nothing.
const std::vector<Shape> kShapes = {
    {1, 1, 1, 0, 0, 0, 0},
    {1000, 1, 1, 0, 0, 0, 0},
    {100, 7, 1, 100, 100, 0, 0},
    {100, 7, 1, 128, 100, 0, 0},
    {100, 7, 1, 100, 131, 0, 0},
    {1, 50, 1, 3, 2, 0, 0},
    {4, 1000, 1, 512, 4, 0, 0},
    {20, 5, 4, 20, 20, 100, 100},
    {20, 5, 4, 32, 24, 32 * 6, 24 * 5},
    {20, 5, 4, 32, 24, 32 * 6 + 1, 24 * 5},
    {20, 5, 4, 32, 24, 32 * 6, 24 * 5 + 7},
    {20, 5, 4, 32, 24, 32 * 5 + 3, 24 * 5 + 7},
    {20, 1, 4, 20, 20, 40, 60},
    {1, 1, 9, 0, 0, 5, 7},
    {7, 1, 3, 1000, 3, 7, 1000},  // the pitch of a single row is nobody's
    {300001, 1, 1, 0, 0, 0, 0},
    {1000, 700, 1, 1024, 1000, 0, 0},
    {1003, 700, 1, 1023, 1031, 0, 0},
    {0, 3, 3, 1, 1, 3, 3},
    {3, 0, 3, 3, 3, 9, 9},
    {3, 3, 0, 3, 3, 9, 9},
};

constexpr CopyKind kKinds[] = {CopyKind::kHostToDevice, CopyKind::kDeviceToHost, CopyKind::kDeviceToDevice,
                               CopyKind::kPeer};
const char* TextOf(CopyKind kind) {
  static constexpr const char* kTexts[] = {"host to device", "device to host", "device to device", "peer"};
  return kTexts[static_cast<int>(kind)];
}

// Memory for copies of every kind, kBlock bytes each.
struct Blocks {
  const std::byte *source, *before;  // pinned: what is copied, and what is there before
  std::byte* host;                   // pinned
  std::byte *device_source, *device; // device_source is as source
  std::byte* other = nullptr;        // on the second device, if there is one
};

CopyOp PeerLine(std::byte* dst, const std::byte* src, int dst_device, size_t bytes) {
  return {.kind = CopyKind::kPeer,
          .dst = dst,
          .src = src,
          .width = bytes,
          .dst_device = dst_device,
          .src_device = 1 - dst_device};
}

// Queues a copy of the box from `src_first` on to `dst_first` on, of blocks of `bytes` bytes, so that b.host has what
// is there afterwards. All of b.host is the host's to write.
absl::Status QueueBox(Driver& driver, Stream stream, const Blocks& b, CopyKind kind, const Shape& shape,
                      size_t dst_first, size_t src_first, size_t bytes) {
  if (kind == CopyKind::kDeviceToHost) {
    std::memcpy(b.host, b.before, bytes);
    return driver.Copy(stream, shape.Between(kind, b.host + dst_first, b.device_source + src_first));
  }
  std::vector<CopyOp> ops = {{.kind = CopyKind::kHostToDevice, .dst = b.device, .src = b.before, .width = bytes}};
  if (kind == CopyKind::kPeer) ops.push_back(PeerLine(b.other, b.device, 1, bytes));
  ops.push_back(shape.Between(kind, (kind == CopyKind::kPeer ? b.other : b.device) + dst_first,
                              (kind == CopyKind::kHostToDevice ? b.source : b.device_source) + src_first));
  ops.back().dst_device = 1;
  ops.back().src_device = 0;
  if (kind == CopyKind::kPeer) ops.push_back(PeerLine(b.device, b.other, 0, bytes));
  ops.push_back({.kind = CopyKind::kDeviceToHost, .dst = b.host, .src = b.device, .width = bytes});
  for (const CopyOp& op : ops) {
    if (absl::Status status = driver.Copy(stream, op); !status.ok()) return status;
  }
  return absl::OkStatus();
}

struct Case {
  Shape shape;
  size_t dst_first, src_first;
  size_t bytes;                      // of a block that has room for it, and for more behind it
};

// The list above in the midst of its blocks, and small boxes of any shape at any place.
std::vector<Case> BoxCases() {
  std::vector<Case> cases;
  for (const Shape& shape : kShapes) cases.push_back({shape, 13, 5, kBlock});
  std::mt19937 random(20261124);
  for (int i = 0; i < 200; ++i) {
    Case c{RandomShape(random, 6000), random() % 40, random() % 40, 0};
    c.bytes = std::max(c.dst_first + c.shape.dst_span(), c.src_first + c.shape.src_span()) + random() % 100 + 1;
    cases.push_back(c);
  }
  return cases;
}

TEST_P(DriverConformance, CopiesOfEveryKindCopyExactlyTheirBox) {
  Blocks b{PinnedNoise(kBlock, 1), PinnedNoise(kBlock, 2), Pinned<std::byte>(kBlock), Device<std::byte>(kBlock),
           Device<std::byte>(kBlock)};
  if (driver_->device_count() > 1) b.other = Device<std::byte>(kBlock, 1);
  ASSERT_OK(Upload(stream_, b.device_source, b.source, kBlock));
  const Bytes source(b.source, b.source + kBlock);
  for (const CopyKind kind : kKinds) {
    if (kind == CopyKind::kPeer && b.other == nullptr) continue;
    for (const auto& [shape, dst_first, src_first, bytes] : BoxCases()) {
      ASSERT_LE(bytes, kBlock);
      ASSERT_TRUE(Finish(stream_));
      ASSERT_OK(QueueBox(*driver_, stream_, b, kind, shape, dst_first, src_first, bytes));
      ASSERT_TRUE(Finish(stream_));
      Bytes expected(b.before, b.before + bytes);
      CopyBox(shape, expected, dst_first, source, src_first);
      ASSERT_EQ(std::memcmp(b.host, expected.data(), bytes), 0)
          << TextOf(kind) << ": " << shape << " from " << src_first << " to " << dst_first;
    }
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
  ASSERT_OK(driver_->Fill(stream_, {.dst = device, .count = 4, .height = 0, .pitch = 4}));
  ASSERT_OK(driver_->Fill(stream_, {.dst = device, .pattern_size = 3, .count = 1, .depth = 0, .slice = 4}));
  EXPECT_TRUE(Finish(stream_));
}

TEST_P(DriverConformance, RowsThatOverlapAreRefusedAndTheStreamGoesOn) {
  std::byte *const device = Device<std::byte>(256), *const pinned = Pinned<std::byte>(256);
  const CopyOp narrow{.dst = device, .src = pinned, .width = 16, .height = 4, .dst_pitch = 8, .src_pitch = 16};
  EXPECT_EQ(driver_->Copy(stream_, narrow).code(), absl::StatusCode::kInvalidArgument);
  const FillOp rows{.dst = device, .pattern_size = 3, .count = 3, .height = 2, .pitch = 8};
  EXPECT_EQ(driver_->Fill(stream_, rows).code(), absl::StatusCode::kInvalidArgument);
  const FillOp slices{.dst = device, .count = 8, .height = 2, .depth = 2, .pitch = 8, .slice = 15};
  EXPECT_EQ(driver_->Fill(stream_, slices).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_OK(Upload(stream_, device, pinned, 256));
  EXPECT_TRUE(Finish(stream_));
}

TEST_P(DriverConformance, SizesThatOverflowAreRefusedAndTheStreamGoesOn) {
  constexpr size_t kHuge = size_t{1} << 63;  // twice this is 0
  std::byte *const device = Device<std::byte>(256), *const pinned = Pinned<std::byte>(256);
  std::byte* const other = Device<std::byte>(256);
  const Shape shapes[] = {
      {8, 3, 1, kHuge, kHuge, 0, 0}, {8, 3, 1, 8, kHuge, 0, 0},         {8, 1, 3, 0, 0, kHuge, kHuge},
      {8, 1, 3, 0, 0, 8, kHuge},     {8, kHuge, 1, 8, 8, 0, 0},         {8, kHuge, kHuge, 8, 8, 8, 8},
      {8, 2, 3, 8, 8, kHuge, 16},    {kHuge, 2, 1, kHuge, kHuge, 0, 0}, {~size_t{0}, 1, 1, 0, 0, 0, 0},
  };
  for (const Shape& shape : shapes) {
    for (const CopyKind kind : {CopyKind::kHostToDevice, CopyKind::kDeviceToHost, CopyKind::kDeviceToDevice}) {
      const CopyOp op = shape.Between(kind, kind == CopyKind::kDeviceToHost ? pinned : device,
                                      kind == CopyKind::kHostToDevice ? pinned : other);
      EXPECT_EQ(driver_->Copy(stream_, op).code(), absl::StatusCode::kInvalidArgument) << shape;
    }
    FillOp fill{.dst = device, .count = shape.width, .height = shape.height, .depth = shape.depth};
    fill.pitch = std::max(shape.dst_pitch, shape.src_pitch);
    fill.slice = std::max(shape.dst_slice, shape.src_slice);
    EXPECT_EQ(driver_->Fill(stream_, fill).code(), absl::StatusCode::kInvalidArgument) << shape;
  }
  EXPECT_EQ(driver_->Fill(stream_, {.dst = device, .pattern_size = 16, .count = size_t{1} << 61}).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_OK(Upload(stream_, device, pinned, 256));
  EXPECT_TRUE(Finish(stream_));
}

// --- fills ---

TEST_P(DriverConformance, FillsRepeatPatternsOfAnySizeAndTouchNothingElse) {
  constexpr size_t kBytes = kSanitized ? 1 << 17 : kBlock;
  const std::byte* const before = PinnedNoise(kBytes, 8);
  std::byte* const dst = Device<std::byte>(kBytes);
  for (uint32_t size = 1; size <= 16; ++size) {
    for (const size_t count : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}, (kBytes - 1024) / size}) {
      FillOp op{.dst = dst + size * 16, .pattern_size = size, .count = count};
      for (uint32_t i = 0; i < size; ++i) op.pattern[i] = static_cast<std::byte>(17 * i + size);
      ASSERT_OK(Upload(stream_, dst, before, kBytes));
      ASSERT_OK(driver_->Fill(stream_, op));
      ASSERT_TRUE(Finish(stream_));
      Bytes expected(before, before + kBytes);
      for (size_t i = 0; i < size * count; ++i) expected[size * 16 + i] = op.pattern[i % size];
      ASSERT_TRUE(BytesOf(dst, kBytes) == expected) << count << " patterns of " << size << " bytes";
    }
  }
}

// The boxes of copies, of as many whole patterns as their rows have room for. Half of the patterns divide their row, so
// that dense rows stay dense; half have equal bytes only.
TEST_P(DriverConformance, FillsOfBoxesWriteExactlyTheirBox) {
  const std::byte* const before = PinnedNoise(kBlock, 9);
  std::byte* const dst = Device<std::byte>(kBlock);
  std::mt19937 random(20261125);
  int boxes = 0;
  for (const auto& [shape, first, src_first, bytes] : BoxCases()) {
    FillOp op{.dst = dst + first, .pattern_size = static_cast<uint32_t>(random() % 16 + 1)};
    while (random() % 2 == 0 && shape.width % op.pattern_size != 0) --op.pattern_size;
    op.count = shape.width / op.pattern_size;
    op.height = shape.height;
    op.depth = shape.depth;
    op.pitch = shape.dst_pitch;
    op.slice = shape.dst_slice;
    const bool equal = random() % 2 == 0;
    for (uint32_t i = 0; i < op.pattern_size; ++i) op.pattern[i] = static_cast<std::byte>(equal ? 0xab : 19 * i + 3);
    ASSERT_OK(Upload(stream_, dst, before, bytes));
    ASSERT_OK(driver_->Fill(stream_, op));
    ASSERT_TRUE(Finish(stream_));
    Bytes expected(before, before + bytes);
    FillBox(op, expected, first);
    ASSERT_TRUE(BytesOf(dst, bytes) == expected) << op.count << " patterns of " << op.pattern_size
                                                 << (equal ? " equal" : "") << " bytes: " << shape << " at " << first;
    boxes += op.count > 0 && op.height * op.depth > 1;
  }
  EXPECT_GT(boxes, 50);
}

TEST_P(DriverConformance, FillsMayEndAtTheLastByte) {
  for (const size_t slack : {0, 1, 5}) {  // from row to row, beside the pattern's bytes
    FillOp op{.pattern_size = 3, .count = 37, .height = 5, .depth = 4, .pitch = 111 + slack, .slice = 600};
    for (uint32_t i = 0; i < 3; ++i) op.pattern[i] = static_cast<std::byte>(i + 1);
    const size_t bytes = 3 * op.slice + 4 * op.pitch + 111;
    const std::byte* const before = PinnedNoise(bytes, 10);
    std::byte* const dst = Device<std::byte>(bytes);
    op.dst = dst;
    ASSERT_OK(Upload(stream_, dst, before, bytes));
    ASSERT_OK(driver_->Fill(stream_, op));
    ASSERT_TRUE(Finish(stream_));
    Bytes expected(before, before + bytes);
    FillBox(op, expected, 0);
    EXPECT_TRUE(BytesOf(dst, bytes) == expected) << slack;
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

TEST_P(DriverConformance, InspectTellsHowFarItHolds) {
  constexpr size_t kBytes = 4 << 20;  // whole pages of any device: nothing is rounded
  std::byte* const blocks[] = {Pinned<std::byte>(kBytes), Pinned<std::byte>(kBytes), Device<std::byte>(kBytes),
                               Device<std::byte>(kBytes)};
  for (std::byte* const block : blocks) {
    const auto begin = reinterpret_cast<uintptr_t>(block);
    for (const size_t at : {size_t{0}, size_t{1}, kBytes / 2 + 7, kBytes - 1}) {
      const PointerInfo info = driver_->Inspect(block + at).value();
      EXPECT_EQ(info.begin, begin) << at;
      EXPECT_EQ(info.end, begin + kBytes) << at;
    }
  }
  const std::vector<std::byte> pageable(100);
  for (const void* const memory : {static_cast<const void*>(pageable.data()), static_cast<const void*>(nullptr)}) {
    const PointerInfo info = driver_->Inspect(memory).value();
    EXPECT_EQ(info.begin, info.end);
  }
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
}  // namespace penstock::driver::conformance::copy_conformance_test
