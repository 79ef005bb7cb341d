// The pure half of copies: a collapsed copy moves the same bytes. Needs no GPU and no driver.
#include "src/driver/copy_box.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace penstock::driver {
namespace {

// Which byte goes where, in order.
std::vector<std::pair<size_t, size_t>> BytesOf(const CopyOp& op) {
  std::vector<std::pair<size_t, size_t>> bytes;
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      for (size_t x = 0; x < op.width; ++x) {
        bytes.emplace_back(z * op.dst_slice + y * op.dst_pitch + x, z * op.src_slice + y * op.src_pitch + x);
      }
    }
  }
  return bytes;
}

CopyOp Box(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
  return {.width = width,
          .height = height,
          .depth = depth,
          .dst_pitch = pitch,
          .src_pitch = pitch,
          .dst_slice = slice,
          .src_slice = slice};
}

TEST(CollapseTest, DenseBoxBecomesALine) {
  const CopyOp line = Collapse(Box(6, 5, 4, 6, 30));
  EXPECT_EQ(line.width, 120u);
  EXPECT_EQ(line.height, 1u);
  EXPECT_EQ(line.depth, 1u);
}

TEST(CollapseTest, EvenRowsBecomeAPlane) {
  const CopyOp plane = Collapse(Box(6, 5, 4, 8, 40));
  EXPECT_EQ(plane.width, 6u);
  EXPECT_EQ(plane.height, 20u);
  EXPECT_EQ(plane.depth, 1u);
  EXPECT_EQ(plane.dst_pitch, 8u);
}

TEST(CollapseTest, StackOfSingleRowsBecomesAPlane) {
  const CopyOp plane = Collapse(Box(6, 1, 4, 0, 40));
  EXPECT_EQ(plane.height, 4u);
  EXPECT_EQ(plane.depth, 1u);
  EXPECT_EQ(plane.dst_pitch, 40u);
  EXPECT_EQ(plane.src_pitch, 40u);
}

TEST(CollapseTest, PitchOfOneSideAloneKeepsTheRows) {
  CopyOp op = Box(6, 5, 1, 6, 0);
  op.src_pitch = 7;
  EXPECT_EQ(Collapse(op).height, 5u);
}

TEST(CollapseTest, SizesThatOverflowAreNotJoined) {
  const size_t huge = size_t{1} << 40;
  const CopyOp op = Collapse(Box(huge, huge, 1, huge, 0));
  EXPECT_EQ(op.width, huge);
  EXPECT_EQ(op.height, huge);
}

TEST(CollapseTest, MovesTheSameBytesAsBefore) {
  const uint32_t seed = 20261121;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto upto = [&](size_t least, size_t most) {
    return std::uniform_int_distribution<size_t>(least, most)(random);
  };
  int lines = 0, planes = 0, boxes = 0;
  for (int i = 0; i < 5000; ++i) {
    CopyOp op = Box(upto(1, 4), upto(1, 3), upto(1, 3), 0, 0);
    op.dst_pitch = op.width + upto(0, 1);
    op.src_pitch = op.width + upto(0, 1);
    op.dst_slice = op.dst_pitch * op.height + upto(0, 1) * upto(0, 3);
    op.src_slice = op.src_pitch * op.height + upto(0, 1) * upto(0, 3);
    const CopyOp least = Collapse(op);
    ASSERT_EQ(BytesOf(least), BytesOf(op)) << op.width << "x" << op.height << "x" << op.depth;
    ++(least.depth > 1 ? boxes : least.height > 1 ? planes : lines);
  }
  EXPECT_GT(lines, 100);
  EXPECT_GT(planes, 100);
  EXPECT_GT(boxes, 100);
}

}  // namespace
}  // namespace penstock::driver
