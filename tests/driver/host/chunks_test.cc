#include "src/driver/host/chunks.h"

#include <gtest/gtest.h>

#include <limits>

namespace penstock::driver::host::chunks_test {
namespace {

TEST(ChunksTest, EveryUnitIsInExactlyOneChunkAndSizesDifferByOne) {
  for (int64_t units = 1; units <= 200; ++units) {
    for (int chunks = 1; chunks <= 40; ++chunks) {
      int64_t next = 0, shortest = units, longest = 0;
      for (int i = 0; i < chunks; ++i) {
        const UnitRange part = ChunkRange(units, chunks, i);
        ASSERT_EQ(part.first, next) << units << " units in " << chunks;
        next = part.end;
        shortest = std::min(shortest, part.end - part.first);
        longest = std::max(longest, part.end - part.first);
      }
      ASSERT_EQ(next, units);
      ASSERT_LE(longest - shortest, 1);
    }
  }
}

TEST(ChunksTest, HugeCountsDoNotOverflow) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ChunkRange(most, 64, 63).end, most);
  EXPECT_EQ(ChunkCount(most, most, 4096, 4), 4 * kChunksPerThread);
}

TEST(ChunksTest, NothingToDoIsNoChunk) { EXPECT_EQ(ChunkCount(0, 100, 10, 4), 0); }

TEST(ChunksTest, SmallWorkIsOneChunk) {
  EXPECT_EQ(ChunkCount(4095, 1, 4096, 8), 1);
  EXPECT_EQ(ChunkCount(8191, 1, 4096, 8), 1);
  EXPECT_EQ(ChunkCount(8192, 1, 4096, 8), 2);
}

TEST(ChunksTest, OneThreadTakesOneChunk) { EXPECT_EQ(ChunkCount(1 << 20, 1, 4096, 1), 1); }

TEST(ChunksTest, ARowIsNeverSplit) { EXPECT_EQ(ChunkCount(3, 1 << 20, 4096, 8), 3); }

}  // namespace
}  // namespace penstock::driver::host::chunks_test
