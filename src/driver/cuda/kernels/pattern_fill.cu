// Fills memory with a repeated pattern of 1 to 16 bytes.
//
// The middle is written 16 bytes a thread, grid-stride, from a full line of memory on: a warp that begins within a line
// shares it with another, and writes at little more than half the speed. What a chunk of 16 bytes holds depends only on
// where in the pattern it begins (its phase, below `period`), so each block first makes a table of the 16 possible
// chunks. The up to 127 bytes before the middle and 15 after it are written by threads of block 0.
#include "src/driver/cuda/kernels/pattern_fill.h"

namespace penstock::driver {
namespace {

constexpr unsigned kChunk = 16, kLine = 128;

__device__ uint64_t Least(uint64_t a, uint64_t b) { return a < b ? a : b; }

}  // namespace

extern "C" __global__ void __launch_bounds__(kPatternFillThreads) PenstockPatternFill(PatternFill fill) {
  __shared__ alignas(16) unsigned char table[kChunk][kChunk];
  const unsigned t = threadIdx.x;
  table[t / kChunk][t % kChunk] = fill.pattern[(t / kChunk + t % kChunk) % fill.period];
  __syncthreads();

  const uint64_t before = Least((kLine - reinterpret_cast<uintptr_t>(fill.dst) % kLine) % kLine, fill.bytes);
  const uint64_t chunks = (fill.bytes - before) / kChunk;
  const uint64_t after = before + chunks * kChunk;  // where the rest begins
  if (blockIdx.x == 0 && t < before) fill.dst[t] = table[t % fill.period][0];
  if (blockIdx.x == 0 && t < fill.bytes - after) fill.dst[after + t] = table[(after + t) % fill.period][0];

  uint4* const middle = reinterpret_cast<uint4*>(fill.dst + before);
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * kPatternFillThreads;
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * kPatternFillThreads + t;
  const unsigned step = static_cast<unsigned>(stride * kChunk % fill.period);
  unsigned phase = static_cast<unsigned>((before + first * kChunk) % fill.period);
  for (uint64_t i = first; i < chunks; i += stride) {
    middle[i] = *reinterpret_cast<const uint4*>(table[phase]);
    phase += step;
    if (phase >= fill.period) phase -= fill.period;
  }
}

}  // namespace penstock::driver
