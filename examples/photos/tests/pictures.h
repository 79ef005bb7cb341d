// Image files of every kind the job may meet, written with libpng and libjpeg themselves, and a folder to put them in.
//
// Threads: each test its own folder. Errors end the program: a test without its files proves nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace photos {

// A folder of its own, removed with everything in it at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> Names() const;  // sorted, hidden files too

 private:
  std::filesystem::path path_;
};

std::vector<uint8_t> RandomBytes(std::mt19937* random, size_t size);

std::vector<uint8_t> ReadBytes(const std::string& path);
void WriteBytes(const std::string& path, const std::vector<uint8_t>& bytes);
void WriteText(const std::string& path, const std::string& text);

// A PNG as libpng takes it: `rows` is the picture in the file's own layout, 16-bit samples big-endian.
struct PngFile {
  int width = 0, height = 0;
  int depth = 8;       // bits a sample
  int color_type = 2;  // PNG_COLOR_TYPE_*
  bool interlaced = false;
  std::vector<uint8_t> rows;
  std::vector<uint8_t> palette;        // r, g, b
  std::vector<uint8_t> palette_alpha;  // tRNS of a palette picture
  int transparent_grey = -1;           // tRNS of a grey picture
};
void WritePng(const std::string& path, const PngFile& png);

// A JPEG: `samples` are width * height * components, in the order the colour space says.
struct JpegFile {
  int width = 0, height = 0;
  int components = 3;
  int color_space = 0;        // of `samples` and, unless `stored` is set, of the file: J_COLOR_SPACE
  int stored = 0;             // of the file; 0: libjpeg's choice
  bool adobe_marker = false;  // forced on or off for CMYK
  bool progressive = false;
  int quality = 100;
  std::vector<uint8_t> samples;
};
void WriteJpeg(const std::string& path, const JpegFile& jpeg);

// A small colour PNG with random pixels; returns its rows of RGB.
std::vector<uint8_t> WriteRandomPng(const std::string& path, int width, int height, uint32_t seed);

}  // namespace photos
