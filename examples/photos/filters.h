// The pixel functors of the job, written once for host devices and GPUs: grey, 3x3 blur, Sobel.
//
// Each is called once for every pixel of its output and is a pure function of its input, all in integers, so results
// are the same bit for bit wherever they run. Past the border they read the nearest pixel inside (clamped).
// reference.cc computes the same another way and shares nothing with this file.
//
// Threads: the functors have no state; the accesses declared for the node say who may touch the pixels when.
#pragma once

#include <cstdint>

#include "penstock/extent.h"
#include "penstock/view.h"

namespace photos {

struct Rgb {
  uint8_t r, g, b;
};
static_assert(sizeof(Rgb) == 3, "rows of Rgb are the rows that the decoders write");

PENSTOCK_HOST_DEVICE inline int64_t Clamp(int64_t i, int64_t size) { return i < 0 ? 0 : i < size ? i : size - 1; }

// Luma by the weights of ITU-R BT.601 in 256ths, rounded: (77 R + 150 G + 29 B + 128) / 256.
struct Grey {
  PENSTOCK_HOST_DEVICE void operator()(penstock::Index2 i, penstock::View<const Rgb> in,
                                       penstock::View<uint8_t> out) const {
    const Rgb p = in(i.y, i.x);
    out(i.y, i.x) = static_cast<uint8_t>((77 * p.r + 150 * p.g + 29 * p.b + 128) >> 8);
  }
};

// Binomial 3x3, weights 1 2 1 / 2 4 2 / 1 2 1, rounded: (sum + 8) / 16.
struct Blur {
  PENSTOCK_HOST_DEVICE void operator()(penstock::Index2 i, penstock::View<const uint8_t> in,
                                       penstock::View<uint8_t> out) const {
    int sum = 8;
    for (int dy = -1; dy <= 1; ++dy) {
      const uint8_t* row = in.data + Clamp(i.y + dy, in.height) * in.pitch;
      const int three = row[Clamp(i.x - 1, in.width)] + 2 * row[i.x] + row[Clamp(i.x + 1, in.width)];
      sum += dy == 0 ? 2 * three : three;
    }
    out(i.y, i.x) = static_cast<uint8_t>(sum >> 4);
  }
};

// Largest r with r * r <= n, for n < 2^16: bit by bit.
PENSTOCK_HOST_DEVICE inline int RootOf16Bits(int n) {
  int root = 0;
  for (int bit = 128; bit > 0; bit >>= 1) {
    const int next = root | bit;
    if (next * next <= n) root = next;
  }
  return root;
}

// Gradient magnitude of the 3x3 Sobel operators: min(255, floor(sqrt(gx^2 + gy^2))).
struct Sobel {
  PENSTOCK_HOST_DEVICE void operator()(penstock::Index2 i, penstock::View<const uint8_t> in,
                                       penstock::View<uint8_t> out) const {
    const uint8_t* above = in.data + Clamp(i.y - 1, in.height) * in.pitch;
    const uint8_t* here = in.data + i.y * in.pitch;
    const uint8_t* below = in.data + Clamp(i.y + 1, in.height) * in.pitch;
    const int64_t left = Clamp(i.x - 1, in.width), mid = i.x, right = Clamp(i.x + 1, in.width);
    const int gx = above[right] - above[left] + 2 * (here[right] - here[left]) + below[right] - below[left];
    const int gy = below[left] - above[left] + 2 * (below[mid] - above[mid]) + below[right] - above[right];
    const int square = gx * gx + gy * gy;
    out(i.y, i.x) = static_cast<uint8_t>(square >= 255 * 255 ? 255 : RootOf16Bits(square));
  }
};

}  // namespace photos
