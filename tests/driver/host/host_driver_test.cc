// The host driver through the driver interface, where it differs from CUDA's: refusals, translated pointers, split
// rows, host fallbacks. What both have in common is in tests/conformance/driver/.
#include "src/driver/host/host_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/conformance/driver/packed_args.h"
#include "tests/driver/host/host_driver_fixture.h"
#include "tests/support/quick_deaths.h"

namespace penstock::driver::host::host_driver_test {
namespace {

using conformance::PackedArgs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST_F(HostDriverTest, DescribesItsDevices) {
  ASSERT_EQ(driver_->device_count(), 2);
  const DeviceInfo& info = driver_->device(1);
  EXPECT_EQ(info.kind, DeviceKind::kHost);
  EXPECT_EQ(info.name, "host:1");
  EXPECT_EQ(info.description, "3 CPU threads");
  EXPECT_EQ(info.memory_bytes, 64 << 20);
  EXPECT_EQ(info.compute_units, 3);
  EXPECT_TRUE(driver_->notifies_completion());
  EXPECT_EQ(driver_->NativeStream(stream_), nullptr);
  EXPECT_EQ(driver_->LoadKernel(0, {})->kernel, nullptr);
}

TEST_F(HostDriverTest, DefaultsFitTheComputer) {
  Make({.devices = 4});
  ASSERT_EQ(driver_->device_count(), 4);
  EXPECT_GE(driver_->device(0).compute_units, 2);
  EXPECT_GT(driver_->device(3).memory_bytes, 64 << 20);
  EXPECT_LE(driver_->device(3).memory_bytes, int64_t{16} << 30);
}

TEST_F(HostDriverTest, ADeviceThatIsNotThereIsRefused) {
  for (const int device : {-1, 2}) {
    EXPECT_EQ(driver_->CreateStream(device, 0).status().code(), kRefused);
    EXPECT_EQ(driver_->CreateEvent(device, false).status().code(), kRefused);
    EXPECT_EQ(driver_->AllocateDevice(device, 1).status().code(), kRefused);
    EXPECT_EQ(driver_->LoadKernel(device, {}).status().code(), kRefused);
  }
}

TEST_F(HostDriverTest, WorkOnADestroyedStreamIsRefused) {
  std::byte* const memory = Device(16);
  driver_->DestroyStream(stream_);
  EXPECT_EQ(driver_->Copy(stream_, {}).code(), kRefused);
  EXPECT_EQ(driver_->Fill(stream_, {.dst = memory, .count = 16}).code(), kRefused);
  EXPECT_EQ(driver_->Launch(stream_, {}).code(), kRefused);
}

using HostDriverDeathTest = HostDriverTest;

TEST_F(HostDriverDeathTest, TheHostCannotTouchDeviceMemory) {
  const QuickDeaths quick;
  volatile std::byte* const memory = Device(16);
  EXPECT_DEATH(static_cast<void>(*memory), "");
  EXPECT_DEATH(*memory = std::byte{1}, "");
}

// --- memory ---

TEST_F(HostDriverTest, InspectKnowsKindsOfMemory) {
  using Kind = PointerInfo::Kind;
  std::byte *const on_first = Device(100), *const on_second = Device(100, 1), *const pinned = Pinned(100);
  EXPECT_EQ(driver_->Inspect(on_first)->kind, Kind::kDevice);
  EXPECT_EQ(driver_->Inspect(on_first)->device, 0);
  EXPECT_EQ(driver_->Inspect(on_second + 99)->device, 1);
  EXPECT_EQ(driver_->Inspect(pinned)->kind, Kind::kPinned);
  EXPECT_EQ(driver_->Inspect(pinned + 99)->kind, Kind::kPinned);
  EXPECT_EQ(driver_->Inspect(pinned + 100)->kind, Kind::kPageable);
  EXPECT_EQ(driver_->Inspect(pinned)->device, -1);
  int local = 0;
  EXPECT_EQ(driver_->Inspect(&local)->kind, Kind::kPageable);
  EXPECT_EQ(driver_->Inspect(nullptr)->kind, Kind::kPageable);
  for (std::byte* const block : {on_first, on_second, pinned}) {  // the 100 bytes that were asked for
    EXPECT_EQ(driver_->Inspect(block + 50)->begin, reinterpret_cast<uintptr_t>(block));
    EXPECT_EQ(driver_->Inspect(block + 50)->end, reinterpret_cast<uintptr_t>(block + 100));
  }
  driver_->FreePinned(pinned);
  EXPECT_EQ(driver_->Inspect(pinned)->kind, Kind::kPageable);
  driver_->FreeDevice(0, on_first);
  EXPECT_EQ(driver_->Inspect(on_first).status().code(), kRefused);
}

TEST_F(HostDriverTest, CopiesFromAndToPageableMemoryAreRefused) {
  std::byte* const device = Device(100);
  std::vector<std::byte> pageable(100);
  const absl::Status up = driver_->Copy(stream_, {.dst = device, .src = pageable.data(), .width = 100});
  EXPECT_EQ(up.code(), kRefused);
  EXPECT_THAT(Text(up), AllOf(HasSubstr("copy source"), HasSubstr("not pinned"), HasSubstr("+100)")));
  const absl::Status down =
      driver_->Copy(stream_, {.kind = CopyKind::kDeviceToHost, .dst = pageable.data(), .src = device, .width = 100});
  EXPECT_EQ(down.code(), kRefused);
  EXPECT_THAT(Text(down), HasSubstr("copy destination"));
}

TEST_F(HostDriverTest, RangesOutsideABlockAreRefused) {
  std::byte *const device = Device(1000), *const other = Device(1000, 1), *const pinned = Pinned(1000);
  const CopyOp fits{.dst = device, .src = pinned, .width = 1000};
  EXPECT_TRUE(driver_->Copy(stream_, fits).ok());
  EXPECT_TRUE(Finish(stream_)) << "before the block is freed";
  std::vector<CopyOp> bad(9, fits);
  bad[0].width = 1001;
  bad[1].dst = device + 1;
  bad[2].src = pinned + 1;
  bad[3].dst = other;   // of another device than the stream's
  bad[4].dst = pinned;  // the wrong way round
  bad[5].dst = nullptr;
  bad[6] = {.dst = device, .src = pinned, .width = 10, .height = 11, .dst_pitch = 100, .src_pitch = 10};
  bad[7] = {.dst = device, .src = pinned, .width = 10, .height = 11, .dst_pitch = 10, .src_pitch = 100};
  bad[8] = {.kind = CopyKind::kPeer, .dst = device, .src = device, .width = 1, .dst_device = 0, .src_device = 1};
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_EQ(driver_->Copy(stream_, bad[i]).code(), kRefused) << i;
  const absl::Status status = driver_->Copy(stream_, bad[0]);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("+1001)"), HasSubstr("host:0")));
  driver_->FreeDevice(0, device);
  EXPECT_EQ(driver_->Copy(stream_, fits).code(), kRefused) << "freed";
}

TEST_F(HostDriverTest, BoxesThatOverlapThemselvesOrOverflowAreRefused) {
  constexpr size_t kHuge = size_t{1} << 63;  // twice this is 0
  std::byte *const device = Device(1000), *const pinned = Pinned(1000);
  const std::vector<CopyOp> bad = {
      {.dst = device, .src = pinned, .width = 10, .height = 2, .dst_pitch = 9, .src_pitch = 10},
      {.dst = device, .src = pinned, .width = 10, .height = 2, .dst_pitch = 10, .src_pitch = 9},
      {.dst = device,
       .src = pinned,
       .width = 9,
       .height = 2,
       .depth = 2,
       .dst_pitch = 10,
       .src_pitch = 10,
       .dst_slice = 18,
       .src_slice = 20},
      {.dst = device, .src = pinned, .width = 8, .height = 3, .dst_pitch = kHuge, .src_pitch = kHuge},
      {.dst = device, .src = pinned, .width = 8, .depth = 3, .dst_slice = kHuge, .src_slice = kHuge},
      {.dst = device, .src = pinned, .width = 8, .height = kHuge, .dst_pitch = 8, .src_pitch = 8},
  };
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_EQ(driver_->Copy(stream_, bad[i]).code(), kRefused) << i;
}

TEST_F(HostDriverTest, FillsOutsideABlockOrWithOddPatternsAreRefused) {
  std::byte* const device = Device(1000);
  EXPECT_EQ(driver_->Fill(stream_, {.dst = device, .count = 1001}).code(), kRefused);
  EXPECT_EQ(driver_->Fill(stream_, {.dst = device, .count = 1, .height = 11, .pitch = 100}).code(), kRefused);
  EXPECT_EQ(driver_->Fill(stream_, {.dst = device, .pattern_size = 4, .count = 1, .depth = 2, .slice = 997}).code(),
            kRefused);
  EXPECT_EQ(driver_->Fill(stream_, {.dst = Pinned(10), .count = 10}).code(), kRefused);
  EXPECT_EQ(driver_->Fill(stream_, {.dst = device, .pattern_size = 0, .count = 1}).code(), kRefused);
  EXPECT_EQ(driver_->Fill(stream_, {.dst = device, .pattern_size = 17, .count = 1}).code(), kRefused);
  EXPECT_EQ(driver_->Fill(stream_, {.dst = device, .pattern_size = 16, .count = (size_t{1} << 60) + 1}).code(),
            kRefused);
}

// --- batches ---

TEST_F(HostDriverTest, ABatchIsDoneByTheEngineOfItsDirection) {
  std::byte *const device = Device(16), *const pinned = Pinned(32);
  auto* const table = Pinned<CopyPiece>(2);
  table[0] = {.dst = device, .src = pinned, .width = 16};
  table[1] = {.dst = pinned + 16, .src = device, .width = 16};
  const Stream copies = *driver_->CreateStream(0, 0);
  // Every compute thread is held meanwhile.
  std::vector<Latch*> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(&NewLatch());
    const KernelOp op{.call = &Arrive, .callable = held.back()};
    ASSERT_TRUE(driver_->Launch(*driver_->CreateStream(0, 0), op).ok());
    ASSERT_TRUE(held.back()->AwaitArrived());
  }
  ASSERT_TRUE(driver_->CopyBatch(copies, {.kind = CopyKind::kHostToDevice, .pieces = table, .count = 1}).ok());
  ASSERT_TRUE(driver_->CopyBatch(copies, {.kind = CopyKind::kDeviceToHost, .pieces = table + 1, .count = 1}).ok());
  EXPECT_TRUE(Finish(copies));
  for (Latch* latch : held) latch->Open();
}

TEST_F(HostDriverTest, BatchesOfWrongMemoryAreRefusedByThePiece) {
  std::byte *const device = Device(1000), *const other = Device(1000, 1), *const pinned = Pinned(1000);
  std::vector<std::byte> pageable(1000);
  auto* const table = Pinned<CopyPiece>(2);
  const CopyPiece fits{.dst = device, .src = pinned, .width = 500};
  const CopyPiece bad[] = {{.dst = device, .src = pinned, .width = 1001},
                           {.dst = other, .src = pinned, .width = 1},
                           {.dst = device, .src = pageable.data(), .width = 1},
                           {.dst = pinned, .src = pinned, .width = 1},
                           {.dst = nullptr, .src = pinned, .width = 1}};
  for (const CopyPiece& piece : bad) {
    table[0] = fits;
    table[1] = piece;
    const absl::Status status = driver_->CopyBatch(stream_, {.pieces = table, .count = 2});
    EXPECT_EQ(status.code(), kRefused);
    EXPECT_THAT(Text(status), HasSubstr("piece 1"));
  }
  const absl::Status unpinned = driver_->CopyBatch(stream_, {.pieces = &fits, .count = 1});
  EXPECT_EQ(unpinned.code(), kRefused);
  EXPECT_THAT(Text(unpinned), HasSubstr("table"));
}

// A GPU reads the table when it works on it, so a table that changes before is a mistake there.
TEST_F(HostDriverTest, ATableThatChangesTooEarlyFailsTheRun) {
  std::byte *const device = Device(32), *const pinned = Pinned(32);
  auto* const table = Pinned<CopyPiece>(1);
  *table = {.dst = device, .src = pinned, .width = 16};
  Latch& held = NewLatch();
  ASSERT_TRUE(driver_->Launch(stream_, {.call = &Arrive, .callable = &held}).ok());
  ASSERT_TRUE(held.AwaitArrived());
  RunFault fault;
  ASSERT_TRUE(driver_->CopyBatch(stream_, {.pieces = table, .count = 1, .tag = {&fault, 3}}).ok());
  table->width = 8;
  held.Open();
  ASSERT_TRUE(Finish(stream_));
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 3);
  EXPECT_EQ(fault.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Text(fault.status()), HasSubstr("table"));
}

TEST_F(HostDriverTest, BatchesInsideADeviceAreExactForAnyThreads) {
  for (const int threads : {1, 2, 3, 5}) {
    Make({.threads_per_device = threads, .memory_bytes = 64 << 20});
    for (const size_t count : {1, 2, 3, 7, 31, 64}) {
      const size_t each = (size_t{1} << 21) / count / 4 * 4;
      auto *const from = Device<int32_t>(count * each / 4), *const to = Device<int32_t>(count * each / 4);
      auto* const table = Pinned<CopyPiece>(count);
      FillOp ones{.dst = from, .pattern_size = 4, .count = count * each / 4};
      ones.pattern[0] = std::byte{1};
      for (size_t i = 0; i < count; ++i) {
        table[i] = {.dst = to + i * each / 4, .src = from + (count - 1 - i) * each / 4, .width = each};
      }
      ASSERT_TRUE(driver_->Fill(stream_, ones).ok());
      ASSERT_TRUE(driver_->Fill(stream_, {.dst = to, .count = count * each}).ok());
      ASSERT_TRUE(
          driver_->CopyBatch(stream_, {.kind = CopyKind::kDeviceToDevice, .pieces = table, .count = count}).ok());
      EXPECT_EQ(Download(to, count * each / 4), std::vector<int32_t>(count * each / 4, 1)) << count << " pieces";
      driver_->FreeDevice(0, from);
      driver_->FreeDevice(0, to);
      driver_->FreePinned(table);
    }
  }
}

// --- kernels ---

// argv: int32_t* counts, int64_t row_elements. Adds one to each element of its rows.
void CountRows(void* const* argv, int64_t first, int64_t end) {
  int32_t* const counts = *static_cast<int32_t**>(argv[0]);
  const int64_t row_elements = *static_cast<int64_t*>(argv[1]);
  for (int64_t i = first * row_elements; i < end * row_elements; ++i) ++counts[i];
}

TEST_F(HostDriverTest, EveryRowIsDoneOnceForAnyRowsAndThreads) {
  for (const int threads : {1, 2, 3, 5}) {
    Make({.threads_per_device = threads, .memory_bytes = 64 << 20});
    for (const int64_t row_elements : {1, 700}) {
      for (const int64_t rows : {1, 2, 3, 7, 31, 64, 1000, 4096, 40001}) {
        const auto count = static_cast<size_t>(rows * row_elements);
        if (count > (1 << 20)) continue;
        int32_t* const counts = Device<int32_t>(count);
        ASSERT_TRUE(driver_->Fill(stream_, {.dst = counts, .count = count * sizeof(int32_t)}).ok());
        PackedArgs args;
        args.Add(counts).Add(row_elements);
        KernelOp op = args.op();
        op.range = &CountRows;
        op.rows = rows;
        op.row_elements = row_elements;
        ASSERT_TRUE(driver_->Launch(stream_, op).ok());
        EXPECT_THAT(Download(counts, count), Each(1)) << rows << " rows of " << row_elements << ", " << threads;
        driver_->FreeDevice(0, counts);
      }
    }
  }
}

struct Seen {
  void* pointers[4];
};
absl::Status NotePointers(void* callable, void* const* argv) {
  for (int i = 0; i < 4; ++i) static_cast<Seen*>(callable)->pointers[i] = *static_cast<void**>(argv[i]);
  *static_cast<int*>(*static_cast<void**>(argv[0])) = 5;  // the accessible address
  return absl::OkStatus();
}

TEST_F(HostDriverTest, KernelsGetAccessibleDevicePointersAndTheRestUnchanged) {
  int* const device = Device<int>(4);
  int* const pinned = Pinned<int>(4);
  int* const past_the_end = device + 4;
  Seen seen{};
  PackedArgs args;
  args.Add(device).Add(pinned + 1).Add(static_cast<int*>(nullptr)).Add(past_the_end);
  KernelOp op = args.op();
  op.call = &NotePointers;
  op.callable = &seen;
  ASSERT_TRUE(driver_->Launch(stream_, op).ok());
  ASSERT_TRUE(Finish(stream_));
  EXPECT_NE(seen.pointers[0], device);
  EXPECT_EQ(seen.pointers[1], pinned + 1);
  EXPECT_EQ(seen.pointers[2], nullptr);
  EXPECT_EQ(seen.pointers[3], static_cast<int*>(seen.pointers[0]) + 4);
  EXPECT_EQ(Download(device, 1)[0], 5);
}

TEST_F(HostDriverTest, PointersThatAKernelCannotUseAreRefused) {
  int local = 0;
  int* const freed = Device<int>(4);
  driver_->FreeDevice(0, freed);
  for (int* const pointer : {&local, Device<int>(4, 1), freed}) {
    PackedArgs args;
    args.Add(int64_t{1}).Add(pointer);
    KernelOp op = args.op();
    op.range = &CountRows;
    op.rows = 1;
    const absl::Status status = driver_->Launch(stream_, op);
    EXPECT_EQ(status.code(), kRefused);
    EXPECT_THAT(Text(status), HasSubstr("pointer 0"));
  }
}

TEST_F(HostDriverTest, AKernelWithoutHostCodeIsUnimplemented) {
  const absl::Status status = driver_->Launch(stream_, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Text(status), HasSubstr("HostFallback"));
}

TEST_F(HostDriverTest, ArgumentsOutsideTheirBlockAreRefused) {
  int64_t elsewhere = 0;
  void* const argv[] = {&elsewhere};
  const std::byte block[8] = {};
  const KernelOp op{.argv = argv, .argc = 1, .args = block, .args_size = 8, .range = &CountRows, .rows = 1};
  EXPECT_EQ(driver_->Launch(stream_, op).code(), kRefused);
  const uint32_t offset = 4;
  const KernelOp beyond{
      .args = block, .args_size = 8, .pointer_offsets = &offset, .pointer_count = 1, .range = &CountRows, .rows = 1};
  EXPECT_EQ(driver_->Launch(stream_, beyond).code(), kRefused);
}

TEST_F(HostDriverTest, ArgumentsOfAnyAlignmentKeepIt) {
  struct alignas(32) Wide {
    int64_t value[4];
  };
  alignas(64) std::byte block[96] = {};
  void* const argv[] = {block + 64};
  bool aligned = false;
  KernelOp op{.argv = argv, .argc = 1, .args = block, .args_size = sizeof(block)};
  op.callable = &aligned;
  op.call = [](void* out, void* const* copied) {
    *static_cast<bool*>(out) = reinterpret_cast<uintptr_t>(copied[0]) % alignof(Wide) == 0;
    return absl::OkStatus();
  };
  ASSERT_TRUE(driver_->Launch(stream_, op).ok());
  ASSERT_TRUE(Finish(stream_));
  EXPECT_TRUE(aligned);
}

// --- host fallbacks ---

TEST_F(HostDriverTest, ATwinRunsOnceForTheWholeNode) {
  Twin fallback;
  ASSERT_TRUE(driver_->Launch(stream_, {.rows = 1 << 20, .call = &Twin::Call, .callable = &fallback}).ok());
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(fallback.calls, 1);
}

TEST_F(HostDriverTest, ATwinsGateHoldsOverStreamsAndKeepsNoThread) {
  Twin fallback;
  fallback.latch = &NewLatch();
  TrySemaphore gate(2);
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(*driver_->CreateStream(0, 0));
    ASSERT_TRUE(driver_->Launch(streams.back(), {.call = &Twin::Call, .callable = &fallback, .gate = &gate}).ok());
  }
  ASSERT_TRUE(fallback.latch->AwaitArrived(2));
  ASSERT_TRUE(driver_->Fill(stream_, {.dst = Device(100), .count = 100}).ok());
  EXPECT_TRUE(Finish(stream_)) << "one of three threads is free";
  EXPECT_EQ(fallback.calls, 2);
  fallback.latch->Open();
  for (const Stream stream : streams) ASSERT_TRUE(Finish(stream));
  EXPECT_EQ(fallback.calls, 4);
  EXPECT_EQ(fallback.crowd.most(), 2);
}

TEST_F(HostDriverTest, CopyEnginesWorkWhileTheOnlyComputeThreadIsHeld) {
  Make({.devices = 2, .threads_per_device = 1, .memory_bytes = 1 << 20});
  Twin fallback;
  fallback.latch = &NewLatch();
  ASSERT_TRUE(driver_->Launch(stream_, {.call = &Twin::Call, .callable = &fallback}).ok());
  ASSERT_TRUE(fallback.latch->AwaitArrived());
  const Stream up = *driver_->CreateStream(0, 0), down = *driver_->CreateStream(0, 0);
  std::byte *const device = Device(100), *const pinned = Pinned(100), *const back = Pinned(100);
  std::memset(pinned, 9, 100);
  ASSERT_TRUE(driver_->Copy(up, {.dst = device, .src = pinned, .width = 100}).ok());
  ASSERT_TRUE(Finish(up));
  ASSERT_TRUE(driver_->Copy(down, {.kind = CopyKind::kDeviceToHost, .dst = back, .src = device, .width = 100}).ok());
  ASSERT_TRUE(Finish(down));
  EXPECT_EQ(std::memcmp(pinned, back, 100), 0);
  std::byte* const other = Device(100, 1);
  const CopyOp from_peer{
      .kind = CopyKind::kPeer, .dst = device, .src = other, .width = 100, .dst_device = 0, .src_device = 1};
  ASSERT_TRUE(driver_->Copy(up, from_peer).ok());
  ASSERT_TRUE(Finish(up));
  fallback.latch->Open();
  ASSERT_TRUE(Finish(stream_));
}

TEST_F(HostDriverTest, AfterAFailedTwinTheRunsOtherWorkIsSkipped) {
  Twin failing, never;
  failing.result = absl::DataLossError("broken");
  RunFault fault;
  const OpTag tag{&fault, 3};
  std::byte* const device = Device(100);
  std::byte* const pinned = Pinned(100);
  std::memset(pinned, 9, 100);
  ASSERT_TRUE(driver_->Fill(stream_, {.dst = device, .count = 100}).ok());
  ASSERT_TRUE(driver_->Launch(stream_, {.call = &Twin::Call, .callable = &failing, .tag = tag}).ok());
  ASSERT_TRUE(driver_->Launch(stream_, {.call = &Twin::Call, .callable = &never, .tag = {&fault, 4}}).ok());
  ASSERT_TRUE(driver_->Copy(stream_, {.dst = device, .src = pinned, .width = 100, .tag = tag}).ok());
  ASSERT_TRUE(Finish(stream_));
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 3);
  EXPECT_EQ(fault.status(), failing.result);
  EXPECT_EQ(never.calls, 0);
  EXPECT_THAT(Download(device, 100), Each(std::byte{0}));
}

TEST_F(HostDriverTest, AFunctorThatThrowsFailsItsRun) {
  RunFault fault;
  KernelOp op{.range = [](void* const*, int64_t, int64_t) { throw std::runtime_error("row on fire"); },
              .rows = 100000,
              .tag = {&fault, 2}};
  ASSERT_TRUE(driver_->Launch(stream_, op).ok());
  ASSERT_TRUE(Finish(stream_));
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 2);
  EXPECT_EQ(fault.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Text(fault.status()), HasSubstr("row on fire"));
}

}  // namespace
}  // namespace penstock::driver::host::host_driver_test
