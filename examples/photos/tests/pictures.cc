// libpng and libjpeg in their plainest use. Their errors end the program, as libjpeg's default handler does.
#include "examples/photos/tests/pictures.h"

#include <png.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <jpeglib.h>

namespace photos {
namespace {

// Anew: file systems flush a file that is cut to nothing and written again, and some tests do so a thousand times.
FILE* OpenToWrite(const std::string& path) {
  unlink(path.c_str());
  FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    std::perror(path.c_str());
    std::abort();
  }
  return file;
}

[[noreturn]] void Die(png_structp, png_const_charp message) {
  std::fprintf(stderr, "libpng: %s\n", message);
  std::abort();
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "photos_test_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> TempFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<uint8_t> RandomBytes(std::mt19937* random, size_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((*random)());
  return bytes;
}

std::vector<uint8_t> ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteBytes(const std::string& path, const std::vector<uint8_t>& bytes) {
  FILE* file = OpenToWrite(path);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) std::abort();
  std::fclose(file);
}

void WriteText(const std::string& path, const std::string& text) { WriteBytes(path, {text.begin(), text.end()}); }

void WritePng(const std::string& path, const PngFile& png) {
  FILE* file = OpenToWrite(path);
  png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, Die, nullptr);
  png_infop info = png_create_info_struct(writer);
  png_init_io(writer, file);
  png_set_IHDR(writer, info, static_cast<png_uint_32>(png.width), static_cast<png_uint_32>(png.height), png.depth,
               png.color_type, png.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (!png.palette.empty()) {
    std::vector<png_color> colors(png.palette.size() / 3);
    for (size_t i = 0; i < colors.size(); ++i) {
      colors[i] = {png.palette[3 * i], png.palette[3 * i + 1], png.palette[3 * i + 2]};
    }
    png_set_PLTE(writer, info, colors.data(), static_cast<int>(colors.size()));
  }
  if (!png.palette_alpha.empty()) {
    png_set_tRNS(writer, info, png.palette_alpha.data(), static_cast<int>(png.palette_alpha.size()), nullptr);
  }
  if (png.transparent_grey >= 0) {
    const png_color_16 color = {0, 0, 0, 0, static_cast<png_uint_16>(png.transparent_grey)};
    png_set_tRNS(writer, info, nullptr, 0, &color);
  }
  png_write_info(writer, info);
  const size_t stride = png_get_rowbytes(writer, info);
  std::vector<png_bytep> rows;
  for (int y = 0; y < png.height; ++y) {
    rows.push_back(const_cast<png_bytep>(png.rows.data() + static_cast<size_t>(y) * stride));
  }
  png_write_image(writer, rows.data());
  png_write_end(writer, info);
  png_destroy_write_struct(&writer, &info);
  std::fclose(file);
}

void WriteJpeg(const std::string& path, const JpegFile& jpeg) {
  FILE* file = OpenToWrite(path);
  jpeg_compress_struct writer;
  jpeg_error_mgr errors;
  writer.err = jpeg_std_error(&errors);
  jpeg_create_compress(&writer);
  jpeg_stdio_dest(&writer, file);
  writer.image_width = static_cast<JDIMENSION>(jpeg.width);
  writer.image_height = static_cast<JDIMENSION>(jpeg.height);
  writer.input_components = jpeg.components;
  writer.in_color_space = static_cast<J_COLOR_SPACE>(jpeg.color_space);
  jpeg_set_defaults(&writer);
  if (jpeg.stored != 0) jpeg_set_colorspace(&writer, static_cast<J_COLOR_SPACE>(jpeg.stored));
  if (jpeg.components == 4) writer.write_Adobe_marker = jpeg.adobe_marker ? TRUE : FALSE;
  jpeg_set_quality(&writer, jpeg.quality, TRUE);
  if (jpeg.progressive) jpeg_simple_progression(&writer);
  jpeg_start_compress(&writer, TRUE);
  const size_t stride = static_cast<size_t>(jpeg.width) * static_cast<size_t>(jpeg.components);
  for (size_t y = 0; y < static_cast<size_t>(jpeg.height); ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(jpeg.samples.data() + y * stride);
    jpeg_write_scanlines(&writer, &row, 1);
  }
  jpeg_finish_compress(&writer);
  jpeg_destroy_compress(&writer);
  std::fclose(file);
}

std::vector<uint8_t> WriteRandomPng(const std::string& path, int width, int height, uint32_t seed) {
  std::mt19937 random(seed);
  PngFile png;
  png.width = width;
  png.height = height;
  png.rows = RandomBytes(&random, static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  WritePng(path, png);
  return png.rows;
}

}  // namespace photos
