// Collapsed fills write the same bytes; sizes are judged by 128-bit arithmetic, and refused where they do not fit.
#include "src/driver/fill_box.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <random>

namespace penstock::driver::fill_box_test {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Which byte of the pattern each byte of the memory is given.
std::map<size_t, size_t> BytesOf(const FillOp& op) {
  std::map<size_t, size_t> bytes;
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      for (size_t x = 0; x < op.count * op.pattern_size; ++x)
        bytes[z * op.slice + y * op.pitch + x] = x % op.pattern_size;
    }
  }
  return bytes;
}

TEST(FillBoxTest, CollapsedFillsWriteTheSameBytes) {
  const uint32_t seed = 20261123;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto upto = [&](size_t least, size_t most) {
    return std::uniform_int_distribution<size_t>(least, most)(random);
  };
  int lines = 0, planes = 0, boxes = 0;
  for (int i = 0; i < 5000; ++i) {
    FillOp op{.pattern_size = static_cast<uint32_t>(upto(1, 5)),
              .count = upto(1, 3),
              .height = upto(1, 3),
              .depth = upto(1, 3)};
    op.pitch = op.count * op.pattern_size + upto(0, 1) * upto(0, 7);
    op.slice = op.pitch * op.height + upto(0, 1) * upto(0, 7);
    const FillOp least = Collapse(op);
    ASSERT_EQ(BytesOf(least), BytesOf(op)) << op.pattern_size << " x " << op.count << "x" << op.height << "x"
                                           << op.depth << " by " << op.pitch << ", " << op.slice;
    ++(least.depth > 1 ? boxes : least.height > 1 ? planes : lines);
  }
  EXPECT_GT(lines, 100);
  EXPECT_GT(planes, 100);
  EXPECT_GT(boxes, 100);
}

__extension__ using Wide = unsigned __int128;

// The bytes up to the last one of a fill, or the largest number where it overlaps itself.
Wide SpanOf(const FillOp& op) {
  const Wide width = Wide{op.count} * op.pattern_size;
  if (width == 0 || op.height == 0 || op.depth == 0) return 0;
  const Wide plane = Wide{op.height - 1} * op.pitch + width;
  if ((op.height > 1 && op.pitch < width) || (op.depth > 1 && op.slice < plane)) return ~Wide{0};
  const Wide rest = Wide{op.depth - 1} * op.slice;
  return rest + plane < rest ? ~Wide{0} : rest + plane;
}

// Numbers where sizes go wrong: around 0, around each power of two, around what makes a product of 2^64.
size_t OddSize(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0: return random() % 5;
    case 1: return (size_t{1} << random() % 64) + random() % 3 - 1;
    case 2: return ~size_t{0} / (random() % 17 + 1) + random() % 3;
    default: return random() >> random() % 64;
  }
}

TEST(FillBoxTest, SizesAreExactOrRefused) {
  constexpr Wide kMost = std::numeric_limits<size_t>::max();
  const uint64_t seed = 20261124;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 200000; ++i) {
    FillOp op{.pattern_size = static_cast<uint32_t>(random() % 16 + 1),
              .count = OddSize(random),
              .height = OddSize(random),
              .depth = OddSize(random)};
    op.pitch = random() % 3 ? OddSize(random) : op.count * op.pattern_size;
    op.slice = random() % 3 ? OddSize(random) : op.pitch * op.height;
    const Wide width = Wide{op.count} * op.pattern_size, span = SpanOf(op);
    const bool fits = width <= kMost && span <= kMost;
    const auto size = SizeOf(op);
    ASSERT_EQ(size.ok(), fits) << op.pattern_size << " x " << op.count << " x " << op.height << " x " << op.depth
                               << " by " << op.pitch << ", " << op.slice;
    ++(fits ? accepted : refused);
    if (!fits) {
      ASSERT_EQ(size.status().code(), kInvalid);
      continue;
    }
    ASSERT_EQ(size->width, static_cast<size_t>(width));
    ASSERT_EQ(size->span, static_cast<size_t>(span));
    ASSERT_EQ(size->bytes, span == 0 ? 0 : static_cast<size_t>(width * op.height * op.depth));
  }
  EXPECT_GT(accepted, 10000);
  EXPECT_GT(refused, 10000);
}

TEST(FillBoxTest, PatternsHave1To16Bytes) {
  for (const uint32_t size : {1u, 16u}) EXPECT_TRUE(SizeOf(FillOp{.pattern_size = size, .count = 1}).ok());
  for (const uint32_t size : {0u, 17u, 1u << 31}) {
    EXPECT_EQ(SizeOf(FillOp{.pattern_size = size, .count = 0}).status().code(), kInvalid) << size;
  }
}

TEST(FillBoxTest, ABoxThatLeavesTheAddressSpaceIsRefused) {
  FillOp op{.dst = reinterpret_cast<void*>(~uintptr_t{0} - 15), .pattern_size = 3, .count = 5};
  EXPECT_TRUE(SizeOf(op).ok());
  op.pattern_size = 2;
  op.count = 8;
  EXPECT_EQ(SizeOf(op).status().code(), kInvalid);
  op.count = 1;
  op.height = 2;
  op.pitch = 14;
  EXPECT_EQ(SizeOf(op).status().code(), kInvalid);
}

}  // namespace
}  // namespace penstock::driver::fill_box_test
