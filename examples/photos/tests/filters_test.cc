// The functors against the independent reference, bit for bit, on random pictures of all awkward sizes and pitches.
#include "examples/photos/filters.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "examples/photos/reference.h"
#include "examples/photos/tests/pictures.h"

namespace photos::filters_test {
namespace {

// A picture whose rows are `pitch` elements apart; what lies between is a guard.
template <class T>
struct Plane {
  int64_t width, height, pitch;
  std::vector<T> data;

  Plane(int64_t w, int64_t h, int64_t extra, T guard)
      : width(w), height(h), pitch(w + extra), data(static_cast<size_t>(pitch * h), guard) {}
  penstock::View<T> view() { return {data.data(), 1, height, width, pitch, height * pitch}; }
  penstock::View<const T> read() const { return {data.data(), 1, height, width, pitch, height * pitch}; }
};

constexpr uint8_t kGuard = 0xEE;

template <class Filter, class In>
Plane<uint8_t> Apply(const Filter& filter, const Plane<In>& in, int64_t extra) {
  Plane<uint8_t> out(in.width, in.height, extra, kGuard);
  for (int64_t y = 0; y < in.height; ++y) {
    for (int64_t x = 0; x < in.width; ++x) filter(penstock::Index2{y, x}, in.read(), out.view());
  }
  return out;
}

// The rows without what lies between them, after checking that it is untouched.
GreyPicture ToPicture(const Plane<uint8_t>& plane) {
  GreyPicture picture{plane.width, plane.height, {}};
  for (int64_t y = 0; y < plane.height; ++y) {
    for (int64_t x = 0; x < plane.pitch; ++x) {
      const uint8_t value = plane.data[static_cast<size_t>(y * plane.pitch + x)];
      if (x < plane.width) {
        picture.pixels.push_back(value);
      } else {
        EXPECT_EQ(value, kGuard);
      }
    }
  }
  return picture;
}

Plane<uint8_t> ToPlane(const GreyPicture& picture, int64_t extra) {
  Plane<uint8_t> plane(picture.width, picture.height, extra, kGuard);
  for (int64_t y = 0; y < picture.height; ++y) {
    for (int64_t x = 0; x < picture.width; ++x) {
      plane.view()(y, x) = picture.pixels[static_cast<size_t>(y * picture.width + x)];
    }
  }
  return plane;
}

class FiltersTest : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  int64_t width() const { return GetParam().first; }
  int64_t height() const { return GetParam().second; }

  GreyPicture RandomGrey() {
    return {width(), height(), RandomBytes(&random_, static_cast<size_t>(width() * height()))};
  }

  std::mt19937 random_{4711};
};

TEST_P(FiltersTest, GreyEqualsReference) {
  const std::vector<uint8_t> rgb = RandomBytes(&random_, static_cast<size_t>(width() * height() * 3));
  Plane<Rgb> in(width(), height(), 3, Rgb{1, 2, 3});
  for (int64_t y = 0; y < height(); ++y) {
    for (int64_t x = 0; x < width(); ++x) {
      const uint8_t* p = &rgb[static_cast<size_t>(3 * (y * width() + x))];
      in.view()(y, x) = {p[0], p[1], p[2]};
    }
  }
  EXPECT_EQ(ToPicture(Apply(Grey{}, in, 5)).pixels, ReferenceGrey(rgb, width(), height()).pixels);
}

TEST_P(FiltersTest, BlurEqualsReference) {
  for (int round = 0; round < 3; ++round) {
    const GreyPicture picture = RandomGrey();
    EXPECT_EQ(ToPicture(Apply(Blur{}, ToPlane(picture, 2), 5)).pixels, ReferenceBlur(picture).pixels);
  }
}

TEST_P(FiltersTest, SobelEqualsReference) {
  for (int round = 0; round < 3; ++round) {
    GreyPicture picture = RandomGrey();
    // Also with small differences, where the root is not clamped.
    if (round > 0) {
      for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(100 + value % (round == 1 ? 4 : 40));
    }
    EXPECT_EQ(ToPicture(Apply(Sobel{}, ToPlane(picture, 2), 5)).pixels, ReferenceSobel(picture).pixels);
  }
}

TEST_P(FiltersTest, ChainEqualsReference) {
  const std::vector<uint8_t> rgb = RandomBytes(&random_, static_cast<size_t>(width() * height() * 3));
  for (int blur : {0, 1, 4}) {
    Plane<Rgb> in(width(), height(), 0, Rgb{});
    for (size_t i = 0; i < in.data.size(); ++i) in.data[i] = {rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]};
    Plane<uint8_t> plane = Apply(Grey{}, in, 0);
    for (int i = 0; i < blur; ++i) plane = Apply(Blur{}, plane, 0);
    EXPECT_EQ(ToPicture(Apply(Sobel{}, plane, 0)).pixels, ReferenceEdges(rgb, width(), height(), blur).pixels) << blur;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, FiltersTest,
                         testing::Values(std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}, std::pair{2, 2},
                                         std::pair{1, 17}, std::pair{19, 1}, std::pair{3, 3}, std::pair{5, 31},
                                         std::pair{67, 43}));

// The reference itself, on pictures whose results are known without any code.
TEST(ReferenceTest, GreyOfGreyIsItself) {
  std::vector<uint8_t> rgb;
  for (int value = 0; value < 256; ++value) rgb.insert(rgb.end(), 3, static_cast<uint8_t>(value));
  const GreyPicture grey = ReferenceGrey(rgb, 256, 1);
  for (int value = 0; value < 256; ++value) EXPECT_EQ(grey.pixels[static_cast<size_t>(value)], value);
}

TEST(ReferenceTest, GreyWeighsGreenMost) {
  EXPECT_EQ(ReferenceGrey(std::vector<uint8_t>{255, 0, 0}, 1, 1).pixels[0], 77);
  EXPECT_EQ(ReferenceGrey(std::vector<uint8_t>{0, 255, 0}, 1, 1).pixels[0], 149);
  EXPECT_EQ(ReferenceGrey(std::vector<uint8_t>{0, 0, 255}, 1, 1).pixels[0], 29);
}

TEST(ReferenceTest, BlurKeepsFlatPicturesAndSpreadsAPoint) {
  EXPECT_EQ(ReferenceBlur({3, 2, std::vector<uint8_t>(6, 200)}).pixels, std::vector<uint8_t>(6, 200));
  EXPECT_EQ(ReferenceBlur({3, 3, {0, 0, 0, 0, 160, 0, 0, 0, 0}}).pixels,
            (std::vector<uint8_t>{10, 20, 10, 20, 40, 20, 10, 20, 10}));
}

TEST(ReferenceTest, SobelIsNothingOnFlatPicturesAndClampedOnEdges) {
  EXPECT_EQ(ReferenceSobel({2, 2, std::vector<uint8_t>(4, 9)}).pixels, std::vector<uint8_t>(4, 0));
  EXPECT_EQ(ReferenceSobel({3, 1, {0, 10, 255}}).pixels, (std::vector<uint8_t>{40, 255, 255}));
  EXPECT_EQ(ReferenceSobel({2, 2, {0, 0, 0, 10}}).pixels, (std::vector<uint8_t>{14, 31, 31, 42}));
}

}  // namespace
}  // namespace photos::filters_test
