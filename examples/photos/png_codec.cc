// libpng with its longjmp kept in one place.
//
// Guarded() is the only frame that setjmp returns to. It calls a step, a plain function whose locals are all trivial,
// and every object with a destructor lives outside of it, so a jump leaves nothing behind.
#include "png_codec.h"

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>

namespace photos {
namespace {

struct Reason {
  absl::StatusCode code = absl::StatusCode::kDataLoss;
  char text[200] = "";
};

void SetReason(Reason* reason, absl::StatusCode code, const char* text) {
  reason->code = code;
  std::snprintf(reason->text, sizeof reason->text, "%s", text);
}

// Called by libpng for every error, ours included. Keeps the first code that a step has set.
[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  auto* reason = static_cast<Reason*>(png_get_error_ptr(png));
  if (reason->text[0] == '\0') SetReason(reason, absl::StatusCode::kDataLoss, message);
  png_longjmp(png, 1);
}

// Warnings are about ancillary chunks, which nothing here uses.
void OnWarning(png_structp, png_const_charp) {}

[[noreturn]] void Refuse(png_structp png, absl::StatusCode code, const char* text) {
  SetReason(static_cast<Reason*>(png_get_error_ptr(png)), code, text);
  png_error(png, text);
}

absl::Status ToStatus(const Reason& reason) { return absl::Status(reason.code, reason.text); }

// What a step works on. Trivial: a jump may end its use at any point.
struct Work {
  png_structp png;
  png_infop info;
  FILE* file;
  int64_t width, height;
  uint8_t* rgb;         // decode
  const uint8_t* grey;  // encode
  int compression;
};

// Runs `step`; false where libpng jumped out of it.
bool Guarded(void (*step)(Work*), Work* work) {
  if (setjmp(png_jmpbuf(work->png)) != 0) return false;
  step(work);
  return true;
}

// Reads up to the first pixel and checks the limits.
void ReadInfoStep(Work* work) {
  png_init_io(work->png, work->file);
  png_read_info(work->png, work->info);
  work->width = png_get_image_width(work->png, work->info);
  work->height = png_get_image_height(work->png, work->info);
}

// Asks for 8-bit RGB whatever the file holds.
void SetTransforms(Work* work) {
  png_set_expand(work->png);
  png_set_scale_16(work->png);
  png_set_gray_to_rgb(work->png);
  const bool has_alpha = (png_get_color_type(work->png, work->info) & PNG_COLOR_MASK_ALPHA) != 0 ||
                         png_get_valid(work->png, work->info, PNG_INFO_tRNS) != 0;
  if (has_alpha) {
    // In the depth of the output: libpng widens it where it composes 16 bits.
    const png_color_16 white = {0, 255, 255, 255, 255};
    png_set_background_fixed(work->png, &white, PNG_BACKGROUND_GAMMA_SCREEN, 0, PNG_FP_1);
  }
}

void DecodeStep(Work* work) {
  const int64_t width = work->width, height = work->height;
  ReadInfoStep(work);
  if (work->width != width || work->height != height) {
    Refuse(work->png, absl::StatusCode::kAborted, "its size has changed since it was listed");
  }
  SetTransforms(work);
  const int passes = png_set_interlace_handling(work->png);
  png_read_update_info(work->png, work->info);
  const size_t stride = static_cast<size_t>(width) * 3;
  if (png_get_rowbytes(work->png, work->info) != stride) {
    Refuse(work->png, absl::StatusCode::kInvalidArgument, "its pixels cannot be turned into 8-bit RGB");
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < height; ++y) {
      png_read_row(work->png, work->rgb + static_cast<size_t>(y) * stride, nullptr);
    }
  }
  png_read_end(work->png, nullptr);  // a file cut off behind its last row is damaged too
}

void EncodeStep(Work* work) {
  png_init_io(work->png, work->file);
  png_set_compression_level(work->png, work->compression);
  png_set_IHDR(work->png, work->info, static_cast<png_uint_32>(work->width), static_cast<png_uint_32>(work->height), 8,
               PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(work->png, work->info);
  for (int64_t y = 0; y < work->height; ++y) png_write_row(work->png, work->grey + y * work->width);
  png_write_end(work->png, work->info);
}

// Owns libpng's two structs for reading; outlives every Guarded call on them.
class Reader {
 public:
  explicit Reader(FILE* file) {
    work.file = file;
    work.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reason, OnError, OnWarning);
    if (work.png != nullptr) work.info = png_create_info_struct(work.png);
  }
  ~Reader() { png_destroy_read_struct(&work.png, &work.info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  bool ok() const { return work.info != nullptr; }

  Reason reason;
  Work work = {};
};

class Writer {
 public:
  explicit Writer(FILE* file) {
    work.file = file;
    work.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &reason, OnError, OnWarning);
    if (work.png != nullptr) work.info = png_create_info_struct(work.png);
  }
  ~Writer() { png_destroy_write_struct(&work.png, &work.info); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  bool ok() const { return work.info != nullptr; }

  Reason reason;
  Work work = {};
};

absl::Status NoMemory() { return absl::ResourceExhaustedError("libpng found no memory for its state"); }

}  // namespace

absl::StatusOr<ImageInfo> ReadPngInfo(FILE* file) {
  Reader reader(file);
  if (!reader.ok()) return NoMemory();
  if (!Guarded(ReadInfoStep, &reader.work)) return ToStatus(reader.reason);
  return ImageInfo{ImageFormat::kPng, reader.work.width, reader.work.height};
}

absl::Status DecodePng(FILE* file, const ImageInfo& expected, std::span<uint8_t> rgb) {
  Reader reader(file);
  if (!reader.ok()) return NoMemory();
  reader.work.width = expected.width;
  reader.work.height = expected.height;
  reader.work.rgb = rgb.data();
  return Guarded(DecodeStep, &reader.work) ? absl::OkStatus() : ToStatus(reader.reason);
}

absl::Status EncodePng(FILE* file, int64_t width, int64_t height, std::span<const uint8_t> grey, int compression) {
  Writer writer(file);
  if (!writer.ok()) return NoMemory();
  writer.work.width = width;
  writer.work.height = height;
  writer.work.grey = grey.data();
  writer.work.compression = compression;
  return Guarded(EncodeStep, &writer.work) ? absl::OkStatus() : ToStatus(writer.reason);
}

}  // namespace photos
