// The demo's frames, and a small lossless code for them: each pixel of 12 bits is predicted from its neighbours, as
// JPEG-LS does, and what is left is one byte where it is small and two where not.
//
// Threads: pure functions; a Camera is constant after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// A few coded frames of a noisy scene, over and over.
class Camera {
 public:
  static constexpr int kKinds = 8;
  Camera(int64_t height, int64_t width);
  const std::vector<uint8_t>& Frame(int number) const { return frames_[static_cast<size_t>(number % kKinds)]; }

 private:
  std::vector<std::vector<uint8_t>> frames_;
};

// Fills `pixels`, rows of `width`, from a coded frame of as many.
void Decode(const std::vector<uint8_t>& code, std::span<uint16_t> pixels, int64_t width);

// The code, at the beginning of memory that belongs to the calling thread and is used again by its next call.
std::span<const uint8_t> Encode(std::span<const uint16_t> pixels, int64_t width);

// Tells codes apart.
uint64_t Hash(std::span<const uint8_t> code);
