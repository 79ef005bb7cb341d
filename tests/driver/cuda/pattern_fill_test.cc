// Fills against a CPU oracle: every pattern size, odd counts, boxes, every kind of alignment, and nothing outside
// changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/driver/cuda/gpu_test.h"

namespace penstock::driver::pattern_fill_test {
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
    SCOPED_TRACE("pattern of " + std::to_string(op.pattern_size) + " times " + std::to_string(op.count) + " x " +
                 std::to_string(op.height) + " x " + std::to_string(op.depth) + " by " + std::to_string(op.pitch) +
                 ", " + std::to_string(op.slice) + " at " + std::to_string(offset));
    const size_t width = op.count * op.pattern_size;
    const size_t all = 2 * kGuard + (op.depth - 1) * op.slice + (op.height - 1) * op.pitch + width;
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

    Bytes expected(all, std::byte{0xEE});
    for (size_t z = 0; z < op.depth; ++z) {
      for (size_t y = 0; y < op.height; ++y) {
        std::byte* const row = expected.data() + kGuard + offset + z * op.slice + y * op.pitch;
        for (size_t x = 0; x < width; ++x) row[x] = op.pattern[x % op.pattern_size];
      }
    }
    size_t wrong = 0;
    for (size_t i = 0; i < all; ++i) wrong += readback_[i] != expected[i];
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

// CsrRows shorter than a line of memory and much longer, dense and apart, with slices at whole rows and not; patterns
// of equal bytes go to CUDA's own calls where these can.
TEST_F(FillTest, BoxesOfAnyPitchAndAlignment) {
  for (const uint32_t size : {1u, 3u, 4u, 12u, 16u}) {
    for (const size_t count : {1, 7, 129, 5003}) {
      for (const size_t gap : {0, 1, 16, 333}) {
        for (const size_t slice_gap : {0, 5}) {
          FillOp op = Pattern(size, count);
          op.height = 9;
          op.depth = 4;
          op.pitch = count * size + gap;
          op.slice = op.pitch * op.height + slice_gap;
          for (const bool equal : {false, true}) {
            if (equal) op.pattern.fill(std::byte{0x5A});
            Check(op, gap % 16);
            op.depth = 1;
            Check(op, 3);
            op.depth = 4;
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// More rows, and longer ones, than all blocks take at a time.
TEST_F(FillTest, ManyRowsAndLongOnes) {
  for (const auto& [count, height] : {std::pair<size_t, size_t>{5, 70001}, {300, 40003}, {500001, 23}}) {
    FillOp op = Pattern(3, count);
    op.height = height;
    op.pitch = count * 3 + 7;
    Check(op, 1);
    op.pattern.fill(std::byte{0x5A});
    Check(op, 1);
    if (HasFailure()) return;
  }
}

TEST_F(FillTest, RowsMoreThan2GiBApart) {
  const size_t pitch = (size_t{1} << 31) + 11, width = 300, bytes = pitch + width;
  const absl::StatusOr<void*> memory = driver_->AllocateDevice(0, bytes);
  if (!memory.ok()) GTEST_SKIP() << "needs " << bytes << " bytes: " << memory.status();
  auto* const first = static_cast<std::byte*>(*memory);
  for (const uint32_t size : {1u, 3u}) {
    ASSERT_TRUE(driver_->Fill(stream_, {.dst = first, .count = bytes}).ok());
    FillOp op = Pattern(size, width / size);
    op.dst = first;
    op.height = 2;
    op.pitch = pitch;
    ASSERT_TRUE(driver_->Fill(stream_, op).ok());
    for (const size_t row : {size_t{0}, pitch}) {
      const Bytes got = Download(first + row, width);
      for (size_t i = 0; i < width; ++i) ASSERT_EQ(got[i], op.pattern[i % size]) << row + i;
    }
    EXPECT_EQ(Download(first + width, 1)[0], std::byte{0});
    EXPECT_EQ(Download(first + pitch - 1, 1)[0], std::byte{0});
  }
  driver_->FreeDevice(0, *memory);
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
}  // namespace penstock::driver::pattern_fill_test
