// Every kind of file the job may meet, decoded to pixels known beforehand, or refused by name.
#include "examples/photos/image_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <jpeglib.h>

#include "examples/photos/tests/pictures.h"

namespace photos::image_io_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Both steps; fails the test where either fails.
std::vector<uint8_t> Decode(const std::string& path) {
  absl::StatusOr<ImageInfo> info = ReadImageInfo(path);
  EXPECT_TRUE(info.ok()) << info.status();
  if (!info.ok()) return {};
  std::vector<uint8_t> rgb(static_cast<size_t>(info->rgb_bytes()), 0xAA);
  const absl::Status status = DecodeRgb(path, *info, rgb);
  EXPECT_TRUE(status.ok()) << status;
  return rgb;
}

// The first error of both steps.
absl::Status DecodeError(const std::string& path) {
  absl::StatusOr<ImageInfo> info = ReadImageInfo(path);
  if (!info.ok()) return info.status();
  std::vector<uint8_t> rgb(static_cast<size_t>(info->rgb_bytes()));
  return DecodeRgb(path, *info, rgb);
}

int MaxDifference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  if (a.size() != b.size()) return 256;
  int most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

class ImageIoTest : public testing::Test {
 protected:
  TempFolder folder_;
  std::mt19937 random_{20240117};
};

// A PNG of `samples` a pixel and `depth` bits, random pixels; every sample on bytes of its own.
PngFile RandomPng(std::mt19937* random, int width, int height, int color_type, int depth, int samples) {
  PngFile png;
  png.width = width;
  png.height = height;
  png.color_type = color_type;
  png.depth = depth;
  png.rows = RandomBytes(random, static_cast<size_t>(width * height * samples * (depth / 8)));
  return png;
}

// Nearest 8-bit value of a 16-bit sample.
uint8_t To8(uint64_t value) { return static_cast<uint8_t>((value * 255 + 32767) / 65535); }
unsigned Sample16(const std::vector<uint8_t>& rows, size_t i) { return rows[2 * i] * 256u + rows[2 * i + 1]; }

TEST_F(ImageIoTest, DecodesRgbPngToItsPixels) {
  const PngFile png = RandomPng(&random_, 37, 23, PNG_COLOR_TYPE_RGB, 8, 3);
  WritePng(folder_ / "a.png", png);
  absl::StatusOr<ImageInfo> info = ReadImageInfo(folder_ / "a.png");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(*info, (ImageInfo{ImageFormat::kPng, 37, 23}));
  EXPECT_EQ(Decode(folder_ / "a.png"), png.rows);
}

TEST_F(ImageIoTest, DecodesOnePixel) {
  const PngFile png = RandomPng(&random_, 1, 1, PNG_COLOR_TYPE_RGB, 8, 3);
  WritePng(folder_ / "a.png", png);
  EXPECT_EQ(Decode(folder_ / "a.png"), png.rows);
}

TEST_F(ImageIoTest, DecodesInterlacedPngLikeThePlainOne) {
  PngFile png = RandomPng(&random_, 37, 23, PNG_COLOR_TYPE_RGB, 8, 3);
  png.interlaced = true;
  WritePng(folder_ / "a.png", png);
  EXPECT_EQ(Decode(folder_ / "a.png"), png.rows);
}

TEST_F(ImageIoTest, DecodesGreyPngToEqualChannels) {
  const PngFile png = RandomPng(&random_, 19, 7, PNG_COLOR_TYPE_GRAY, 8, 1);
  WritePng(folder_ / "a.png", png);
  std::vector<uint8_t> expected;
  for (uint8_t grey : png.rows) expected.insert(expected.end(), 3, grey);
  EXPECT_EQ(Decode(folder_ / "a.png"), expected);
}

TEST_F(ImageIoTest, DecodesOneBitPngToBlackAndWhite) {
  PngFile png;
  png.width = 10;
  png.height = 1;
  png.color_type = PNG_COLOR_TYPE_GRAY;
  png.depth = 1;
  png.rows = {0b10110000, 0b01000000};
  WritePng(folder_ / "a.png", png);
  std::vector<uint8_t> expected;
  for (int bit : {1, 0, 1, 1, 0, 0, 0, 0, 0, 1}) expected.insert(expected.end(), 3, static_cast<uint8_t>(255 * bit));
  EXPECT_EQ(Decode(folder_ / "a.png"), expected);
}

TEST_F(ImageIoTest, RoundsSixteenBitPngToEight) {
  const PngFile png = RandomPng(&random_, 41, 13, PNG_COLOR_TYPE_RGB, 16, 3);
  WritePng(folder_ / "a.png", png);
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < png.rows.size() / 2; ++i) expected.push_back(To8(Sample16(png.rows, i)));
  EXPECT_EQ(Decode(folder_ / "a.png"), expected);
}

TEST_F(ImageIoTest, DecodesSixteenBitGreyPng) {
  const PngFile png = RandomPng(&random_, 9, 5, PNG_COLOR_TYPE_GRAY, 16, 1);
  WritePng(folder_ / "a.png", png);
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < png.rows.size() / 2; ++i) expected.insert(expected.end(), 3, To8(Sample16(png.rows, i)));
  EXPECT_EQ(Decode(folder_ / "a.png"), expected);
}

TEST_F(ImageIoTest, DecodesPalettePng) {
  PngFile png;
  png.width = 4;
  png.height = 2;
  png.color_type = PNG_COLOR_TYPE_PALETTE;
  png.palette = {10, 20, 30, 200, 100, 0, 255, 255, 255};
  png.rows = {0, 1, 2, 0, 2, 1, 0, 1};
  WritePng(folder_ / "a.png", png);
  std::vector<uint8_t> expected;
  for (uint8_t i : png.rows)
    expected.insert(expected.end(), png.palette.begin() + 3 * i, png.palette.begin() + 3 * i + 3);
  EXPECT_EQ(Decode(folder_ / "a.png"), expected);
}

TEST_F(ImageIoTest, LaysAlphaOverWhite) {
  const PngFile png = RandomPng(&random_, 31, 11, PNG_COLOR_TYPE_RGB_ALPHA, 8, 4);
  WritePng(folder_ / "a.png", png);
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < png.rows.size(); i += 4) {
    const int alpha = png.rows[i + 3];
    for (size_t c = 0; c < 3; ++c) {
      expected.push_back(static_cast<uint8_t>((png.rows[i + c] * alpha + 255 * (255 - alpha) + 127) / 255));
    }
  }
  EXPECT_EQ(Decode(folder_ / "a.png"), expected);
}

TEST_F(ImageIoTest, LaysSixteenBitAlphaOverWhite) {
  PngFile png = RandomPng(&random_, 31, 11, PNG_COLOR_TYPE_RGB_ALPHA, 16, 4);
  png.rows[6] = png.rows[7] = 0;      // alpha of the first pixel
  png.rows[14] = png.rows[15] = 255;  // of the second
  WritePng(folder_ / "a.png", png);
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < png.rows.size() / 2; i += 4) {
    const uint64_t alpha = Sample16(png.rows, i + 3);
    for (size_t c = 0; c < 3; ++c) {
      expected.push_back(To8((Sample16(png.rows, i + c) * alpha + 65535 * (65535 - alpha) + 32767) / 65535));
    }
  }
  EXPECT_EQ(Decode(folder_ / "a.png"), expected);
}

TEST_F(ImageIoTest, LaysGreyAlphaOverWhite) {
  PngFile png;
  png.width = 3;
  png.height = 1;
  png.color_type = PNG_COLOR_TYPE_GRAY_ALPHA;
  png.rows = {90, 255, 90, 0, 0, 51};
  WritePng(folder_ / "a.png", png);
  EXPECT_THAT(Decode(folder_ / "a.png"), ElementsAre(90, 90, 90, 255, 255, 255, 204, 204, 204));
}

TEST_F(ImageIoTest, LaysTransparentPaletteColoursOverWhite) {
  PngFile png;
  png.width = 2;
  png.height = 1;
  png.color_type = PNG_COLOR_TYPE_PALETTE;
  png.palette = {10, 20, 30, 200, 100, 0};
  png.palette_alpha = {0, 255};
  png.rows = {0, 1};
  WritePng(folder_ / "a.png", png);
  EXPECT_THAT(Decode(folder_ / "a.png"), ElementsAre(255, 255, 255, 200, 100, 0));
}

TEST_F(ImageIoTest, LaysTransparentGreyOverWhite) {
  PngFile png;
  png.width = 2;
  png.height = 1;
  png.color_type = PNG_COLOR_TYPE_GRAY;
  png.transparent_grey = 7;
  png.rows = {7, 8};
  WritePng(folder_ / "a.png", png);
  EXPECT_THAT(Decode(folder_ / "a.png"), ElementsAre(255, 255, 255, 8, 8, 8));
}

// A smooth ramp, which JPEG keeps almost unchanged.
JpegFile RampJpeg(int components, int color_space) {
  JpegFile jpeg;
  jpeg.width = 40;
  jpeg.height = 24;
  jpeg.components = components;
  jpeg.color_space = color_space;
  for (int y = 0; y < jpeg.height; ++y) {
    for (int x = 0; x < jpeg.width; ++x) {
      for (int c = 0; c < components; ++c) jpeg.samples.push_back(static_cast<uint8_t>(40 + 2 * x + y + 20 * c));
    }
  }
  return jpeg;
}

TEST_F(ImageIoTest, DecodesColourJpeg) {
  const JpegFile jpeg = RampJpeg(3, JCS_RGB);
  WriteJpeg(folder_ / "a.jpg", jpeg);
  EXPECT_LE(MaxDifference(Decode(folder_ / "a.jpg"), jpeg.samples), 4);
}

TEST_F(ImageIoTest, DecodesProgressiveJpeg) {
  JpegFile jpeg = RampJpeg(3, JCS_RGB);
  jpeg.progressive = true;
  WriteJpeg(folder_ / "a.jpg", jpeg);
  EXPECT_LE(MaxDifference(Decode(folder_ / "a.jpg"), jpeg.samples), 4);
}

TEST_F(ImageIoTest, DecodesJpegStoredAsRgb) {
  JpegFile jpeg = RampJpeg(3, JCS_RGB);
  jpeg.stored = JCS_RGB;
  WriteJpeg(folder_ / "a.jpg", jpeg);
  EXPECT_LE(MaxDifference(Decode(folder_ / "a.jpg"), jpeg.samples), 4);
}

TEST_F(ImageIoTest, DecodesGreyJpegToEqualChannels) {
  const JpegFile jpeg = RampJpeg(1, JCS_GRAYSCALE);
  WriteJpeg(folder_ / "a.jpg", jpeg);
  std::vector<uint8_t> expected;
  for (uint8_t grey : jpeg.samples) expected.insert(expected.end(), 3, grey);
  EXPECT_LE(MaxDifference(Decode(folder_ / "a.jpg"), expected), 4);
}

// What light passes four inks, `inverted` where 255 means no ink.
std::vector<uint8_t> RgbOfCmyk(const std::vector<uint8_t>& cmyk, bool inverted) {
  std::vector<uint8_t> rgb;
  for (size_t i = 0; i < cmyk.size(); i += 4) {
    for (size_t c = 0; c < 3; ++c) {
      const double ink = inverted ? 255 - cmyk[i + c] : cmyk[i + c], black = inverted ? 255 - cmyk[i + 3] : cmyk[i + 3];
      rgb.push_back(static_cast<uint8_t>((255 - ink) * (255 - black) / 255 + 0.5));
    }
  }
  return rgb;
}

TEST_F(ImageIoTest, DecodesCmykJpeg) {
  const JpegFile jpeg = RampJpeg(4, JCS_CMYK);
  WriteJpeg(folder_ / "a.jpg", jpeg);
  EXPECT_LE(MaxDifference(Decode(folder_ / "a.jpg"), RgbOfCmyk(jpeg.samples, false)), 4);
}

TEST_F(ImageIoTest, DecodesAdobesInvertedCmykJpeg) {
  JpegFile jpeg = RampJpeg(4, JCS_CMYK);
  jpeg.adobe_marker = true;
  WriteJpeg(folder_ / "a.jpg", jpeg);
  EXPECT_LE(MaxDifference(Decode(folder_ / "a.jpg"), RgbOfCmyk(jpeg.samples, true)), 4);
}

TEST_F(ImageIoTest, DecodesAdobesYcckJpeg) {
  JpegFile jpeg = RampJpeg(4, JCS_CMYK);
  jpeg.stored = JCS_YCCK;
  jpeg.adobe_marker = true;
  WriteJpeg(folder_ / "a.jpg", jpeg);
  EXPECT_LE(MaxDifference(Decode(folder_ / "a.jpg"), RgbOfCmyk(jpeg.samples, true)), 5);
}

TEST_F(ImageIoTest, RefusesTwoComponentJpegByName) {
  WriteJpeg(folder_ / "two.jpg", RampJpeg(2, JCS_UNKNOWN));
  const absl::Status status = DecodeError(folder_ / "two.jpg");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("two.jpg'"), HasSubstr("colour space")));
}

TEST_F(ImageIoTest, TellsTheFormatByContentNotByName) {
  const PngFile png = RandomPng(&random_, 5, 4, PNG_COLOR_TYPE_RGB, 8, 3);
  WritePng(folder_ / "a.jpg", png);
  EXPECT_EQ(Decode(folder_ / "a.jpg"), png.rows);
}

TEST_F(ImageIoTest, RefusesWhatIsNoImageByName) {
  WriteText(folder_ / "notes.png", "these are notes");
  const absl::Status status = DecodeError(folder_ / "notes.png");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("notes.png'"), HasSubstr("not a PNG or JPEG")));
}

TEST_F(ImageIoTest, RefusesEmptyFile) {
  WriteText(folder_ / "a.png", "");
  EXPECT_THAT(Message(DecodeError(folder_ / "a.png")), HasSubstr("it is empty"));
}

TEST_F(ImageIoTest, RefusesMissingFile) {
  const absl::Status status = DecodeError(folder_ / "a.png");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("a.png'"));
}

TEST_F(ImageIoTest, RefusesFifoWithoutWaitingForItsWriter) {
  ASSERT_EQ(mkfifo((folder_ / "a.png").c_str(), 0600), 0);
  EXPECT_THAT(Message(DecodeError(folder_ / "a.png")), HasSubstr("not a regular file"));
}

TEST_F(ImageIoTest, EscapesControlCharactersOfNames) {
  WriteText(folder_ / "a\x1b[2J\n.png", "x");
  const std::string message = Message(DecodeError(folder_ / "a\x1b[2J\n.png"));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

// Cut anywhere, a file is refused with its name: never a crash, never pixels made up for the missing ones.
void ExpectEveryTruncationRefused(const TempFolder& folder, const std::string& name, size_t step) {
  const std::vector<uint8_t> whole = ReadBytes(folder / name);
  for (size_t size = 0; size < whole.size(); size += step) {
    WriteBytes(folder / ("cut_" + name), {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
    const absl::Status status = DecodeError(folder / ("cut_" + name));
    ASSERT_FALSE(status.ok()) << name << " cut to " << size << " of " << whole.size() << " bytes";
    ASSERT_THAT(Message(status), HasSubstr("cut_" + name)) << size;
  }
}

TEST_F(ImageIoTest, RefusesPngCutAnywhere) {
  WriteRandomPng(folder_ / "a.png", 17, 13, 5);
  ExpectEveryTruncationRefused(folder_, "a.png", 1);
}

TEST_F(ImageIoTest, RefusesInterlacedPngCutAnywhere) {
  PngFile png = RandomPng(&random_, 17, 13, PNG_COLOR_TYPE_RGB_ALPHA, 16, 4);
  png.interlaced = true;
  WritePng(folder_ / "a.png", png);
  ExpectEveryTruncationRefused(folder_, "a.png", 3);
}

TEST_F(ImageIoTest, RefusesJpegCutAnywhere) {
  WriteJpeg(folder_ / "a.jpg", RampJpeg(3, JCS_RGB));
  ExpectEveryTruncationRefused(folder_, "a.jpg", 1);
}

TEST_F(ImageIoTest, RefusesCmykProgressiveJpegCutAnywhere) {
  JpegFile jpeg = RampJpeg(4, JCS_CMYK);
  jpeg.progressive = true;
  WriteJpeg(folder_ / "a.jpg", jpeg);
  ExpectEveryTruncationRefused(folder_, "a.jpg", 3);
}

TEST_F(ImageIoTest, NamesTruncationAndTheFile) {
  WriteRandomPng(folder_ / "half.png", 64, 64, 6);
  std::vector<uint8_t> bytes = ReadBytes(folder_ / "half.png");
  bytes.resize(bytes.size() / 2);
  WriteBytes(folder_ / "half.png", bytes);
  const absl::Status status = DecodeError(folder_ / "half.png");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("half.png'"), HasSubstr("truncated or damaged")));
}

// Flips bytes at random: any outcome but a crash, a sanitizer's report or a write outside the span.
void ExpectNoHarm(const TempFolder& folder, const std::string& name, std::mt19937* random) {
  constexpr uint8_t kGuard = 0x5C;
  const std::vector<uint8_t> whole = ReadBytes(folder / name);
  for (int i = 0; i < 300; ++i) {
    std::vector<uint8_t> bytes = whole;
    for (unsigned n = 1 + (*random)() % 4; n > 0; --n)
      bytes[(*random)() % bytes.size()] = static_cast<uint8_t>((*random)());
    WriteBytes(folder / "flipped", bytes);
    absl::StatusOr<ImageInfo> info = ReadImageInfo(folder / "flipped");
    if (!info.ok() || info->pixels() > 1 << 20) continue;
    std::vector<uint8_t> memory(static_cast<size_t>(info->rgb_bytes()) + 64, kGuard);
    DecodeRgb(folder / "flipped", *info, std::span(memory).first(memory.size() - 64)).IgnoreError();
    ASSERT_THAT(std::vector<uint8_t>(memory.end() - 64, memory.end()), testing::Each(kGuard)) << name << " round " << i;
  }
}

TEST_F(ImageIoTest, FlippedBytesDoNoHarm) {
  PngFile palette;
  palette.width = 23;
  palette.height = 9;
  palette.color_type = PNG_COLOR_TYPE_PALETTE;
  palette.palette = {10, 20, 30, 200, 100, 0};
  palette.rows.assign(23 * 9, 1);
  WritePng(folder_ / "palette.png", palette);
  PngFile deep = RandomPng(&random_, 17, 13, PNG_COLOR_TYPE_RGB_ALPHA, 16, 4);
  deep.interlaced = true;
  WritePng(folder_ / "deep.png", deep);
  JpegFile progressive = RampJpeg(3, JCS_RGB);
  progressive.progressive = true;
  WriteJpeg(folder_ / "progressive.jpg", progressive);
  JpegFile cmyk = RampJpeg(4, JCS_CMYK);
  cmyk.adobe_marker = true;
  WriteJpeg(folder_ / "cmyk.jpg", cmyk);
  for (const char* name : {"palette.png", "deep.png", "progressive.jpg", "cmyk.jpg"}) {
    ExpectNoHarm(folder_, name, &random_);
  }
}

// Overwrites the size in a PNG's first chunk and repairs the chunk's checksum.
void SetPngSize(const std::string& path, uint32_t width, uint32_t height) {
  std::vector<uint8_t> bytes = ReadBytes(path);
  auto put = [&](size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<uint8_t>(value >> (24 - 8 * i));
  };
  put(16, width);
  put(20, height);
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 12; i < 29; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  put(29, ~crc);
  WriteBytes(path, bytes);
}

TEST_F(ImageIoTest, RefusesSizesOverTheLimitBeforeDecoding) {
  WriteRandomPng(folder_ / "a.png", 8, 8, 7);
  for (auto [width, height] : {std::pair<uint32_t, uint32_t>{32769, 1}, {1, 32769}, {8193, 8193}, {100000, 100000}}) {
    SetPngSize(folder_ / "a.png", width, height);
    const absl::Status status = ReadImageInfo(folder_ / "a.png").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << width << " x " << height << ": " << status;
  }
  SetPngSize(folder_ / "a.png", 8192, 8192);
  EXPECT_TRUE(ReadImageInfo(folder_ / "a.png").ok());
}

// A progressive JPEG whose first scan comes three thousand times: each is decoded over the whole picture.
TEST_F(ImageIoTest, RefusesJpegWithThousandsOfScans) {
  JpegFile jpeg = RampJpeg(1, JCS_GRAYSCALE);
  jpeg.progressive = true;
  WriteJpeg(folder_ / "a.jpg", jpeg);
  const std::vector<uint8_t> bytes = ReadBytes(folder_ / "a.jpg");
  const uint8_t start_of_scan[] = {0xFF, 0xDA}, next_table[] = {0xFF, 0xC4};
  const auto begin = std::search(bytes.begin(), bytes.end(), std::begin(start_of_scan), std::end(start_of_scan));
  const auto end = std::search(begin, bytes.end(), std::begin(next_table), std::end(next_table));
  ASSERT_NE(end, bytes.end());
  for (int scans : {100, 3000}) {
    std::vector<uint8_t> many(bytes.begin(), begin);
    for (int i = 0; i < scans; ++i) many.insert(many.end(), begin, end);
    many.insert(many.end(), end, bytes.end());
    WriteBytes(folder_ / "a.jpg", many);
    const absl::Status status = DecodeError(folder_ / "a.jpg");
    EXPECT_EQ(status.code(), scans == 100 ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted) << status;
  }
}

TEST_F(ImageIoTest, RefusesFileWhoseSizeChangedSinceItWasListed) {
  WriteRandomPng(folder_ / "a.png", 40, 25, 8);
  WriteJpeg(folder_ / "a.jpg", RampJpeg(3, JCS_RGB));
  const ImageInfo expected = {ImageFormat::kPng, 8, 6};
  std::vector<uint8_t> rgb(static_cast<size_t>(expected.rgb_bytes()));
  for (const char* name : {"a.png", "a.jpg"}) {
    const absl::Status status = DecodeRgb(folder_ / name, expected, rgb);
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(Message(status), HasSubstr("its size has changed"));
  }
}

// Cut in the middle and closed as if it were whole.
TEST_F(ImageIoTest, RefusesJpegWhosePixelsEndAtAMarker) {
  WriteJpeg(folder_ / "a.jpg", RampJpeg(3, JCS_RGB));
  std::vector<uint8_t> bytes = ReadBytes(folder_ / "a.jpg");
  bytes.resize(bytes.size() - 60);
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  WriteBytes(folder_ / "a.jpg", bytes);
  EXPECT_EQ(DecodeError(folder_ / "a.jpg").code(), absl::StatusCode::kDataLoss);
}

TEST_F(ImageIoTest, RefusesSpanOfAnotherSize) {
  WriteRandomPng(folder_ / "a.png", 8, 6, 8);
  std::vector<uint8_t> rgb(8 * 6 * 3 - 1);
  EXPECT_EQ(DecodeRgb(folder_ / "a.png", {ImageFormat::kPng, 8, 6}, rgb).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ImageIoTest, EncodedPictureDecodesToItsPixels) {
  for (auto [width, height] : {std::pair<int, int>{1, 1}, {7, 3}, {1, 50}, {129, 65}}) {
    const std::vector<uint8_t> grey = RandomBytes(&random_, static_cast<size_t>(width * height));
    const absl::Status status = EncodeGreyPng(folder_ / "a.png", width, height, grey);
    ASSERT_TRUE(status.ok()) << status;
    std::vector<uint8_t> expected;
    for (uint8_t value : grey) expected.insert(expected.end(), 3, value);
    EXPECT_EQ(Decode(folder_ / "a.png"), expected);
  }
}

TEST_F(ImageIoTest, EncodedPictureIsOneByteAPixel) {
  ASSERT_TRUE(EncodeGreyPng(folder_ / "a.png", 2, 2, RandomBytes(&random_, 4)).ok());
  const std::vector<uint8_t> bytes = ReadBytes(folder_ / "a.png");
  EXPECT_EQ(bytes[24], 8);  // depth
  EXPECT_EQ(bytes[25], PNG_COLOR_TYPE_GRAY);
}

TEST_F(ImageIoTest, EncodeRefusesSpanOfAnotherSize) {
  EXPECT_EQ(EncodeGreyPng(folder_ / "a.png", 3, 3, RandomBytes(&random_, 8)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

// Ends the process: 0 where the picture was refused.
[[noreturn]] void EncodeWhereFilesCannotGrow(const std::string& path, const std::vector<uint8_t>& noise) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {4096, 4096};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(2);
  const absl::Status status = EncodeGreyPng(path, 200, 200, noise);
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::_Exit(status.ok() ? 3 : 0);
}

// In a process of its own: the picture does not fit, and nothing of it stays.
TEST_F(ImageIoTest, FailedEncodingLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(EncodeGreyPng(folder_ / "a.png", 2, 2, std::vector<uint8_t>(4, 9)).ok());
  const std::vector<uint8_t> old = ReadBytes(folder_ / "a.png");
  const std::vector<uint8_t> noise = RandomBytes(&random_, 200 * 200);
  EXPECT_EXIT(EncodeWhereFilesCannotGrow(folder_ / "a.png", noise), testing::ExitedWithCode(0),
              "cannot write .*a.png.*File too large");
  EXPECT_EQ(ReadBytes(folder_ / "a.png"), old);
  EXPECT_THAT(folder_.Names(), ElementsAre("a.png"));
}

}  // namespace
}  // namespace photos::image_io_test
