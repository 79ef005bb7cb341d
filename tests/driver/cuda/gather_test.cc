// Batches on a GPU where the conformance suite does not go: every alignment of wide words, many pieces, pieces of very
// different sizes, memory that the application pinned itself, rows that are far apart.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/driver/cuda/gpu_test.h"

namespace penstock::driver::gather_test {
namespace {

using Bytes = std::vector<std::byte>;

struct Line {
  size_t dst, src, bytes;  // where they begin
};

class GatherTest : public GpuTest {
 protected:
  // Copies the lines between blocks of these sizes as one batch, both ways, and compares all of the destination.
  void Check(const std::vector<Line>& lines, size_t dst_bytes, size_t src_bytes) {
    auto* const table = reinterpret_cast<CopyPiece*>(Pinned(lines.size() * sizeof(CopyPiece)));
    const Bytes source = Noise(src_bytes, 1), before = Noise(dst_bytes, 2);
    Bytes expected = before;
    for (const Line& line : lines) std::copy_n(&source[line.src], line.bytes, &expected[line.dst]);
    for (const CopyKind kind : {CopyKind::kHostToDevice, CopyKind::kDeviceToHost}) {
      const bool up = kind == CopyKind::kHostToDevice;
      std::byte* const src = up ? Pinned(src_bytes) : Device(src_bytes);
      std::byte* const dst = up ? Device(dst_bytes) : Pinned(dst_bytes);
      Upload(src, source);
      Upload(dst, before);
      for (size_t i = 0; i < lines.size(); ++i) {
        table[i] = {.dst = dst + lines[i].dst, .src = src + lines[i].src, .width = lines[i].bytes};
      }
      const absl::Status status = driver_->CopyBatch(stream_, {.kind = kind, .pieces = table, .count = lines.size()});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(Finish(stream_).ok());
      EXPECT_TRUE(Download(dst, dst_bytes) == expected) << (up ? "up" : "down");
    }
  }
};

TEST_F(GatherTest, EveryAlignmentOfEitherSide) {
  std::vector<Line> lines;
  size_t dst = 0, src = 0;
  for (const size_t bytes : {1, 7, 15, 16, 31, 40, 127, 5000}) {
    for (size_t d = 0; d < 16; ++d) {
      for (size_t s = 0; s < 16; ++s) {
        lines.push_back({dst + d, src + s, bytes});
        dst += (bytes + 47) / 16 * 16;
        src += (bytes + 47) / 16 * 16;
      }
    }
  }
  Check(lines, dst, src);
}

TEST_F(GatherTest, ManyPieces) {
  std::vector<Line> lines;
  for (size_t i = 0; i < 100000; ++i) lines.push_back({i * 64, (i * 7919) % 100000 * 72, 64});
  Check(lines, 100000 * 64, 100000 * 72);
}

TEST_F(GatherTest, OnePieceThatAllBlocksShare) { Check({{3, 9, (64u << 20) + 5}}, (64u << 20) + 16, (64u << 20) + 16); }

TEST_F(GatherTest, PiecesOfVeryDifferentSizes) {
  const uint32_t seed = 20261126;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<Line> lines;
  size_t dst = 0, src = 0;
  for (int i = 0; i < 2000; ++i) {
    const size_t bytes = size_t{1} << random() % (i % 100 == 0 ? 21 : 10);
    lines.push_back({dst, src, bytes - bytes / 7});
    dst += bytes;
    src += bytes + random() % 9;
  }
  std::shuffle(lines.begin(), lines.end(), random);
  Check(lines, dst, src);
}

// By the host's addresses, with no flag that maps it.
TEST_F(GatherTest, MemoryThatTheApplicationRegistered) {
  const size_t bytes = 1 << 20;
  Bytes host = Noise(bytes, 4);
  const Bytes source = host;
  ASSERT_EQ(cudaHostRegister(host.data(), bytes, cudaHostRegisterDefault), cudaSuccess);
  std::byte *const up = Device(bytes), *const down = Device(bytes);
  Upload(down, Noise(bytes, 5));
  auto* const table = reinterpret_cast<CopyPiece*>(Pinned(128 * sizeof(CopyPiece)));
  for (size_t i = 0; i < 64; ++i) {
    const size_t at = i * (bytes / 64);
    table[i] = {.dst = up + at, .src = host.data() + at, .width = bytes / 64};
    table[64 + i] = {.dst = host.data() + at, .src = down + at, .width = bytes / 64};
  }
  EXPECT_TRUE(driver_->CopyBatch(stream_, {.kind = CopyKind::kHostToDevice, .pieces = table, .count = 64}).ok());
  EXPECT_TRUE(driver_->CopyBatch(stream_, {.kind = CopyKind::kDeviceToHost, .pieces = table + 64, .count = 64}).ok());
  EXPECT_TRUE(Finish(stream_).ok());
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
  EXPECT_TRUE(Download(up, bytes) == source);
  EXPECT_TRUE(host == Noise(bytes, 5));
}

// More than the largest pitch that CUDA promises (cudaDevAttrMaxPitch); its copies bear it.
TEST_F(GatherTest, RowsAndSlicesMoreThan2GiBApart) {
  const size_t far = (size_t{2} << 30) + 500, bytes = 2 * far + 4096;
  const absl::StatusOr<void*> memory = driver_->AllocateDevice(0, bytes);
  if (!memory.ok()) GTEST_SKIP() << "needs " << bytes << " bytes: " << memory.status();
  auto* const device = static_cast<std::byte*>(*memory);
  std::byte *const up = Pinned(3000), *const down = Pinned(3000);
  const Bytes noise = Noise(3000, 6);
  std::copy(noise.begin(), noise.end(), up);
  const CopyOp boxes[] = {
      {.width = 1000, .height = 3, .dst_pitch = far, .src_pitch = 1000},
      {.width = 500, .height = 2, .depth = 3, .dst_pitch = 600, .src_pitch = 500, .dst_slice = far, .src_slice = 1000}};
  auto* const table = reinterpret_cast<CopyPiece*>(Pinned(sizeof(CopyPiece)));
  for (CopyOp box : boxes) {
    for (const bool batch : {false, true}) {
      ASSERT_TRUE(driver_->Fill(stream_, {.dst = device, .count = bytes}).ok());
      box.kind = CopyKind::kHostToDevice;
      box.dst = device;
      box.src = up;
      EXPECT_EQ(driver_->Copy(stream_, box), absl::OkStatus());
      ASSERT_TRUE(Finish(stream_).ok());
      std::fill_n(down, 3000, std::byte{0});
      box.kind = CopyKind::kDeviceToHost;
      box.dst = down;
      box.src = device;
      std::swap(box.dst_pitch, box.src_pitch);
      std::swap(box.dst_slice, box.src_slice);
      if (batch) {
        *table = {.dst = box.dst,
                  .src = box.src,
                  .width = box.width,
                  .height = static_cast<uint32_t>(box.height),
                  .depth = static_cast<uint32_t>(box.depth),
                  .dst_pitch = box.dst_pitch,
                  .src_pitch = box.src_pitch,
                  .dst_slice = box.dst_slice,
                  .src_slice = box.src_slice};
        EXPECT_EQ(driver_->CopyBatch(stream_, {.kind = box.kind, .pieces = table, .count = 1}), absl::OkStatus());
      } else {
        EXPECT_EQ(driver_->Copy(stream_, box), absl::OkStatus());
      }
      ASSERT_TRUE(Finish(stream_).ok());
      EXPECT_TRUE(std::equal(noise.begin(), noise.end(), down)) << "batch " << batch;
      std::swap(box.dst_pitch, box.src_pitch);
      std::swap(box.dst_slice, box.src_slice);
    }
  }
  driver_->FreeDevice(0, device);
}

}  // namespace
}  // namespace penstock::driver::gather_test
