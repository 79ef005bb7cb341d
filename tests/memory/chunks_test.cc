// Chunks: every byte of a box once and in order, no chunk larger than its block; against brute force.
#include "src/memory/chunks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace penstock::memory::chunks_test {
namespace {

using driver::CopyOp;
using Move = std::pair<uintptr_t, uintptr_t>;  // a byte: from, to

std::vector<Move> MovesOf(const CopyOp& op) {
  std::vector<Move> moves;
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      for (size_t x = 0; x < op.width; ++x) {
        moves.emplace_back(reinterpret_cast<uintptr_t>(op.src) + z * op.src_slice + y * op.src_pitch + x,
                           reinterpret_cast<uintptr_t>(op.dst) + z * op.dst_slice + y * op.dst_pitch + x);
      }
    }
  }
  return moves;
}

CopyOp BoxOf(size_t width, size_t height, size_t depth, size_t src_gap, size_t dst_gap) {
  CopyOp op;
  op.src = reinterpret_cast<const void*>(uintptr_t{0x10000});
  op.dst = reinterpret_cast<void*>(uintptr_t{0x900000});
  op.width = width;
  op.height = height;
  op.depth = depth;
  op.src_pitch = width + src_gap;
  op.dst_pitch = width + dst_gap;
  op.src_slice = op.src_pitch * height + 3 * src_gap;
  op.dst_slice = op.dst_pitch * height + 5 * dst_gap;
  return op;
}

std::vector<Move> MovesOfChunks(const Chunks& chunks, size_t chunk_bytes) {
  std::vector<Move> moves;
  for (size_t c = 0; c < chunks.count(); ++c) {
    const CopyOp chunk = chunks[c];
    EXPECT_LE(chunk.width * chunk.height * chunk.depth, chunk_bytes);
    EXPECT_GT(chunk.width * chunk.height * chunk.depth, 0u);
    const std::vector<Move> more = MovesOf(chunk);
    moves.insert(moves.end(), more.begin(), more.end());
  }
  return moves;
}

TEST(Chunks, CoverRandomBoxesOnceAndInOrder) {
  std::mt19937_64 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int i = 0; i < 3000; ++i) {
    const CopyOp op = BoxOf(1 + below(24), 1 + below(6), 1 + below(5), below(3) * below(4), below(3) * below(4));
    const size_t chunk_bytes = 1 + below(64);
    SCOPED_TRACE(testing::Message() << op.width << " x " << op.height << " x " << op.depth << " in " << chunk_bytes);
    ASSERT_EQ(MovesOfChunks(Chunks(op, chunk_bytes), chunk_bytes), MovesOf(op));
  }
}

TEST(Chunks, OfAnEmptyBoxAreNone) {
  EXPECT_EQ(Chunks(BoxOf(0, 4, 4, 1, 1), 16).count(), 0u);
  EXPECT_EQ(Chunks(BoxOf(4, 0, 4, 1, 1), 16).count(), 0u);
  EXPECT_EQ(Chunks(BoxOf(4, 4, 0, 1, 1), 16).count(), 0u);
  EXPECT_EQ(Chunks().count(), 0u);
}

TEST(Chunks, AreAsFewAsTheBoxAllows) {
  EXPECT_EQ(Chunks(BoxOf(100, 1, 1, 0, 0), 100).count(), 1u);
  EXPECT_EQ(Chunks(BoxOf(101, 1, 1, 0, 0), 100).count(), 2u);
  EXPECT_EQ(Chunks(BoxOf(10, 10, 10, 0, 0), 100).count(), 10u);  // dense: one row of 1000
  EXPECT_EQ(Chunks(BoxOf(10, 10, 10, 6, 0), 300).count(), 4u);   // three slices a chunk
  EXPECT_EQ(Chunks(BoxOf(10, 10, 10, 6, 0), 45).count(), 30u);   // four rows a chunk
  EXPECT_EQ(Chunks(BoxOf(10, 10, 10, 6, 0), 4).count(), 300u);   // three chunks a row
}

TEST(Chunks, LieDenselyInTheirBlock) {
  const CopyOp op = BoxOf(5, 4, 3, 2, 7);
  char block[60];
  const CopyOp in = IntoBlock(op, block), out = OutOfBlock(op, block);
  const std::vector<Move> moves = MovesOf(op), to_block = MovesOf(in), from_block = MovesOf(out);
  for (size_t i = 0; i < moves.size(); ++i) {
    EXPECT_EQ(to_block[i], Move(moves[i].first, reinterpret_cast<uintptr_t>(block) + i));
    EXPECT_EQ(from_block[i], Move(reinterpret_cast<uintptr_t>(block) + i, moves[i].second));
  }
}

}  // namespace
}  // namespace penstock::memory::chunks_test
