// The matrix that is factored, in tiles on one or two GPUs, and what its factor must be.
//
// Elements are a hash of their place, plus the matrix' side on the diagonal. A tile is stored column by column, as the
// libraries have it. A factor L is checked by L (L^T x) = A x for one x, which finds every wrong tile: on the GPUs,
// tile by tile, since the host would take minutes.
//
// Threads: single-threaded.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {

constexpr int kTiles = 16;  // of a side
constexpr int kAll = kTiles * (kTiles + 1) / 2;  // of the lower triangle

inline int IndexOf(int i, int j) { return i * (i + 1) / 2 + j; }
// Columns of tiles are dealt round: that balances the work, and each device has some to the end.
inline int OwnerOf(int j, int devices) { return j % devices; }

PS_HOST_DEVICE inline double Hashed(uint32_t a, uint32_t b) {
  uint32_t x = a * 2654435761u ^ (b + 1) * 2246822519u;
  x = (x ^ x >> 15) * 2654435761u;
  return static_cast<double>(x ^ x >> 13) / 2147483648.0 - 1;
}
// Of two matrices, 0 and 1.
PS_HOST_DEVICE inline double ElementOf(int64_t i, int64_t j, int64_t n, int which = 0) {
  const auto salt = static_cast<uint32_t>(which) << 20;
  const double noise = Hashed(static_cast<uint32_t>(i < j ? i : j) | salt, static_cast<uint32_t>(i < j ? j : i));
  return i == j ? noise + static_cast<double>(n) : noise;
}

// Fills a tile, or all, of so many rows and columns; it begins at that row and column of the matrix of side n.
__global__ void FillTile(double* tile, int64_t rows, int64_t row, int64_t column, int64_t n, int which) {
  const int64_t r = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, c = blockIdx.y;
  if (r < rows) tile[c * rows + r] = ElementOf(row + r, column + c, n, which);
}
// y += A x, 64 columns a block.
__global__ void Multiply(const double* x, double* y, int64_t n, int which) {
  const int64_t r = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, begin = int64_t{blockIdx.y} * 64;
  if (r >= n) return;
  double sum = 0;
  for (int64_t c = begin; c < begin + 64 && c < n; ++c) sum += ElementOf(r, c, n, which) * x[c];
  atomicAdd(&y[r], sum);
}
// y += L x of one tile whose columns are `stride` apart, 32 columns a block; or y += L^T x, 32 rows a block. Of a tile
// on the diagonal the lower triangle counts.
__global__ void MultiplyTile(const double* tile, int64_t side, int64_t stride, bool diagonal, bool transposed,
                             const double* x, double* y) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, begin = int64_t{blockIdx.y} * 32;
  if (at >= side) return;
  double sum = 0;
  for (int64_t other = begin; other < begin + 32 && other < side; ++other) {
    const int64_t r = transposed ? other : at, c = transposed ? at : other;
    if (!diagonal || r >= c) sum += tile[c * stride + r] * x[other];
  }
  atomicAdd(&y[at], sum);
}

inline dim3 Grid(int64_t threads, int64_t others) {
  return {static_cast<unsigned>((threads + 127) / 128), static_cast<unsigned>(others)};
}

// The tiles of one matrix in device memory.
class Matrix {
 public:
  Matrix(int size, int devices) : size_(size), devices_(devices), x_(static_cast<size_t>(side())) {
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = Hashed(static_cast<uint32_t>(i), 1u << 31);
    for (int i = 0; i < kTiles; ++i) {
      for (int j = 0; j <= i; ++j) {
        Choose(owner(j));
        tiles_.push_back(MakeDeviceMemory<double>(elements()));
      }
    }
    for (int d = 0; d < devices_; ++d) {
      Choose(d);
      vectors_.push_back({MakeDeviceMemory<double>(x_.size()), MakeDeviceMemory<double>(x_.size())});
    }
    Choose(0);
    for (int which = 0; which < 2; ++which) {
      product_[which] = Gather(
          x_,
          [&](int, const double* x, double* y) {
            Multiply<<<Grid(side(), (side() + 63) / 64), 128>>>(x, y, side(), which);
          },
          1);
    }
  }
  Matrix(const Matrix&) = delete;
  ~Matrix() {
    for (double* tile : tiles_) cudaFree(tile);
    for (const Vectors& of : vectors_) cudaFree(of.in), cudaFree(of.out);
  }

  int size() const { return size_; }
  int devices() const { return devices_; }
  int64_t side() const { return int64_t{size_} * kTiles; }
  size_t elements() const { return static_cast<size_t>(size_) * static_cast<size_t>(size_); }  // of a tile
  int owner(int j) const { return OwnerOf(j, devices_); }
  double* tile(int i, int j) const { return tiles_[static_cast<size_t>(IndexOf(i, j))]; }

  // Which of the two matrices comes next, in no regular order.
  int Next() { return which_ = Hashed(++fills_, 7) > 0 ? 1 : 0; }
  // Sets the tiles to the next matrix, and waits. A way that leaves out a copy, or a
  // wait for one, finds another matrix' tiles where its own should be.
  void Fill() {
    Next();
    for (int i = 0; i < kTiles; ++i) {
      for (int j = 0; j <= i; ++j) {
        Choose(owner(j));
        FillTile<<<Grid(size_, size_), 128>>>(tile(i, j), size_, int64_t{i} * size_, int64_t{j} * size_, side(),
                                              which_);
      }
    }
    Wait();
  }
  // Fails unless the tiles are the factor.
  void CheckFactor(const std::string& way) const {
    CheckFactor(way, size_, [&](int i, int j) { return tile(i, j); });
  }
  // The same of tiles that are elsewhere, at(i, j), with columns so far apart.
  template <class F>
  void CheckFactor(const std::string& way, int64_t stride, F at) const {
    const auto by = [&](const std::vector<double>& x, bool transposed) {
      const auto multiply = [&](int d, const double* from, double* to) {
        for (int i = 0; i < kTiles; ++i) {
          for (int j = 0; j <= i; ++j) {
            if (owner(j) != d) continue;
            const int64_t in = int64_t{transposed ? i : j} * size_, out = int64_t{transposed ? j : i} * size_;
            MultiplyTile<<<Grid(size_, (size_ + 31) / 32), 128>>>(at(i, j), size_, stride, i == j, transposed,
                                                                  from + in, to + out);
          }
        }
      };
      return Gather(x, multiply, devices_);
    };
    const std::vector<double> found = by(by(x_, true), false);
    double wrong = 0, norm = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const double expected = product_[which_][i];
      wrong += (found[i] - expected) * (found[i] - expected);
      norm += expected * expected;
    }
    if (!(std::sqrt(wrong / norm) < 1e-12)) {
      Fail("Cholesky, " + way + ": the factor is wrong by " + std::to_string(std::sqrt(wrong / norm)));
    }
  }

 private:
  struct Vectors {
    double *in, *out;
  };

  void Wait() const {
    for (int d = 0; d < devices_; ++d) {
      Choose(d);
      Check(cudaGetLastError(), "launching");
      Check(cudaStreamSynchronize(nullptr), "waiting");
    }
  }
  // The sum over devices of what add(device, x, y) adds there to y.
  template <class F>
  std::vector<double> Gather(const std::vector<double>& x, F add, int devices) const {
    const size_t bytes = x.size() * sizeof(double);
    for (int d = 0; d < devices; ++d) {
      Choose(d);
      const Vectors& of = vectors_[static_cast<size_t>(d)];
      Check(cudaMemcpy(of.in, x.data(), bytes, cudaMemcpyHostToDevice), "setting a vector");
      Check(cudaMemsetAsync(of.out, 0, bytes, nullptr), "clearing a vector");
      add(d, of.in, of.out);
    }
    Wait();
    std::vector<double> sum(x.size()), part(x.size());
    for (int d = 0; d < devices; ++d) {
      Choose(d);
      Check(cudaMemcpy(part.data(), vectors_[static_cast<size_t>(d)].out, bytes, cudaMemcpyDeviceToHost), "reading");
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    return sum;
  }

  const int size_, devices_;
  std::vector<double> x_, product_[2];  // A x_, of each matrix
  int which_ = 0;
  uint32_t fills_ = 0;
  std::vector<double*> tiles_;
  std::vector<Vectors> vectors_;  // of each device
};

}  // namespace bench
