// The JPEG half of image_io: libjpeg over an open file. Called by image_io.cc only, which adds the file's name to every
// message and owns the file.
//
// Threads: any; calls share nothing.
// Errors:  a Status whose message is the bare reason. libjpeg goes on after damage, filling in grey; here damage and a
//          missing end are DataLoss. libjpeg leaves by longjmp; the jumps end inside jpeg_codec.cc, in frames that hold
//          nothing with a destructor.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "image_io.h"

namespace photos {

// `file` stands at its first byte.
absl::StatusOr<ImageInfo> ReadJpegInfo(FILE* file);

// `file` stands at its first byte; `rgb` has expected.rgb_bytes() bytes.
absl::Status DecodeJpeg(FILE* file, const ImageInfo& expected, std::span<uint8_t> rgb);

}  // namespace photos
