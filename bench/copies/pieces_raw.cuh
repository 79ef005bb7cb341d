// 256 pieces of 16 KiB, each somewhere else on the host and somewhere else on the device, and how they are copied by
// hand:
//
//   loop    a cudaMemcpyAsync a piece, in one stream
//   batch   one cudaMemcpyBatchAsync
//   kernel  one kernel of our own that reads and writes the host's memory, where that is pinned; else one host thread
//           packs the pieces into pinned memory, and the kernel scatters what it finds there, or the other way round
//
// What can be known before a run (places, tables, streams) is ready.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "cuda_check.cuh"
#include "section.cuh"
#include "words.cuh"

namespace bench {

constexpr int64_t kPieces = 256, kPieceWords = 4096, kHostPlaces = 4 * kPieces;
constexpr size_t kPieceBytes = kPieceWords * sizeof(uint32_t);
constexpr int64_t kPiecesBytes = kPieces * static_cast<int64_t>(kPieceBytes);

// Where the pieces lie: words from the beginning of the memory on either side. Piece i has the words of its places on
// the device.
struct Places {
  std::vector<int64_t> host, device;

  Places() {
    std::mt19937 random(20265);
    const auto draw = [&](int64_t places) {
      std::vector<int64_t> at(static_cast<size_t>(places));
      std::iota(at.begin(), at.end(), int64_t{0});
      std::shuffle(at.begin(), at.end(), random);
      at.resize(kPieces);
      for (int64_t& place : at) place *= kPieceWords;
      return at;
    };
    host = draw(kHostPlaces);
    device = draw(kPieces);
  }

  void Fill(std::span<uint32_t> heap, uint32_t salt) const {
    for (size_t i = 0; i < kPieces; ++i) {
      for (int64_t w = 0; w < kPieceWords; ++w) {
        heap[static_cast<size_t>(host[i] + w)] = WordAt(device[i] + w, salt);
      }
    }
  }
  // Of host memory that was poisoned before: wrong words of pieces, changed ones between them.
  int64_t CountWrongPieces(std::span<const uint32_t> heap, uint32_t salt) const {
    int64_t wrong = 0;
    std::vector<bool> taken(kHostPlaces);
    for (size_t i = 0; i < kPieces; ++i) {
      taken[static_cast<size_t>(host[i] / kPieceWords)] = true;
      wrong += CountWrong(heap.data() + host[i], device[i], kPieceWords, salt);
    }
    for (size_t w = 0; w < heap.size(); ++w) wrong += !taken[w / kPieceWords] && heap[w] != kPoison;
    return wrong;
  }
};

// A block for each quarter of a piece.
static __global__ void MovePiecesKernel(uint4* const* to, const uint4* const* from) {
  constexpr unsigned kWords = kPieceBytes / sizeof(uint4) / 4;
  const unsigned piece = blockIdx.x / 4, at = blockIdx.x % 4 * kWords + threadIdx.x;
  to[piece][at] = from[piece][at];
}

class RawPieces {
 public:
  RawPieces(const Places& places, uint32_t* heap, Direction direction)
      : places_(places),
        direction_(direction),
        kind_(direction == Direction::kUp ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost),
        device_(Line(kPieces * kPieceWords)),
        stream_(MakeStream()) {
    for (size_t i = 0; i < kPieces; ++i) {
      uint32_t *const host = heap + places.host[i], *const device = device_.data() + places.device[i];
      to_.push_back(direction == Direction::kUp ? device : host);
      from_.push_back(direction == Direction::kUp ? host : device);
    }
  }

  Sample Loop(uint32_t salt) {
    return Time(salt, [this] {
      for (size_t i = 0; i < kPieces; ++i) {
        Check(cudaMemcpyAsync(to_[i], from_[i], kPieceBytes, kind_, stream_), "copying a piece");
      }
    });
  }
  Sample Batch(uint32_t salt) {
    return Time(salt, [this] { Check(SubmitBatch(), "copying a batch"); });
  }
  // Whether cudaMemcpyBatchAsync takes this memory.
  bool TakesBatch() {
    const bool takes = SubmitBatch() == cudaSuccess && cudaStreamSynchronize(stream_) == cudaSuccess;
    (void)cudaGetLastError();
    return takes;
  }
  Sample Kernel(uint32_t salt) {
    if (to_table_ == nullptr) MakeTables(to_, from_);
    return Time(salt, [this] { Move(); });
  }
  // `packed`: pinned memory for all pieces.
  Sample Packed(uint32_t salt, uint32_t* packed) {
    if (to_table_ == nullptr) MakeTablesThrough(packed);
    const auto at = [&](size_t i) { return packed + static_cast<int64_t>(i) * kPieceWords; };
    if (direction_ == Direction::kUp) {
      return Time(salt, [&] {
        for (size_t i = 0; i < kPieces; ++i) std::memcpy(at(i), from_[i], kPieceBytes);
        Move();
      });
    }
    return TimeOf(
        [&] {
          device_.Make(salt, stream_);
          Move();
        },
        [&] {
          Wait(stream_);
          for (size_t i = 0; i < kPieces; ++i) std::memcpy(to_[i], at(i), kPieceBytes);
        });
  }
  Sample KernelAlone(uint32_t salt) {
    return Time(salt, [] {});
  }

  void Forget() const { device_.Forget(); }
  int64_t wrong() const { return device_.wrong(); }

 private:
  template <class Submit>
  Sample Time(uint32_t salt, Submit submit) {
    return TimeOf(
        [&] {
          if (direction_ == Direction::kDown) device_.Make(salt, stream_);
          submit();
          if (direction_ == Direction::kUp) device_.Count(salt, stream_);
        },
        [&] { Wait(stream_); });
  }
  cudaError_t SubmitBatch() {
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    return cudaMemcpyBatchAsync(to_.data(), from_.data(), sizes_.data(), kPieces, &attributes, &first, 1, stream_);
  }
  void Move() const {
    MovePiecesKernel<<<4 * kPieces, kPieceBytes / sizeof(uint4) / 4, 0, stream_>>>(to_table_, from_table_);
    Check(cudaGetLastError(), "launching");
  }
  void MakeTables(const std::vector<void*>& to, const std::vector<const void*>& from) {
    to_table_ = MakeDeviceMemory<uint4*>(kPieces);
    from_table_ = MakeDeviceMemory<const uint4*>(kPieces);
    Check(cudaMemcpy(to_table_, to.data(), kPieces * sizeof(void*), cudaMemcpyHostToDevice), "uploading a table");
    Check(cudaMemcpy(from_table_, from.data(), kPieces * sizeof(void*), cudaMemcpyHostToDevice), "uploading a table");
    Check(cudaDeviceSynchronize(), "waiting for the device");
  }
  void MakeTablesThrough(uint32_t* packed) {
    std::vector<void*> to = to_;
    std::vector<const void*> from = from_;
    for (int64_t i = 0; i < kPieces; ++i) {
      if (direction_ == Direction::kUp) from[static_cast<size_t>(i)] = packed + i * kPieceWords;
      if (direction_ == Direction::kDown) to[static_cast<size_t>(i)] = packed + i * kPieceWords;
    }
    MakeTables(to, from);
  }

  const Places& places_;
  const Direction direction_;
  const cudaMemcpyKind kind_;
  const RawWords device_;
  const cudaStream_t stream_;
  std::vector<void*> to_;
  std::vector<const void*> from_;
  std::vector<size_t> sizes_ = std::vector<size_t>(kPieces, kPieceBytes);
  uint4** to_table_ = nullptr;
  const uint4** from_table_ = nullptr;
};

}  // namespace bench
