// Opens files, tells formats apart, and words what the codecs report.
#include "image_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "atomic_file.h"
#include "errors.h"
#include "jpeg_codec.h"
#include "png_codec.h"

namespace photos {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { std::fclose(file); }
};

struct OpenImage {
  std::unique_ptr<FILE, CloseFile> file;
  ImageFormat format;
};

// The golden form for everything that can be wrong with the file's content.
absl::Status Explain(const std::string& path, const absl::Status& status) {
  const std::string reason(status.message());
  const std::string what = absl::StrCat("cannot read photograph ", Quoted(path));
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      return Error(status.code(), what, absl::StrCat("truncated or damaged: ", reason), "replace the file");
    case absl::StatusCode::kAborted:
      return Error(status.code(), what, reason, "leave the folder alone while it is being read");
    default: return Error(status.code(), what, reason, "convert it or take it out of the folder");
  }
}

bool StartsWith(const uint8_t* bytes, size_t size, const char* magic, size_t magic_size) {
  return size >= magic_size && std::memcmp(bytes, magic, magic_size) == 0;
}

absl::StatusOr<ImageFormat> DetectFormat(FILE* file) {
  uint8_t bytes[8];
  const size_t size = std::fread(bytes, 1, sizeof bytes, file);
  if (std::fseek(file, 0, SEEK_SET) != 0) return absl::InvalidArgumentError("it cannot be read from the start again");
  if (size == 0) return absl::InvalidArgumentError("it is empty");
  if (StartsWith(bytes, size, "\x89PNG\r\n\x1a\n", 8)) return ImageFormat::kPng;
  if (StartsWith(bytes, size, "\xff\xd8\xff", 3)) return ImageFormat::kJpeg;
  return absl::InvalidArgumentError("it is not a PNG or JPEG file");
}

absl::StatusOr<OpenImage> Open(const std::string& path) {
  // Non-blocking: opening a FIFO that somebody left in the folder must not wait for its writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return SystemError(errno, absl::StrCat("cannot open photograph ", Quoted(path)), "is it there and readable?");
  }
  std::unique_ptr<FILE, CloseFile> file(fdopen(fd, "rb"));
  if (file == nullptr) {
    close(fd);
    return Explain(path, absl::ResourceExhaustedError("no memory for a file buffer"));
  }
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    return Explain(path, absl::InvalidArgumentError("it is not a regular file"));
  }
  absl::StatusOr<ImageFormat> format = DetectFormat(file.get());
  if (!format.ok()) return Explain(path, format.status());
  return OpenImage{std::move(file), *format};
}

absl::Status CheckLimits(const ImageInfo& info) {
  if (info.width <= kMaxSide && info.height <= kMaxSide && info.pixels() <= kMaxPixels) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(info.width, " x ", info.height,
                                                   " pixels are more than the limits of ", kMaxSide, " a side and ",
                                                   kMaxPixels, " in all"));
}

}  // namespace

absl::StatusOr<ImageInfo> ReadImageInfo(const std::string& path) {
  absl::StatusOr<OpenImage> image = Open(path);
  if (!image.ok()) return image.status();
  absl::StatusOr<ImageInfo> info =
      image->format == ImageFormat::kPng ? ReadPngInfo(image->file.get()) : ReadJpegInfo(image->file.get());
  if (!info.ok()) return Explain(path, info.status());
  if (absl::Status status = CheckLimits(*info); !status.ok()) return Explain(path, status);
  return info;
}

absl::Status DecodeRgb(const std::string& path, const ImageInfo& expected, std::span<uint8_t> rgb) {
  if (absl::Status status = CheckLimits(expected); !status.ok()) return Explain(path, status);
  if (rgb.size() != static_cast<size_t>(expected.rgb_bytes())) {
    return absl::InvalidArgumentError(absl::StrCat("DecodeRgb of ", Quoted(path), ": the span has ", rgb.size(),
                                                   " bytes and the picture ", expected.rgb_bytes(),
                                                   "; pass a span of rgb_bytes()"));
  }
  absl::StatusOr<OpenImage> image = Open(path);
  if (!image.ok()) return image.status();
  absl::Status status = image->format == ImageFormat::kPng ? DecodePng(image->file.get(), expected, rgb)
                                                           : DecodeJpeg(image->file.get(), expected, rgb);
  return status.ok() ? status : Explain(path, status);
}

absl::Status EncodeGreyPng(const std::string& path, int64_t width, int64_t height, std::span<const uint8_t> grey,
                           int compression) {
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide ||
      grey.size() != static_cast<size_t>(width * height)) {
    return absl::InvalidArgumentError(absl::StrCat("EncodeGreyPng of ", Quoted(path), ": ", grey.size(), " bytes for ",
                                                   width, " x ", height, " pixels; pass width * height bytes"));
  }
  absl::StatusOr<AtomicFile> target = AtomicFile::Create(path);
  if (!target.ok()) return target.status();
  errno = 0;
  if (absl::Status status = EncodePng(target->file(), width, height, grey, compression); !status.ok()) {
    const std::string what = absl::StrCat("cannot write ", Quoted(path));
    if (std::ferror(target->file()) != 0 && errno != 0) return SystemError(errno, what, "is the disk full?");
    return Error(status.code(), what, std::string(status.message()), "report it: the picture itself is fine");
  }
  return target->Commit();
}

}  // namespace photos
