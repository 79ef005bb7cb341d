// Copies many boxes of bytes concurrently, across the bus too: pinned memory is mapped, so a thread's load or store is
// a transfer, and many in flight fill the bus.
//
// A box of wide rows is cut into lines of one sweep of a team, which begin at multiples of 16 bytes of the destination.
// A line is copied in the widest words that both sides allow, with the rest at its ends byte by byte. If rows are
// narrow, a line would occupy few threads of a team: the words of all rows are then dealt out, in the widest size that
// every row allows.
#include "src/driver/cuda/kernels/gather.h"

#include "penstock/detail/programmatic.h"

namespace penstock::driver {
namespace {

constexpr unsigned kWidest = 16;  // bytes in the widest word
constexpr uint64_t kShiftedBytes = 256;  // line length from which shifting is faster than single bytes

struct Team {
  unsigned lane, threads;  // of this team
  unsigned part, parts;  // which part of the piece the team copies
};

__device__ uint64_t Fewer(uint64_t a, uint64_t b) { return a < b ? a : b; }
// a / b, of which most b are 1, and a division takes longer than the rest of a small copy.
__device__ uint64_t Over(uint64_t a, unsigned b) { return b == 1 ? a : a / b; }
// The largest power of two, at most 16, that divides every value or-ed into `bits`.
__device__ unsigned WordFor(uint64_t bits) { return static_cast<unsigned>((bits | kWidest) & (~(bits | kWidest) + 1)); }

// Calls f(Word{}) with a word type of `bytes` bytes.
template <class F>
__device__ void WithWord(unsigned bytes, F f) {
  switch (bytes) {
    case 16: return f(uint4{});
    case 8: return f(uint2{});
    case 4: return f(uint32_t{});
    case 2: return f(uint16_t{});
    default: return f(uint8_t{});
  }
}

template <class Word>
__device__ void CopyWords(unsigned char* dst, const unsigned char* src, uint64_t words, const Team& team) {
  Word* const to = reinterpret_cast<Word*>(dst);
  const Word* const from = reinterpret_cast<const Word*>(src);
  for (uint64_t i = team.lane; i < words; i += kGatherWords * team.threads) {
    Word held[kGatherWords];
#pragma unroll
    for (unsigned k = 0; k < kGatherWords; ++k) {
      if (i + k * team.threads < words) held[k] = from[i + k * team.threads];
    }
#pragma unroll
    for (unsigned k = 0; k < kGatherWords; ++k) {
      if (i + k * team.threads < words) to[i + k * team.threads] = held[k];
    }
  }
}

// Copies 4-byte words whose source is not aligned: each is assembled from two source words. `dst` is a multiple of 4,
// `src` is not; the whole source words that contain `src` and the byte after the last must be readable.
__device__ void CopyShifted(unsigned char* dst, const unsigned char* src, uint64_t words, const Team& team) {
  const unsigned shift = static_cast<unsigned>(reinterpret_cast<uintptr_t>(src) % 4);
  uint32_t* const to = reinterpret_cast<uint32_t*>(dst);
  const uint32_t* const from = reinterpret_cast<const uint32_t*>(src - shift);
  for (uint64_t i = team.lane; i < words; i += kGatherWords * team.threads) {
    uint32_t low[kGatherWords], high[kGatherWords];
#pragma unroll
    for (unsigned k = 0; k < kGatherWords; ++k) {
      if (i + k * team.threads < words) low[k] = from[i + k * team.threads], high[k] = from[i + k * team.threads + 1];
    }
#pragma unroll
    for (unsigned k = 0; k < kGatherWords; ++k) {
      if (i + k * team.threads < words) to[i + k * team.threads] = __funnelshift_r(low[k], high[k], 8 * shift);
    }
  }
}

// For lines whose sides are misaligned to each other. At least 16 bytes.
__device__ void CopyLineShifted(unsigned char* to, const unsigned char* from, uint64_t bytes, const Team& team) {
  // Excludes one more word at both ends, so that no word is read that has no byte of the source.
  const unsigned before = static_cast<unsigned>((4 - reinterpret_cast<uintptr_t>(to) % 4) % 4 + 4);
  const uint64_t words = (bytes - before - 4) / 4;
  const unsigned after = static_cast<unsigned>(bytes - before - 4 * words);
  const uint64_t last = bytes - after + team.lane;
  unsigned char first_byte = 0, last_byte = 0;
  if (team.lane < before) first_byte = from[team.lane];
  if (team.lane < after) last_byte = from[last];
  CopyShifted(to + before, from + before, words, team);
  if (team.lane < before) to[team.lane] = first_byte;
  if (team.lane < after) to[last] = last_byte;
}

__device__ void CopyLine(unsigned char* to, const unsigned char* from, uint64_t bytes, const Team& team) {
  const auto at = reinterpret_cast<uintptr_t>(to);
  const unsigned word = WordFor(at - reinterpret_cast<uintptr_t>(from));
  if (word < 4 && bytes >= kShiftedBytes) return CopyLineShifted(to, from, bytes, team);
  const unsigned before = static_cast<unsigned>(Fewer((word - at) & (word - 1), bytes));
  const unsigned after = static_cast<unsigned>(bytes - before) & (word - 1);
  const uint64_t last = bytes - after + team.lane;
  // Both ends are read before the middle and written after it, so that no thread waits for them alone.
  unsigned char first_byte = 0, last_byte = 0;
  if (team.lane < before) first_byte = from[team.lane];
  if (team.lane < after) last_byte = from[last];
  WithWord(word, [&](auto w) {
    CopyWords<decltype(w)>(to + before, from + before, (bytes - before - after) / sizeof(w), team);
  });
  if (team.lane < before) to[team.lane] = first_byte;
  if (team.lane < after) to[last] = last_byte;
}

// Rows of at least a sweep's width, each cut into lines.
__device__ void CopyWideRows(const CopyPiece& box, const Team& team) {
  const uint64_t sweep = uint64_t{kGatherWords} * kWidest * team.threads;
  const uint64_t lines = (box.width + kWidest - 1) / sweep + 1;  // one more than the row has if it begins inside a word
  const uint64_t all = lines * box.height * box.depth;
  for (uint64_t i = team.part; i < all; i += team.parts) {
    const uint64_t row = i / lines, y = row % box.height, z = row / box.height;
    unsigned char* const to = static_cast<unsigned char*>(box.dst) + z * box.dst_slice + y * box.dst_pitch;
    const unsigned char* const from =
        static_cast<const unsigned char*>(box.src) + z * box.src_slice + y * box.src_pitch;
    const uint64_t shift = reinterpret_cast<uintptr_t>(to) % kWidest;
    const uint64_t line = i % lines, begin = line == 0 ? 0 : line * sweep - shift;
    const uint64_t end = Fewer((line + 1) * sweep - shift, box.width);
    if (begin < end) CopyLine(to + begin, from + begin, end - begin, team);
  }
}

// A position in a box of narrow rows: word x of row y of slice z.
struct Place {
  uint64_t x, y, z;
};

// The words of all rows in sequence; a part takes every parts-th stretch of a team's width.
template <class Word>
__device__ void CopyNarrowRows(const CopyPiece& box, const Team& team) {
  const uint64_t width = box.width / sizeof(Word), words = width * box.height * box.depth;
  const uint64_t stride = uint64_t{team.threads} * team.parts;
  const auto place_of = [&](uint64_t i) { return Place{i % width, i / width % box.height, i / width / box.height}; };
  const Place step = place_of(stride);
  uint64_t i = uint64_t{team.threads} * team.part + team.lane;
  Place at = place_of(i);
  const auto advance = [&] {  // without division
    at.x += step.x;
    at.y += step.y;
    at.z += step.z;
    if (at.x >= width) at.x -= width, ++at.y;
    if (at.y >= box.height) at.y -= box.height, ++at.z;
  };
  while (i < words) {
    Word held[kGatherWords];
    Word* to[kGatherWords];
#pragma unroll
    for (unsigned k = 0; k < kGatherWords; ++k, i += stride, advance()) {
      if (i >= words) continue;
      to[k] =
          reinterpret_cast<Word*>(static_cast<unsigned char*>(box.dst) + at.z * box.dst_slice + at.y * box.dst_pitch) +
          at.x;
      held[k] = reinterpret_cast<const Word*>(static_cast<const unsigned char*>(box.src) + at.z * box.src_slice +
                                              at.y * box.src_pitch)[at.x];
    }
#pragma unroll
    for (unsigned k = 0; k < kGatherWords; ++k) {
      if (i - (kGatherWords - k) * stride < words) *to[k] = held[k];
    }
  }
}

__device__ void CopyPart(const CopyPiece& box, const Team& team) {
  if (box.width == 0 || box.height == 0 || box.depth == 0) return;
  if (box.height == 1 && box.depth == 1) {
    if (box.width > uint64_t{kGatherWords} * kWidest * team.threads) return CopyWideRows(box, team);
    if (team.part > 0) return;
    // One sweep, without the divisions that find a line's place.
    return CopyLine(static_cast<unsigned char*>(box.dst), static_cast<const unsigned char*>(box.src), box.width, team);
  }
  uint64_t bits = reinterpret_cast<uintptr_t>(box.dst) | reinterpret_cast<uintptr_t>(box.src) | box.width;
  if (box.height > 1) bits |= box.dst_pitch | box.src_pitch;
  if (box.depth > 1) bits |= box.dst_slice | box.src_slice;
  const unsigned word = WordFor(bits);
  if (box.width >= uint64_t{kGatherWords} * word * team.threads) return CopyWideRows(box, team);
  WithWord(word, [&](auto w) { CopyNarrowRows<decltype(w)>(box, team); });
}

// Synchronizes the block. compute-sanitizer's synccheck rejects a barrier that the threads of a warp come to one by
// one.
__device__ void Meet() {
  __syncwarp();
  __syncthreads();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kGatherThreads) PenstockGather(Gather gather) {
  constexpr unsigned kTeams = kGatherThreads / 32, kPieceWords = sizeof(CopyPiece) / sizeof(uint64_t);
  __shared__ alignas(CopyPiece) uint64_t held[kTeams][kPieceWords];
  const unsigned teams = kGatherThreads / gather.team, mine = threadIdx.x / gather.team;
  Team team{threadIdx.x % gather.team, gather.team, 0, gather.parts};
  const uint64_t units = gather.count * gather.parts;
  // One warp of a team reads its piece from the table in one transaction, since the table is across the bus.
  const auto hold = [&](uint64_t unit) {
    if (unit < units && team.lane < kPieceWords) {
      held[mine][team.lane] = reinterpret_cast<const uint64_t*>(gather.pieces + Over(unit, gather.parts))[team.lane];
    }
  };
  uint64_t unit = uint64_t{blockIdx.x} * teams + mine;
  hold(unit);  // no kernel writes a table, so there is nothing to await
  detail::AwaitDependencies();
  for (; unit - mine < units; unit += uint64_t{gridDim.x} * teams) {
    Meet();
    if (unit < units) {
      team.part = static_cast<unsigned>(unit - Over(unit, gather.parts) * gather.parts);
      CopyPart(*reinterpret_cast<const CopyPiece*>(held[mine]), team);
    }
    Meet();
    hold(unit + uint64_t{gridDim.x} * teams);
  }
}

}  // namespace penstock::driver
