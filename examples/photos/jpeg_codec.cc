// libjpeg with its longjmp kept in one place, as in png_codec.cc: Guarded() is the only frame that setjmp returns to,
// steps are plain functions with trivial locals, and row memory comes from libjpeg's own pool.
#include "jpeg_codec.h"

#include <csetjmp>
#include <cstdio>

// In this order: jpeglib.h uses FILE without including it, and jerror.h needs the configuration that jpeglib.h brings.
#include <jpeglib.h>

#include <jerror.h>

namespace photos {
namespace {

// A progressive file may name any number of scans, each decoded over the whole picture; real ones have about ten.
constexpr int kMaxScans = 500;

// What a step works on and what the callbacks reach from libjpeg's pointers. Trivial.
struct Work {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf jump;
  absl::StatusCode code;
  char reason[JMSG_LENGTH_MAX];
  FILE* file;
  int64_t width, height;
  uint8_t* rgb;
};

Work* WorkOf(j_common_ptr cinfo) { return static_cast<Work*>(cinfo->client_data); }

[[noreturn]] void Refuse(Work* work, absl::StatusCode code, const char* text) {
  work->code = code;
  std::snprintf(work->reason, sizeof work->reason, "%s", text);
  std::longjmp(work->jump, 1);
}

[[noreturn]] void OnError(j_common_ptr cinfo) {
  Work* work = WorkOf(cinfo);
  work->code = absl::StatusCode::kDataLoss;
  cinfo->err->format_message(cinfo, work->reason);
  std::longjmp(work->jump, 1);
}

// Warnings that mean wrong or missing pixels. Others, such as stray bytes between segments, harm nothing.
bool MeansDamage(int code) {
#ifdef D_ARITH_CODING_SUPPORTED
  if (code == JWRN_ARITH_BAD_CODE) return true;
#endif
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC;
}

void OnMessage(j_common_ptr cinfo, int level) {
  if (level < 0 && MeansDamage(cinfo->err->msg_code)) OnError(cinfo);
}

void OnOutput(j_common_ptr) {}

void OnProgress(j_common_ptr cinfo) {
  Work* work = WorkOf(cinfo);
  if (work->cinfo.input_scan_number > kMaxScans) {
    Refuse(work, absl::StatusCode::kResourceExhausted, "it has more than 500 scans");
  }
}

// Runs `step`; false where libjpeg jumped out of it.
bool Guarded(void (*step)(Work*), Work* work) {
  if (setjmp(work->jump) != 0) return false;
  step(work);
  return true;
}

void CreateStep(Work* work) {
  jpeg_create_decompress(&work->cinfo);  // keeps err and client_data
}

void ReadInfoStep(Work* work) {
  work->cinfo.progress = &work->progress;
  jpeg_stdio_src(&work->cinfo, work->file);
  jpeg_read_header(&work->cinfo, TRUE);
  work->width = work->cinfo.image_width;
  work->height = work->cinfo.image_height;
}

// Chooses RGB, or CMYK for CopyCmykRow to turn into RGB.
void SetColourSpace(Work* work) {
  switch (work->cinfo.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_YCbCr:
    case JCS_RGB: work->cinfo.out_color_space = JCS_RGB; return;
    case JCS_CMYK:
    case JCS_YCCK: work->cinfo.out_color_space = JCS_CMYK; return;
    default: Refuse(work, absl::StatusCode::kInvalidArgument, "its colour space is not grey, YCbCr, RGB, CMYK or YCCK");
  }
}

// Light left by an ink: 255 is none of it. Adobe stores exactly that; others store the ink.
uint8_t Through(unsigned colour, unsigned black, bool adobe) {
  if (!adobe) colour = 255 - colour, black = 255 - black;
  return static_cast<uint8_t>((colour * black + 127) / 255);
}

void CopyCmykRow(const JSAMPLE* cmyk, int64_t width, bool adobe, uint8_t* rgb) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) rgb[c] = Through(cmyk[c], cmyk[3], adobe);
  }
}

void DecodeRows(Work* work) {
  jpeg_decompress_struct* cinfo = &work->cinfo;
  const bool cmyk = cinfo->out_color_space == JCS_CMYK;
  const int64_t width = work->width;
  JSAMPARRAY cmyk_row = nullptr;
  if (cmyk) {
    cmyk_row = (*cinfo->mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(cinfo), JPOOL_IMAGE,
                                           static_cast<JDIMENSION>(4 * width), 1);
  }
  while (cinfo->output_scanline < cinfo->output_height) {
    uint8_t* target = work->rgb + static_cast<size_t>(cinfo->output_scanline) * static_cast<size_t>(3 * width);
    JSAMPROW row = cmyk ? cmyk_row[0] : target;
    if (jpeg_read_scanlines(cinfo, &row, 1) != 1) {
      Refuse(work, absl::StatusCode::kDataLoss, "its pixels end too early");
    }
    if (cmyk) CopyCmykRow(row, width, cinfo->saw_Adobe_marker != 0, target);
  }
}

void DecodeStep(Work* work) {
  const int64_t width = work->width, height = work->height;
  ReadInfoStep(work);
  if (work->width != width || work->height != height) {
    Refuse(work, absl::StatusCode::kAborted, "its size has changed since it was listed");
  }
  SetColourSpace(work);
  jpeg_start_decompress(&work->cinfo);
  if (work->cinfo.output_width != work->cinfo.image_width || work->cinfo.output_height != work->cinfo.image_height ||
      work->cinfo.output_components != (work->cinfo.out_color_space == JCS_CMYK ? 4 : 3)) {
    Refuse(work, absl::StatusCode::kInvalidArgument, "its pixels cannot be turned into 8-bit RGB");
  }
  DecodeRows(work);
  jpeg_finish_decompress(&work->cinfo);  // reads to the end marker; a file without one is damaged
}

void InfoStep(Work* work) {
  ReadInfoStep(work);
  SetColourSpace(work);
}

// Owns libjpeg's state; outlives every Guarded call on it.
class Reader {
 public:
  explicit Reader(FILE* file) {
    work.file = file;
    work.cinfo.err = jpeg_std_error(&work.errors);
    work.cinfo.client_data = &work;
    work.errors.error_exit = OnError;
    work.errors.emit_message = OnMessage;
    work.errors.output_message = OnOutput;
    work.progress.progress_monitor = OnProgress;
  }
  ~Reader() { jpeg_destroy_decompress(&work.cinfo); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  absl::Status Run(void (*step)(Work*)) {
    if (Guarded(CreateStep, &work) && Guarded(step, &work)) return absl::OkStatus();
    return absl::Status(work.code, work.reason);
  }

  Work work = {};
};

}  // namespace

absl::StatusOr<ImageInfo> ReadJpegInfo(FILE* file) {
  Reader reader(file);
  if (absl::Status status = reader.Run(InfoStep); !status.ok()) return status;
  return ImageInfo{ImageFormat::kJpeg, reader.work.width, reader.work.height};
}

absl::Status DecodeJpeg(FILE* file, const ImageInfo& expected, std::span<uint8_t> rgb) {
  Reader reader(file);
  reader.work.width = expected.width;
  reader.work.height = expected.height;
  reader.work.rgb = rgb.data();
  return reader.Run(DecodeStep);
}

}  // namespace photos
