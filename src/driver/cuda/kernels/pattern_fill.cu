// Fills boxes of memory with a repeated pattern of 1 to 16 bytes.
//
// In each of the blocks along x, a team of threads shares a row. Its middle is written with 16 bytes per thread,
// grid-stride, beginning at a full cache line: a warp that begins inside a line shares it with another, and writes at
// little more than half the speed. The contents of a 16-byte chunk depend only on its phase in the pattern (below
// `period`), so each block first makes a table of the 16 possible chunks. The team of block 0 writes the up to 127
// bytes before the middle and 15 after it.
#include "src/driver/cuda/kernels/pattern_fill.h"

#include "penstock/detail/programmatic.h"

namespace penstock::driver {
namespace {

constexpr unsigned kChunk = 16, kLine = 128;

using Table = unsigned char[kChunk][kChunk];

__device__ uint64_t Least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Writes the part of a row that belongs to thread `t` of the block's team.
__device__ void FillRow(unsigned char* dst, const PatternFill& fill, const Table& table, unsigned t) {
  const uint64_t before = Least((kLine - reinterpret_cast<uintptr_t>(dst) % kLine) % kLine, fill.width);
  const uint64_t chunks = (fill.width - before) / kChunk;
  if (blockIdx.x == 0) {
    const uint64_t after = before + chunks * kChunk;  // begin of the remainder
    for (unsigned i = t; i < before; i += fill.team) dst[i] = table[i % fill.period][0];
    if (t < fill.width - after) dst[after + t] = table[(after + t) % fill.period][0];
  }
  uint4* const middle = reinterpret_cast<uint4*>(dst + before);
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * fill.team;
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * fill.team + t;
  if (first >= chunks) return;
  const unsigned step = static_cast<unsigned>(stride * kChunk % fill.period);
  unsigned phase = static_cast<unsigned>((before + first * kChunk) % fill.period);
  for (uint64_t i = first; i < chunks; i += stride) {
    middle[i] = *reinterpret_cast<const uint4*>(table[phase]);
    phase += step;
    if (phase >= fill.period) phase -= fill.period;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kPatternFillThreads) PenstockPatternFill(PatternFill fill) {
  detail::AwaitDependencies();
  __shared__ alignas(16) Table table;
  const unsigned t = threadIdx.x;
  table[t / kChunk][t % kChunk] = fill.pattern[(t / kChunk + t % kChunk) % fill.period];
  __syncthreads();

  const unsigned teams = kPatternFillThreads / fill.team;
  const uint64_t stride = static_cast<uint64_t>(gridDim.y) * teams;
  for (uint64_t row = static_cast<uint64_t>(blockIdx.y) * teams + t / fill.team; row < fill.rows; row += stride) {
    const uint64_t z = row / fill.height, y = row % fill.height;
    FillRow(fill.dst + z * fill.slice + y * fill.pitch, fill, table, t % fill.team);
  }
}

}  // namespace penstock::driver
