// Collapsed copies move the same bytes; sizes are judged by 128-bit arithmetic, and refused where they do not fit.
#include "src/driver/copy_box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace penstock::driver::copy_box_test {
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

// --- sizes ---

__extension__ using Wide = unsigned __int128;

// The last byte of a box that does not overlap itself, or nothing where it does.
std::optional<Wide> WideSpan(Wide width, Wide height, Wide depth, Wide pitch, Wide slice) {
  if (width == 0 || height == 0 || depth == 0) return Wide{0};
  const Wide plane = (height - 1) * pitch + width;
  if ((height > 1 && pitch < width) || (depth > 1 && slice < plane)) return std::nullopt;
  // Of numbers of 64 bits neither product overflows; their sum may.
  const Wide rest = (depth - 1) * slice;
  if (rest + plane < rest) return std::nullopt;
  return rest + plane;
}

// Numbers where sizes go wrong: around 0, around each power of two, around what makes a product of 2^64.
size_t OddSize(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0: return random() % 5;
    case 1: return (size_t{1} << random() % 64) + random() % 3 - 1;
    case 2: return ~size_t{0} / (random() % 9 + 1) + random() % 3;
    default: return random() >> random() % 64;
  }
}

TEST(SizeTest, SpansAreExactOrRefused) {
  const uint64_t seed = 20261122;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 200000; ++i) {
    const size_t w = OddSize(random), h = OddSize(random), d = OddSize(random);
    const size_t pitch = random() % 3 ? OddSize(random) : w, slice = random() % 3 ? OddSize(random) : pitch * h;
    const std::optional<Wide> wide = WideSpan(w, h, d, pitch, slice);
    const bool fits = wide && *wide <= std::numeric_limits<size_t>::max();
    const auto span = BytesSpanned(w, h, d, pitch, slice);
    ASSERT_EQ(span.ok(), fits) << w << " x " << h << " x " << d << " by " << pitch << ", " << slice;
    if (fits) {
      ASSERT_EQ(*span, static_cast<size_t>(*wide));
    }
    ++(fits ? accepted : refused);
  }
  EXPECT_GT(accepted, 10000);
  EXPECT_GT(refused, 10000);
}

TEST(SizeTest, CountsBytesAndBothSpans) {
  CopyOp op = Box(6, 5, 4, 8, 40);
  op.src_pitch = 10;
  op.src_slice = 60;
  const auto size = SizeOf(op);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->bytes, 120u);
  EXPECT_EQ(size->dst_span, 3 * 40 + 4 * 8 + 6u);
  EXPECT_EQ(size->src_span, 3 * 60 + 4 * 10 + 6u);
}

TEST(SizeTest, ABoxThatLeavesTheAddressSpaceIsRefused) {
  std::byte* const near_the_end = reinterpret_cast<std::byte*>(~uintptr_t{0} - 15);
  CopyOp op{.dst = near_the_end, .width = 15};
  EXPECT_TRUE(SizeOf(op).ok());
  op.width = 16;
  EXPECT_EQ(SizeOf(op).status().code(), absl::StatusCode::kInvalidArgument);
  std::swap(op.dst, *const_cast<void**>(&op.src));
  EXPECT_EQ(SizeOf(op).status().code(), absl::StatusCode::kInvalidArgument);
}

// --- batches ---

TEST(BatchSizeTest, SumsThePiecesAndFindsTheLargest) {
  const CopyPiece pieces[] = {{.width = 10}, {.width = 3, .height = 7, .dst_pitch = 3, .src_pitch = 4}, {.width = 0}};
  const auto size = SizeOf(BatchOp{.pieces = pieces, .count = 3});
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->bytes, 31u);
  EXPECT_EQ(size->largest, 21u);
}

TEST(BatchSizeTest, NamesThePieceThatIsWrong) {
  const CopyPiece pieces[] = {{.width = 10}, {.width = 3, .height = 7, .dst_pitch = 2, .src_pitch = 4}};
  const auto size = SizeOf(BatchOp{.pieces = pieces, .count = 2});
  EXPECT_EQ(size.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(size.status().ToString(), testing::HasSubstr("piece 1"));
}

TEST(BatchSizeTest, SumsThatOverflowPeersAndBatchesWithoutATableAreRefused) {
  const size_t half = size_t{1} << 63;
  const CopyPiece pieces[] = {{.width = half}, {.width = half}};
  EXPECT_TRUE(SizeOf(BatchOp{.pieces = pieces, .count = 1}).ok());
  EXPECT_EQ(SizeOf(BatchOp{.pieces = pieces, .count = 2}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SizeOf(BatchOp{.kind = CopyKind::kPeer, .pieces = pieces, .count = 1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SizeOf(BatchOp{.count = 1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(SizeOf(BatchOp{}).ok());
}

TEST(PieceTest, OfABoxMovesTheSameBytesAsTheBox) {
  const uint32_t seed = 20261123;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 1000; ++i) {
    CopyOp op = Box(random() % 4 + 1, random() % 3 + 1, random() % 3 + 1, 0, 0);
    op.dst_pitch = op.width + random() % 2;
    op.src_pitch = op.width + random() % 2;
    op.dst_slice = op.dst_pitch * op.height + random() % 2;
    op.src_slice = op.src_pitch * op.height + random() % 2;
    const auto piece = PieceOf(op);
    ASSERT_TRUE(piece.ok()) << piece.status();
    ASSERT_EQ(BytesOf(CopyOf(*piece, {})), BytesOf(op));
  }
}

TEST(PieceTest, OfTooManyRowsIsRefused) {
  const size_t rows = size_t{1} << 32;
  EXPECT_EQ(PieceOf(Box(4, rows, 1, 8, 0)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PieceOf(Box(4, 2, rows, 8, 32)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(PieceOf(Box(4, rows - 1, 1, 8, 0)).ok());
  EXPECT_TRUE(PieceOf(Box(4, rows, 1, 4, 0)).ok()) << "dense rows are one row";
}

}  // namespace
}  // namespace penstock::driver::copy_box_test
