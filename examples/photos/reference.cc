// Works on pictures with a frame of one repeated pixel, and on rows and columns apart, so that a slip in the border or
// the weights of the functors cannot be repeated here.
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace photos {
namespace {

// One number a pixel of a picture with a frame: (width + 2) x (height + 2).
struct Framed {
  int64_t width, height;  // without the frame
  std::vector<int> values;

  // x in [-1, width], y in [-1, height]
  int& at(int64_t x, int64_t y) { return values[static_cast<size_t>((y + 1) * (width + 2) + x + 1)]; }
};

Framed AddFrame(const GreyPicture& picture) {
  Framed framed{picture.width, picture.height,
                std::vector<int>(static_cast<size_t>((picture.width + 2) * (picture.height + 2)))};
  auto source = picture.pixels.begin();
  for (int64_t y = 0; y < picture.height; ++y) {
    for (int64_t x = 0; x < picture.width; ++x) framed.at(x, y) = *source++;
    framed.at(-1, y) = framed.at(0, y);
    framed.at(picture.width, y) = framed.at(picture.width - 1, y);
  }
  for (int64_t x = -1; x <= picture.width; ++x) {
    framed.at(x, -1) = framed.at(x, 0);
    framed.at(x, picture.height) = framed.at(x, picture.height - 1);
  }
  return framed;
}

// a, b, c: weights of the pixel before, of itself, of the pixel behind; along a row.
Framed AlongRows(Framed in, int a, int b, int c) {
  Framed out = in;
  for (int64_t y = -1; y <= in.height; ++y) {
    for (int64_t x = 0; x < in.width; ++x) out.at(x, y) = a * in.at(x - 1, y) + b * in.at(x, y) + c * in.at(x + 1, y);
  }
  return out;
}

Framed AlongColumns(Framed in, int a, int b, int c) {
  Framed out = in;
  for (int64_t y = 0; y < in.height; ++y) {
    for (int64_t x = 0; x < in.width; ++x) out.at(x, y) = a * in.at(x, y - 1) + b * in.at(x, y) + c * in.at(x, y + 1);
  }
  return out;
}

template <class F>
GreyPicture MapPixels(int64_t width, int64_t height, F value) {
  GreyPicture picture{width, height, {}};
  picture.pixels.reserve(static_cast<size_t>(width * height));
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) picture.pixels.push_back(static_cast<uint8_t>(value(x, y)));
  }
  return picture;
}

}  // namespace

GreyPicture ReferenceGrey(std::span<const uint8_t> rgb, int64_t width, int64_t height) {
  auto next = rgb.begin();
  return MapPixels(width, height, [&](int64_t, int64_t) {
    const int red = *next++, green = *next++, blue = *next++;
    return (77 * red + 150 * green + 29 * blue + 128) / 256;
  });
}

GreyPicture ReferenceBlur(const GreyPicture& picture) {
  Framed sums = AlongColumns(AlongRows(AddFrame(picture), 1, 2, 1), 1, 2, 1);
  return MapPixels(picture.width, picture.height, [&](int64_t x, int64_t y) { return (sums.at(x, y) + 8) / 16; });
}

GreyPicture ReferenceSobel(const GreyPicture& picture) {
  const Framed framed = AddFrame(picture);
  Framed gx = AlongColumns(AlongRows(framed, -1, 0, 1), 1, 2, 1);
  Framed gy = AlongColumns(AlongRows(framed, 1, 2, 1), -1, 0, 1);
  return MapPixels(picture.width, picture.height, [&](int64_t x, int64_t y) {
    const double dx = gx.at(x, y), dy = gy.at(x, y);
    return std::min(255.0, std::floor(std::sqrt(dx * dx + dy * dy)));  // exact: the sum is an integer below 2^53
  });
}

GreyPicture ReferenceEdges(std::span<const uint8_t> rgb, int64_t width, int64_t height, int blur_passes) {
  GreyPicture picture = ReferenceGrey(rgb, width, height);
  for (int i = 0; i < blur_passes; ++i) picture = ReferenceBlur(picture);
  return ReferenceSobel(picture);
}

}  // namespace photos
