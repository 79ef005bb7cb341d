// Fills against a CPU oracle: every pattern size, odd counts, every kind of alignment, and nothing outside changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/driver/cuda/gpu_test.h"

namespace penstock::driver {
namespace {

using Bytes = std::vector<std::byte>;

class FillTest : public GpuTest {
 protected:
  // A pattern whose bytes are all different.
  static FillOp Pattern(uint32_t size, size_t count) {
    FillOp op{.pattern_size = size, .count = count};
    for (uint32_t i = 0; i < 16; ++i) op.pattern[i] = static_cast<std::byte>(0x11 + 13 * i);
    return op;
  }

  void Check(FillOp op, size_t offset) {
    constexpr size_t kGuard = 64;
    SCOPED_TRACE("pattern of " + std::to_string(op.pattern_size) + " times " + std::to_string(op.count) + " at " +
                 std::to_string(offset));
    const size_t bytes = op.count * op.pattern_size, all = bytes + 2 * kGuard;
    if (all > room_) {
      memory_ = Device(all);
      readback_ = Pinned(all);
      room_ = all;
    }
    ASSERT_TRUE(driver_->Fill(stream_, {.dst = memory_, .pattern = {std::byte{0xEE}}, .count = all}).ok());
    op.dst = memory_ + kGuard + offset;
    const absl::Status status = driver_->Fill(stream_, op);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(
        driver_->Copy(stream_, {.kind = CopyKind::kDeviceToHost, .dst = readback_, .src = memory_, .width = all}).ok());
    ASSERT_TRUE(Finish(stream_).ok());

    size_t wrong = 0;
    for (size_t i = 0; i < all; ++i) {
      const bool inside = i >= kGuard + offset && i < kGuard + offset + bytes;
      const std::byte expected = inside ? op.pattern[(i - kGuard - offset) % op.pattern_size] : std::byte{0xEE};
      wrong += readback_[i] != expected;
    }
    EXPECT_EQ(wrong, 0u);
  }

  std::byte* memory_ = nullptr;
  std::byte* readback_ = nullptr;
  size_t room_ = 0;
};

TEST_F(FillTest, EverySizeCountAndAlignment) {
  for (uint32_t size = 1; size <= 16; ++size) {
    for (const size_t count : {1, 2, 3, 5, 17, 255, 1001, 40007}) {
      for (const size_t offset : {0, 1, 3, 8, 15}) {
        Check(Pattern(size, count), offset);
        if (HasFailure()) return;
      }
    }
  }
}

// More than all blocks write in one stride, so that the phase goes on from stride to stride.
TEST_F(FillTest, LongFillsKeepTheirPhase) {
  for (const uint32_t size : {2, 3, 5, 7, 12, 13, 16}) {
    Check(Pattern(size, (30u << 20) / size + 1), 5);
    if (HasFailure()) return;
  }
}

TEST_F(FillTest, PatternsOfEqualBytes) {
  FillOp op{.pattern_size = 7, .count = 1001};
  op.pattern.fill(std::byte{0x5A});
  Check(op, 3);
}

// Only the last byte of the pattern differs, and bytes past the pattern do not count.
TEST_F(FillTest, PatternsOfNearlyEqualBytes) {
  FillOp op{.pattern_size = 4, .count = 1001};
  op.pattern.fill(std::byte{0});
  op.pattern[3] = std::byte{1};
  Check(op, 0);
  op.pattern[3] = std::byte{0};
  op.pattern[4] = std::byte{9};
  Check(op, 0);
}

TEST_F(FillTest, MoreThan4GiB) {
  const size_t count = (size_t{4500} << 20) / 3, bytes = 3 * count;
  const absl::StatusOr<void*> memory = driver_->AllocateDevice(0, bytes);
  if (!memory.ok()) GTEST_SKIP() << "needs " << bytes << " bytes: " << memory.status();
  FillOp op = Pattern(3, count);
  op.dst = *memory;
  ASSERT_TRUE(driver_->Fill(stream_, {.dst = op.dst, .count = bytes}).ok());
  ASSERT_TRUE(driver_->Fill(stream_, op).ok());
  const size_t wrap = size_t{1} << 32, window = 3000;
  for (const size_t at : {size_t{0}, wrap - window / 2, bytes - window}) {
    const Bytes got = Download(static_cast<std::byte*>(op.dst) + at, window);
    for (size_t i = 0; i < window; ++i) ASSERT_EQ(got[i], op.pattern[(at + i) % 3]) << at + i;
  }
  driver_->FreeDevice(0, *memory);
}

TEST_F(FillTest, EmptyFillsDoNothing) { EXPECT_TRUE(driver_->Fill(stream_, {.count = 0}).ok()); }

TEST_F(FillTest, RefusesSizesOutOfRange) {
  std::byte* const memory = Device(256);
  for (const uint32_t size : {0u, 17u}) {
    const FillOp op{.dst = memory, .pattern_size = size, .count = 1};
    EXPECT_EQ(driver_->Fill(stream_, op).code(), absl::StatusCode::kInvalidArgument);
  }
  const FillOp overflow{.dst = memory, .pattern_size = 16, .count = size_t{1} << 61};
  EXPECT_EQ(driver_->Fill(stream_, overflow).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::driver
