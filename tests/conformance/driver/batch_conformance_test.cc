// Batches of copies, against plain loops on host memory.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "src/driver/copy_box.h"
#include "tests/conformance/driver/box_oracle.h"
#include "tests/conformance/driver/driver_conformance.h"
#include "tests/support/sanitized.h"

namespace penstock::driver::conformance::batch_conformance_test {
namespace {

constexpr CopyKind kKinds[] = {CopyKind::kHostToDevice, CopyKind::kDeviceToHost, CopyKind::kDeviceToDevice};
constexpr size_t kMostPieces = 1000;
constexpr size_t kBlock = kSanitized ? 1 << 20 : 3 << 20;
constexpr size_t kLarge = kBlock / 3;

// A box, and where it begins in the blocks it is copied between.
struct Placed {
  Shape shape;
  size_t dst_first = 0, src_first = 0;
};
struct Layout {
  std::string name;
  std::vector<Placed> pieces;
};

// Lays pieces out side by side with gaps, on both sides, in the order they come in.
class Placer {
 public:
  // Beginning that many bytes behind a multiple of 16.
  Placed At(const Shape& shape, size_t dst_offset, size_t src_offset) {
    return {shape, Next(&dst_end_, shape.dst_span(), dst_offset), Next(&src_end_, shape.src_span(), src_offset)};
  }

 private:
  static size_t Next(size_t* end, size_t bytes, size_t offset) {
    const size_t first = (*end + 31) / 16 * 16 + offset;
    *end = first + bytes;
    return first;
  }
  size_t dst_end_ = 0, src_end_ = 0;
};

Shape Line(size_t bytes) { return {bytes}; }

// Places drawn by lot, so that neighbours of the source are none of the destination.
Layout RandomLayout(int count, size_t most, std::mt19937& random) {
  Layout layout{std::to_string(count) + " pieces of up to " + std::to_string(most) + " bytes", {}};
  Placer placer;
  for (int i = 0; i < count; ++i) {
    layout.pieces.push_back(placer.At(RandomShape(random, most), random() % 16, random() % 16));
  }
  // Exchanging what two of one shape read leaves each in its place.
  for (int i = 0; i < 4 * count; ++i) {
    Placed &a = layout.pieces[random() % count], &b = layout.pieces[random() % count];
    if (a.shape.src_span() == b.shape.src_span()) std::swap(a.src_first, b.src_first);
  }
  std::shuffle(layout.pieces.begin(), layout.pieces.end(), random);
  return layout;
}

Layout EveryAlignment() {
  Layout layout{"every alignment", {}};
  Placer placer;
  for (const size_t bytes : {1, 2, 15, 16, 17, 33, 67, 1000}) {
    for (const size_t dst : {0, 1, 2, 3, 4, 6, 8, 12, 15}) {
      for (const size_t src : {0, 1, 2, 3, 4, 6, 8, 12, 15}) layout.pieces.push_back(placer.At(Line(bytes), dst, src));
    }
  }
  return layout;
}

// Tiles of all columns of a plane, whose rows lie between each other's, into blocks of their own.
Layout ColumnTiles() {
  Layout layout{"column tiles", {}};
  constexpr size_t kPitch = 1237, kRows = 90;
  Placer dense;
  size_t column = 3;
  for (const size_t width : {1, 4, 16, 64, 5, 100, 512, 300}) {
    const Shape tile{width, kRows, 1, kPitch, width, 0, 0};
    layout.pieces.push_back({tile, column, dense.At(tile, 0, width % 5).src_first});
    column += width;
  }
  return layout;
}

Layout OneLargeAmongSmall() {
  Layout layout{"one large among small", {}};
  Placer placer;
  for (int i = 0; i < 300; ++i) layout.pieces.push_back(placer.At(Line(i == 77 ? kLarge + 9 : 64), 0, i % 16));
  return layout;
}

Layout NothingAmongSomething() {
  Layout layout{"nothing among something", {}};
  Placer placer;
  const Shape nothing[] = {{0, 3, 3, 1, 1, 3, 3}, {3, 0, 3, 3, 3, 9, 9}, {3, 3, 0, 3, 3, 9, 9}};
  for (int i = 0; i < 30; ++i) layout.pieces.push_back(placer.At(i % 4 < 3 ? nothing[i % 4] : Line(100), 1, 2));
  return layout;
}

std::vector<Layout> Layouts() {
  std::mt19937 random(20261125);
  std::vector<Layout> layouts = {EveryAlignment(), ColumnTiles(), OneLargeAmongSmall(), NothingAmongSomething()};
  for (const int count : {1, 2, 7, 33, 300}) layouts.push_back(RandomLayout(count, 2000, random));
  for (const int count : {1, 5, 20}) layouts.push_back(RandomLayout(count, kLarge / 18, random));
  return layouts;
}

// Memory for batches of every kind, kBlock bytes each.
struct Blocks {
  const std::byte *source, *before;   // pinned: what is copied, and what is there before
  std::byte* host;                    // pinned
  std::byte *device_source, *device;  // device_source is as source
  CopyPiece* table;                   // pinned
};

// Queues the pieces as one batch, so that b.host has what is there afterwards.
absl::Status QueueBatch(Driver& driver, Stream stream, const Blocks& b, CopyKind kind,
                        const std::vector<Placed>& pieces) {
  std::byte* const dst = kind == CopyKind::kDeviceToHost ? b.host : b.device;
  const std::byte* const src = kind == CopyKind::kHostToDevice ? b.source : b.device_source;
  BatchOp batch{.kind = kind, .pieces = b.table};
  for (const Placed& p : pieces) {
    const absl::StatusOr<CopyPiece> piece = PieceOf(p.shape.Between(kind, dst + p.dst_first, src + p.src_first));
    if (!piece.ok()) return piece.status();
    b.table[batch.count++] = *piece;
  }
  if (pieces.size() % 2 != 0) batch.size = *SizeOf(batch);  // or the driver asks itself
  const CopyOp prepare{.kind = CopyKind::kHostToDevice, .dst = b.device, .src = b.before, .width = kBlock};
  const CopyOp fetch{.kind = CopyKind::kDeviceToHost, .dst = b.host, .src = b.device, .width = kBlock};
  if (kind == CopyKind::kDeviceToHost) {
    std::memcpy(b.host, b.before, kBlock);
    return driver.CopyBatch(stream, batch);
  }
  absl::Status status = driver.Copy(stream, prepare);
  if (status.ok()) status = driver.CopyBatch(stream, batch);
  return status.ok() ? driver.Copy(stream, fetch) : status;
}

// Where two blocks differ first.
size_t FirstDifference(const std::byte* a, const Bytes& b) {
  if (std::memcmp(a, b.data(), b.size()) == 0) return b.size();
  return static_cast<size_t>(std::mismatch(b.begin(), b.end(), a).first - b.begin());
}

TEST_P(DriverConformance, BatchesOfEveryKindCopyExactlyTheirPieces) {
  const Blocks b{PinnedNoise(kBlock, 11),   PinnedNoise(kBlock, 12),   Pinned<std::byte>(kBlock),
                 Device<std::byte>(kBlock), Device<std::byte>(kBlock), Pinned<CopyPiece>(kMostPieces)};
  ASSERT_OK(Upload(stream_, b.device_source, b.source, kBlock));
  const Bytes source(b.source, b.source + kBlock), before(b.before, b.before + kBlock);
  for (const Layout& layout : Layouts()) {
    ASSERT_LE(layout.pieces.size(), kMostPieces);
    Bytes expected = before;
    for (const Placed& p : layout.pieces) {
      ASSERT_LE(std::max(p.dst_first + p.shape.dst_span(), p.src_first + p.shape.src_span()), kBlock) << layout.name;
      CopyBox(p.shape, expected, p.dst_first, source, p.src_first);
    }
    for (const CopyKind kind : kKinds) {
      ASSERT_TRUE(Finish(stream_));
      ASSERT_OK(QueueBatch(*driver_, stream_, b, kind, layout.pieces));
      ASSERT_TRUE(Finish(stream_));
      ASSERT_EQ(FirstDifference(b.host, expected), kBlock) << layout.name << ", kind " << static_cast<int>(kind);
    }
  }
}

TEST_P(DriverConformance, ABatchKeepsItsPlaceInItsStream) {
  constexpr int kCount = 64;
  int32_t *const from = Pinned<int32_t>(kCount), *const to = Pinned<int32_t>(kCount);
  int32_t *const a = Device<int32_t>(kCount), *const b = Device<int32_t>(kCount);
  CopyPiece* const table = Pinned<CopyPiece>(3 * kCount);
  for (int i = 0; i < kCount; ++i) {  // each turns the order round
    from[i] = i;
    table[i] = {.dst = a + i, .src = from + kCount - 1 - i, .width = 4};
    table[kCount + i] = {.dst = b + i, .src = a + kCount - 1 - i, .width = 4};
    table[2 * kCount + i] = {.dst = to + i, .src = b + kCount - 1 - i, .width = 4};
  }
  ASSERT_OK(driver_->Fill(stream_, {.dst = a, .count = kCount * 4}));
  ASSERT_OK(driver_->Fill(stream_, {.dst = b, .count = kCount * 4}));
  // Whatever does not wait for what stands before it is done while the first kernel is held.
  ASSERT_TRUE(Hold(stream_, NewLatch()));
  ASSERT_OK(driver_->CopyBatch(stream_, {.kind = CopyKind::kHostToDevice, .pieces = table, .count = kCount}));
  ASSERT_OK(Step(stream_, a, kCount, 5));
  ASSERT_OK(
      driver_->CopyBatch(stream_, {.kind = CopyKind::kDeviceToDevice, .pieces = table + kCount, .count = kCount}));
  ASSERT_OK(Step(stream_, b, kCount, 7));
  ASSERT_OK(
      driver_->CopyBatch(stream_, {.kind = CopyKind::kDeviceToHost, .pieces = table + 2 * kCount, .count = kCount}));
  const Event end = NewEvent();
  ASSERT_OK(driver_->Record(end, stream_));
  EXPECT_FALSE(*driver_->Query(end));
  OpenLatches();
  ASSERT_TRUE(Finish(end));
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(to[i], 3 * (3 * (kCount - 1 - i) + 5) + 7) << i;
}

TEST_P(DriverConformance, BatchesOfNothingDoNothing) {
  CopyPiece* const table = Pinned<CopyPiece>(3);
  std::byte *const device = Device<std::byte>(16), *const pinned = Pinned<std::byte>(16);
  for (const CopyKind kind : kKinds) {
    EXPECT_OK(driver_->CopyBatch(stream_, {.kind = kind}));
    const bool down = kind == CopyKind::kDeviceToHost, up = kind == CopyKind::kHostToDevice;
    std::fill_n(table, 3, CopyPiece{.dst = down ? pinned : device, .src = up ? pinned : device});
    EXPECT_OK(driver_->CopyBatch(stream_, {.kind = kind, .pieces = table, .count = 3}));
  }
  EXPECT_TRUE(Finish(stream_));
}

TEST_P(DriverConformance, ABatchWithAWrongPieceIsRefusedWholeAndTheStreamGoesOn) {
  CopyPiece* const table = Pinned<CopyPiece>(2);
  std::byte *const device = Device<std::byte>(64), *const pinned = PinnedNoise(64, 3);
  ASSERT_OK(driver_->Fill(stream_, {.dst = device, .count = 64}));
  table[0] = {.dst = device, .src = pinned, .width = 16};
  const CopyPiece wrong[] = {
      {.dst = device + 16, .src = pinned, .width = 8, .height = 2, .dst_pitch = 7, .src_pitch = 8},
      {.dst = device + 16, .src = pinned, .width = 8, .height = 3, .dst_pitch = size_t{1} << 63, .src_pitch = 8},
      {.dst = device + 16, .src = pinned, .width = ~size_t{0} - 8},
  };
  for (const CopyPiece& piece : wrong) {
    table[1] = piece;
    const absl::Status status = driver_->CopyBatch(stream_, {.pieces = table, .count = 2});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.ToString().find("piece 1"), std::string::npos) << status;
  }
  EXPECT_EQ(driver_->CopyBatch(stream_, {.pieces = nullptr, .count = 1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(driver_->CopyBatch(stream_, {.kind = CopyKind::kPeer, .pieces = table, .count = 1}).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(device, 64), Bytes(64, std::byte{0})) << "nothing was copied";
}

}  // namespace
}  // namespace penstock::driver::conformance::batch_conformance_test
