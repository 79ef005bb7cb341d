// The whole chain from photograph to edges, plain and single-threaded: what every other way of running the job must
// equal bit for bit. Shares no code with filters.h. Used by the tests and by --verify.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace photos {

// A grey picture with its rows one behind the other.
struct GreyPicture {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels;
};

// `rgb` holds rows of 3 * width bytes.
GreyPicture ReferenceGrey(std::span<const uint8_t> rgb, int64_t width, int64_t height);
GreyPicture ReferenceBlur(const GreyPicture& picture);
GreyPicture ReferenceSobel(const GreyPicture& picture);

// Grey, `blur_passes` blurs, Sobel.
GreyPicture ReferenceEdges(std::span<const uint8_t> rgb, int64_t width, int64_t height, int blur_passes);

}  // namespace photos
