// The PNG half of image_io: libpng over an open file. Called by image_io.cc only, which adds the file's name to every
// message and owns the file.
//
// Threads: any; calls share nothing.
// Errors:  a Status whose message is the bare reason. libpng leaves by longjmp; the jumps end inside png_codec.cc, in
//          frames that hold nothing with a destructor.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "image_io.h"

namespace photos {

// `file` stands at its first byte.
absl::StatusOr<ImageInfo> ReadPngInfo(FILE* file);

// `file` stands at its first byte; `rgb` has expected.rgb_bytes() bytes.
absl::Status DecodePng(FILE* file, const ImageInfo& expected, std::span<uint8_t> rgb);

// Writes to `file`; the caller flushes it.
absl::Status EncodePng(FILE* file, int64_t width, int64_t height, std::span<const uint8_t> grey, int compression);

}  // namespace photos
