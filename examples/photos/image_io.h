// Photographs on disk: the size of a PNG or JPEG file, its pixels as 8-bit RGB, and edge pictures as 8-bit grey PNG.
//
// Decoding takes two steps, so that the caller owns the memory: ReadImageInfo gives the size, DecodeRgb fills a span of
// that size row by row, with no picture of its own in between. The format is told by the first bytes of the file, never
// by its name. What becomes what:
//   PNG   1 to 16 bits, grey, colour, palette, interlaced: 16 bits are rounded to 8, alpha is laid over white.
//   JPEG  grey, YCbCr, RGB, CMYK and YCCK (Adobe's inverted kind too); arithmetic coding where libjpeg has it.
// Colour profiles, gamma chunks and EXIF orientation are not applied.
//
// Threads: every function may be called from any thread; calls share nothing.
// Errors:  a Status that names the file, the reason and what to do. NotFound and PermissionDenied: it cannot be opened.
//          InvalidArgument: not a PNG or JPEG file, or a kind that is refused. ResourceExhausted: over the limits
//          below. DataLoss: truncated or damaged; the span's content is then unspecified. Hostile files cost bounded
//          memory and time: sizes are checked before anything is decoded.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace photos {

enum class ImageFormat : uint8_t { kPng, kJpeg };

// What a file says about itself before its pixels. Sizes in pixels.
struct ImageInfo {
  ImageFormat format = ImageFormat::kPng;
  int64_t width = 0;
  int64_t height = 0;

  int64_t pixels() const { return width * height; }
  int64_t rgb_bytes() const { return 3 * pixels(); }
  friend bool operator==(const ImageInfo&, const ImageInfo&) = default;
};

// Larger files are refused: the largest photograph of a folder sizes the memory of every slot.
inline constexpr int64_t kMaxSide = 32768;
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;

// Reads as much of the file as its header takes.
absl::StatusOr<ImageInfo> ReadImageInfo(const std::string& path);

// Decodes the whole file into `rgb`, rows of 3 * width bytes, top row first. `expected` is what ReadImageInfo returned
// and `rgb` has its rgb_bytes(); a file whose size in pixels has changed in between is refused with Aborted.
absl::Status DecodeRgb(const std::string& path, const ImageInfo& expected, std::span<uint8_t> rgb);

// Writes `grey`, width * height bytes, top row first, as an 8-bit grey PNG. The file appears under its name whole or
// not at all. `compression` is zlib's level, 0 to 9.
absl::Status EncodeGreyPng(const std::string& path, int64_t width, int64_t height, std::span<const uint8_t> grey,
                           int compression = 1);

}  // namespace photos
