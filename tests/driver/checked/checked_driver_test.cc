// Each rule of the checked driver: a use that keeps it, and one that breaks it, is refused and counted.
#include "src/driver/checked/checked_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/status.h"
#include "src/driver/host/host_driver.h"
#include "tests/driver/checked/checked_fixture.h"
#include "tests/support/latch.h"
#include "tests/support/sanitized.h"

namespace penstock::driver::checked::checked_driver_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CheckedDriverTest : public CheckedFixture {};

// --- handles ---

TEST_F(CheckedDriverTest, AStreamOrEventThatWasDestroyedIsNotUsedAgain) {
  const Stream stream = *driver_->CreateStream(0, 0);
  const Event event = *driver_->CreateEvent(0, false);
  driver_->DestroyStream(stream);
  driver_->DestroyEvent(event);
  const Stream next = *driver_->CreateStream(0, 0);
  EXPECT_FALSE(next == stream) << "a handle is never given out twice";
  ExpectRefused(driver_->Record(event_, stream), "stream is alive", "stream 3 was destroyed before");
  ExpectRefused(driver_->Record(event, stream_), "event is alive", "event 2 was destroyed before");
  ExpectRefused(driver_->Query(event).status(), "event is alive", "event 2 was destroyed before");
  ExpectRefused(driver_->Wait(Stream{77}, event_), "stream is alive", "stream 77 was never made by this driver");
  driver_->DestroyStream(stream);
  EXPECT_THAT(Violation(), HasSubstr("'destroyed once': DestroyStream: stream 3 was destroyed before"));
  driver_->DestroyEvent(event);
  EXPECT_THAT(Violation(), HasSubstr("'destroyed once': DestroyEvent: event 2 was destroyed before"));
  driver_->DestroyStream(next);
}

TEST_F(CheckedDriverTest, AStreamIsDestroyedWhenIdle) {
  if (kSanitized) GTEST_SKIP() << "leaves work behind on purpose, whose memory goes with the test";
  const Stream stream = *driver_->CreateStream(0, 0);
  ASSERT_OK(Upload(stream));
  driver_->DestroyStream(stream);
  EXPECT_THAT(Violation(), HasSubstr("'destroyed when idle': DestroyStream: stream 3 has 1 operations"));
}

TEST_F(CheckedDriverTest, AWaitIsForAnEventThatWasRecorded) {
  ASSERT_OK(driver_->Wait(stream_, event_));
  EXPECT_THAT(Violation(), HasSubstr("'recorded before waited for'"));
  ASSERT_OK(driver_->Record(event_, stream_));
  ASSERT_OK(driver_->Wait(other_, event_));
  EXPECT_EQ(Violation(), "");
}

TEST_F(CheckedDriverTest, TimesAreOfRecordedTimingEventsOfOneDevice) {
  const Event a = *driver_->CreateEvent(0, true), b = *driver_->CreateEvent(0, true);
  ASSERT_OK(driver_->Record(a, stream_));
  ASSERT_OK(driver_->Record(event_, stream_));
  ExpectRefused(driver_->Elapsed(a, b).status(), "timing events", "was never recorded");
  ExpectRefused(driver_->Elapsed(event_, a).status(), "timing events", "made without timing");
  driver_->DestroyEvent(a);
  driver_->DestroyEvent(b);
}

// --- devices ---

TEST_F(CheckedDriverTest, WorkIsSubmittedWithItsDeviceCurrent) {
  const int token = driver_->MakeCurrent(1);
  ExpectRefused(driver_->Record(event_, stream_), "device is current",
                "stream 1 of device 0 while the thread's current device is 1");
  driver_->RestoreCurrent(token);
  ASSERT_OK(driver_->Record(event_, stream_));
}

TEST_F(CheckedDriverTest, EventAndMemoryAreOfTheStreamsDevice) {
  const Event event = *driver_->CreateEvent(1, false);
  std::byte* const memory = Device(1);
  ExpectRefused(driver_->Record(event, stream_), "one device", "event 2 of device 1 on stream 1 of device 0");
  ExpectRefused(driver_->Fill(stream_, {.dst = memory, .count = 8}), "one device", "expected memory of device 0");
  ExpectRefused(Launch(stream_, memory), "one device", "device 1 block 3");
  ExpectRefused(
      driver_->Copy(
          stream_,
          {.kind = CopyKind::kPeer, .dst = memory, .src = device_, .width = 4, .dst_device = 0, .src_device = 1}),
      "one device", "is in device 0 block 1");
  ExpectRefused(
      driver_->Copy(stream_, {.kind = CopyKind::kPeer, .dst = memory, .src = memory, .dst_device = 1, .src_device = 1}),
      "one device", "Copy between devices 1 and 1 on stream 1 of device 0");
  driver_->DestroyEvent(event);
  driver_->FreeDevice(1, memory);
}

TEST_F(CheckedDriverTest, DevicesExist) {
  ExpectRefused(driver_->CreateStream(2, 0).status(), "device exists", "device 2 of 2");
  ExpectRefused(driver_->AllocateDevice(-1, 8).status(), "device exists", "device -1 of 2");
}

TEST_F(CheckedDriverTest, DeviceCodeCallsNothing) {
  absl::Status seen;
  struct Call {
    Driver* driver;
    absl::Status* seen;
  } call{driver_.get(), &seen};
  KernelOp op;
  op.call = [](void* self, void* const*) {
    auto* const c = static_cast<Call*>(self);
    *c->seen = c->driver->Inspect(c).status();
    return absl::OkStatus();
  };
  op.callable = &call;
  ASSERT_OK(driver_->Launch(stream_, op));
  Finish(stream_);
  ExpectRefused(seen, "no calls from device code", "Inspect was called by code that runs on a device");
}

// --- memory ---

TEST_F(CheckedDriverTest, BoxesLieInsideOneBlock) {
  ExpectRefused(Upload(stream_, 16), "inside the allocation", "by 16 bytes");
  ExpectRefused(driver_->Fill(stream_, {.dst = device_, .count = kBytes + 1}), "inside the allocation", "by 1 bytes");
  ExpectRefused(
      driver_->Fill(stream_, {.dst = device_, .pattern_size = 2, .count = 2, .height = 5, .pitch = kBytes / 4}),
      "inside the allocation", "by 4 bytes");
  ExpectRefused(driver_->Copy(stream_, {.kind = CopyKind::kHostToDevice,
                                        .dst = device_,
                                        .src = pinned_,
                                        .width = 16,
                                        .height = 9,
                                        .dst_pitch = 512,
                                        .src_pitch = 16}),
                "inside the allocation", "leaves device 0 block 1");
  EXPECT_EQ(Upload(stream_, 16, kBytes - 16), absl::OkStatus());
}

TEST_F(CheckedDriverTest, HostMemoryOfCopiesIsPinned) {
  std::vector<std::byte> pageable(64);
  ExpectRefused(
      driver_->Copy(stream_, {.kind = CopyKind::kHostToDevice, .dst = device_, .src = pageable.data(), .width = 64}),
      "memory is alive", "lies in no live block of pinned memory");
}

TEST_F(CheckedDriverTest, FreedMemoryIsNotUsed) {
  std::byte* const memory = Device(0);
  driver_->FreeDevice(0, memory);
  ExpectRefused(driver_->Fill(stream_, {.dst = memory, .count = 8}), "memory is alive", "device 0 block 3");
  ExpectRefused(Launch(stream_, memory + 8), "memory is alive", "was freed");
  driver_->FreeDevice(0, memory);
  EXPECT_THAT(Violation(), HasSubstr("'freed once'"));
  driver_->FreePinned(device_);
  EXPECT_THAT(Violation(), HasSubstr("'freed once'"));
  driver_->FreeDevice(1, device_);
  EXPECT_THAT(Violation(), HasSubstr("'freed once': FreeDevice(1, "));
}

TEST_F(CheckedDriverTest, MemoryIsFreedWhenTheHostHasSeenItsWorkEnd) {
  std::byte *const seen = Device(0), *const unseen = Device(0);
  ASSERT_OK(driver_->Fill(stream_, {.dst = seen, .count = 8}));
  Finish(stream_);
  driver_->FreeDevice(0, seen);
  EXPECT_EQ(Violation(), "");
  ASSERT_OK(driver_->Fill(stream_, {.dst = unseen, .count = 8}));
  driver_->FreeDevice(0, unseen);
  EXPECT_THAT(Violation(), HasSubstr("'freed when idle'"));
}

TEST_F(CheckedDriverTest, AnEventAfterAWaitShowsTheOtherStreamsWork) {
  std::byte* const memory = Device(0);
  ASSERT_OK(driver_->Fill(other_, {.dst = memory, .count = 8}));
  ASSERT_OK(driver_->Record(event_, other_));
  ASSERT_OK(driver_->Wait(stream_, event_));
  Finish(stream_);
  driver_->FreeDevice(0, memory);
  EXPECT_EQ(Violation(), "");
}

TEST_F(CheckedDriverTest, DeviceMemoryIsWrittenBeforeItIsRead) {
  ExpectRefused(Download(stream_, 0, 64), "written before read", "were never written");
  ASSERT_OK(Upload(stream_, 0, 64));
  ASSERT_OK(Download(stream_, 0, 64));
  ExpectRefused(Download(stream_, 32, 64), "written before read", "+32) of device 0 block 1");
  const Uses reads({{.data = device_ + 64, .width = 4, .reads = true}});
  ExpectRefused(Launch(stream_, device_, &reads), "written before read", "never written");
}

TEST_F(CheckedDriverTest, AFillWritesItsBoxAndNothingElse) {
  FillOp left{.dst = device_, .pattern_size = 4, .count = 4, .height = 3, .pitch = 64}, right = left;
  right.dst = device_ + 16;
  ASSERT_OK(driver_->Fill(stream_, left));
  ASSERT_OK(driver_->Fill(other_, right));  // columns that interleave
  ASSERT_OK(Download(stream_, 64, 16));
  ExpectRefused(Download(stream_, 128, 16 + 32), "written before read", "+16) of device 0 block 1");
  ExpectRefused(driver_->Fill(other_, left), "ordered accesses",
                "16 x 3 x 1 bytes) written by operation 1 of stream 1");
  Finish(other_);
}

TEST_F(CheckedDriverTest, AKernelThatWritesABoxFindsItPoisonedAndOneThatReadsDoesNot) {
  ASSERT_OK(Upload(stream_));
  const Uses uses({{.data = device_, .width = 16, .height = 3, .pitch = 64, .writes = true},
                   {.data = device_ + 3072, .width = 2, .height = 300, .pitch = 3, .writes = true},
                   {.data = device_ + 1024, .width = 32, .reads = true, .writes = true},
                   {.data = device_ + 1536, .width = 32, .writes = true, .keeps = true},
                   {.data = device_ + 2048, .width = 32, .writes = true},
                   {.data = device_ + 2064, .width = 32, .reads = true}});
  ASSERT_OK(Launch(stream_, device_, &uses));
  ASSERT_OK(Download(stream_));
  Finish(stream_);
  for (size_t i = 0; i < kBytes; ++i) {
    const bool poisoned = (i < 192 && i % 64 < 16) || (i >= 3072 && i < 3972 && i % 3 < 2);
    ASSERT_EQ(pinned_[i], std::byte{static_cast<unsigned char>(poisoned ? kPoison : 1)}) << i;
  }
  EXPECT_EQ(witness_->log().count(CallKind::kFill), 0) << "poisoning is no call of the library's";
}

// --- order ---

TEST_F(CheckedDriverTest, AccessesOfTheSameBytesAreOrdered) {
  ASSERT_OK(Upload(stream_, 0, 64));
  ExpectRefused(Download(other_, 32, 64), "written before read", "never written");
  ExpectRefused(Upload(other_, 32, 64), "ordered accesses", "written by operation 1 of stream 1 for node 4");
  const Uses reads({{.data = device_, .width = 4, .reads = true}});
  ExpectRefused(Launch(other_, device_, &reads), "ordered accesses", "no event orders them");
  ASSERT_OK(driver_->Record(event_, stream_));
  ASSERT_OK(driver_->Wait(other_, event_));
  ASSERT_OK(Launch(other_, device_, &reads));
}

TEST_F(CheckedDriverTest, OrderCountsTheHostsKnowledgeToo) {
  ASSERT_OK(Upload(stream_));
  Finish(stream_);
  ASSERT_OK(Download(other_));
}

TEST_F(CheckedDriverTest, ReadsOfTheSameBytesNeedNoOrder) {
  ASSERT_OK(driver_->Fill(stream_, {.dst = device_, .count = kBytes}));
  ASSERT_OK(driver_->Record(event_, stream_));
  ASSERT_OK(driver_->Wait(other_, event_));
  const Uses reads({{.data = device_, .width = 64, .reads = true}});
  ASSERT_OK(Launch(stream_, device_, &reads));
  ASSERT_OK(Launch(other_, device_, &reads));
}

TEST_F(CheckedDriverTest, ColumnsThatInterleaveDoNotCollide) {
  const Uses left({{.data = device_, .width = 32, .height = 4, .pitch = 64, .writes = true}});
  const Uses right({{.data = device_ + 32, .width = 32, .height = 4, .pitch = 64, .writes = true}});
  const Uses across({{.data = device_ + 64, .width = 64, .writes = true}});
  ASSERT_OK(Launch(stream_, device_, &left));
  ASSERT_OK(Launch(other_, device_, &right));
  ExpectRefused(Launch(other_, device_, &across), "ordered accesses", "operation 1 of stream 1");
}

// --- batches ---

TEST_F(CheckedDriverTest, ABatchIsOneCallAndOneOperationOfManyAccesses) {
  CopyPiece* const table = Table(2);
  table[0] = {.dst = device_, .src = pinned_, .width = 64};
  table[1] = {.dst = device_ + 128, .src = pinned_ + 64, .width = 4, .height = 8, .dst_pitch = 16, .src_pitch = 4};
  witness_->KeepCalls(true);
  ASSERT_OK(Batch(CopyKind::kHostToDevice, table, 2));
  const CallLog log = witness_->log();
  EXPECT_EQ(TextOf(log.calls().back()), "CopyBatch stream 1 node 6 96 bytes");
  EXPECT_EQ(log.count(CallKind::kCopy), 0);
  ASSERT_OK(Download(stream_, 0, 64));
  ASSERT_OK(Download(stream_, 128, 4));
  ExpectRefused(Download(stream_, 128, 5), "written before read", "never written");
  ExpectRefused(driver_->Fill(other_, {.dst = device_ + 140, .count = 8}), "ordered accesses",
                "operation 1 of stream 1");
  ASSERT_OK(driver_->Fill(other_, {.dst = device_ + 132, .count = 8}));  // between the rows
}

TEST_F(CheckedDriverTest, EveryPieceOfABatchKeepsTheRulesOfACopy) {
  CopyPiece* const table = Table(2);
  const CopyPiece good{.dst = device_, .src = pinned_, .width = 64};
  std::byte local[64] = {};
  std::byte* const elsewhere = Device(1);
  const struct {
    CopyPiece piece;
    const char *rule, *text;
  } kBroken[] = {
      {{.dst = device_ + kBytes - 63, .src = pinned_, .width = 64}, "inside the allocation", "by 1 bytes"},
      {{.dst = device_ + 64, .src = local, .width = 64}, "memory is alive", "the source"},
      {{.dst = pinned_ + 64, .src = pinned_, .width = 64}, "one device", "expected memory of device 0"},
      {{.dst = elsewhere, .src = pinned_, .width = 64}, "one device", "expected memory of device 0"},
  };
  for (const auto& broken : kBroken) {
    table[0] = good;
    table[1] = broken.piece;
    const absl::Status status = Batch(CopyKind::kHostToDevice, table, 2);
    EXPECT_THAT(base::Str(status.message()), HasSubstr("piece 1"));
    ExpectRefused(status, broken.rule, broken.text);
  }
  table[0] = {.dst = pinned_, .src = device_ + 512, .width = 8};
  ExpectRefused(Batch(CopyKind::kDeviceToHost, table, 1), "written before read", "never written");
  EXPECT_EQ(witness_->totals().batch_uploads, Totals::Sum{});
  driver_->FreeDevice(1, elsewhere);
}

TEST_F(CheckedDriverTest, PiecesThatDependOnTheirOrderAreRefused) {
  ASSERT_OK(driver_->Fill(stream_, {.dst = device_, .count = kBytes}));
  CopyPiece* const table = Table(3);
  table[0] = {.dst = device_, .src = pinned_, .width = 64};
  table[1] = {.dst = device_ + 256, .src = pinned_, .width = 64};  // two may read the same
  table[2] = {.dst = device_ + 63, .src = pinned_ + 64, .width = 8};
  ExpectRefused(Batch(CopyKind::kHostToDevice, table, 3), "pieces apart", "piece 0");
  ASSERT_OK(Batch(CopyKind::kHostToDevice, table, 2));
  Finish(stream_);  // until then the table stays as it is
  table[0] = {.dst = device_, .src = device_ + 64, .width = 64};
  table[1] = {.dst = device_ + 256, .src = device_, .width = 64};
  ExpectRefused(Batch(CopyKind::kDeviceToDevice, table, 2), "pieces apart", "piece 1");
  table[0] = {.dst = device_, .src = device_ + 63, .width = 64};
  ExpectRefused(Batch(CopyKind::kDeviceToDevice, table, 1), "pieces apart", "piece 0");
  // Columns whose rows lie between each other's.
  table[0] = {.dst = device_, .src = pinned_, .width = 32, .height = 4, .dst_pitch = 64, .src_pitch = 32};
  table[1] = {.dst = device_ + 32, .src = pinned_, .width = 32, .height = 4, .dst_pitch = 64, .src_pitch = 32};
  ASSERT_OK(Batch(CopyKind::kHostToDevice, table, 2));
}

TEST_F(CheckedDriverTest, ABatchThatSaysAnotherSizeThanItsPiecesHaveIsRefused) {
  CopyPiece* const table = Table(2);
  table[0] = {.dst = device_, .src = pinned_, .width = 64};
  table[1] = {.dst = device_ + 256, .src = pinned_, .width = 8};
  BatchOp batch{.kind = CopyKind::kHostToDevice, .pieces = table, .count = 2, .size = {72, 64}};
  ASSERT_OK(driver_->CopyBatch(stream_, batch));
  for (const BatchSize& wrong : {BatchSize{71, 64}, BatchSize{72, 65}, BatchSize{1, 0}}) {
    batch.size = wrong;
    ExpectRefused(driver_->CopyBatch(stream_, batch), "the size of a batch that of its pieces", "72 and 64");
  }
}

TEST_F(CheckedDriverTest, ACopyWhoseSidesOverlapIsRefused) {
  ASSERT_OK(driver_->Fill(stream_, {.dst = device_, .count = kBytes}));
  CopyOp op{.kind = CopyKind::kDeviceToDevice, .dst = device_, .src = device_ + 64, .width = 64};
  ASSERT_OK(driver_->Copy(stream_, op));
  op.width = 65;
  ExpectRefused(driver_->Copy(stream_, op), "source and destination apart", "+65");
}

TEST_F(CheckedDriverTest, TheTableOfABatchIsPinnedAndStaysUntilTheHostHasSeenItsEnd) {
  CopyPiece local{.dst = device_, .src = pinned_, .width = 64};
  ExpectRefused(Batch(CopyKind::kHostToDevice, &local, 1), "memory is alive", "the table");
  auto* const table = static_cast<CopyPiece*>(*driver_->AllocatePinned(sizeof(CopyPiece)));
  *table = local;
  ASSERT_OK(Batch(CopyKind::kHostToDevice, table, 1));
  driver_->FreePinned(table);
  EXPECT_THAT(Violation(), HasSubstr("rule 'freed when idle'"));
}

TEST_F(CheckedDriverTest, SizesThatOverflowAreCountedAsCallsOfNothing) {
  const size_t huge = size_t{1} << 63;
  witness_->KeepCalls(true);
  const CopyOp op{.dst = device_, .src = pinned_, .width = 8, .height = 3, .dst_pitch = huge, .src_pitch = huge};
  EXPECT_EQ(driver_->Copy(stream_, op).code(), absl::StatusCode::kInvalidArgument);
  CopyPiece* const table = Table(1);
  *table = {.dst = device_, .src = pinned_, .width = 8, .height = 3, .dst_pitch = huge, .src_pitch = huge};
  EXPECT_EQ(Batch(CopyKind::kHostToDevice, table, 1).code(), absl::StatusCode::kInvalidArgument);
  const CallLog log = witness_->log();
  for (const Call& call : log.calls()) EXPECT_EQ(call.bytes, call.kind == CallKind::kAllocatePinned ? 64 : 0);
}

// --- records and faults ---

TEST_F(CheckedDriverTest, TotalsTellExactlyWhatWasDone) {
  const Totals before = witness_->totals();
  EXPECT_EQ(before, (Totals{.device_allocations = {1, kBytes}, .pinned_allocations = {1, kBytes}}));
  std::byte* const other = Device(1);
  CopyPiece* const table = Table(3);
  ASSERT_OK(Upload(stream_, 0, 64));
  ASSERT_OK(Upload(stream_, 0, 128));
  ASSERT_OK(Download(stream_, 0, 128));
  ASSERT_OK(driver_->Copy(stream_, {.kind = CopyKind::kDeviceToDevice,
                                    .dst = device_ + 256,
                                    .src = device_,
                                    .width = 10,
                                    .height = 2,
                                    .dst_pitch = 16,
                                    .src_pitch = 20}));
  ASSERT_OK(driver_->Copy(
      stream_, {.kind = CopyKind::kPeer, .dst = other, .src = device_, .width = 7, .dst_device = 1, .src_device = 0}));
  ASSERT_OK(driver_->Fill(stream_, {.dst = device_, .pattern_size = 4, .count = 10, .height = 5, .pitch = 64}));
  for (int i = 0; i < 3; ++i) table[i] = {.dst = device_ + 1000 + 16 * i, .src = pinned_ + 16 * i, .width = 16};
  ASSERT_OK(Batch(CopyKind::kHostToDevice, table, 3));
  witness_->FailNth(CallKind::kCopy, 1, absl::UnavailableError("planned"));
  EXPECT_FALSE(Upload(stream_).ok());
  EXPECT_FALSE(driver_->AllocateDevice(0, size_t{1} << 50).ok());
  const Totals done = witness_->totals() - before;
  EXPECT_EQ(done, (Totals{.uploads = {2, 192},
                          .downloads = {1, 128},
                          .inside = {1, 20},
                          .peer = {1, 7},
                          .batch_uploads = {1, 48},
                          .pieces = 3,
                          .fills = {1, 200},
                          .device_allocations = {1, kBytes},
                          .pinned_allocations = {1, 3 * sizeof(CopyPiece)}}));
  EXPECT_EQ(TextOf(done),
            "uploads 2 with 192 bytes, downloads 1 with 128 bytes, inside 1 with 20 bytes, peer 1 with 7 bytes, "
            "batch_uploads 1 with 48 bytes, fills 1 with 200 bytes, device_allocations 1 with 4096 bytes, "
            "pinned_allocations 1 with 192 bytes, in 3 pieces");
  Finish(stream_);
  driver_->FreeDevice(1, other);
}

TEST_F(CheckedDriverTest, CallsAreCountedAndRecorded) {
  witness_->KeepCalls(true);
  ASSERT_OK(Upload(stream_, 0, 64));
  ASSERT_OK(driver_->Record(event_, stream_));
  const CallLog log = witness_->log();
  std::vector<std::string> calls;
  for (const Call& call : log.calls()) calls.push_back(TextOf(call));
  EXPECT_THAT(calls, ElementsAre("Copy stream 1 node 4 64 bytes", "Record stream 1 event 1"));
  EXPECT_EQ(witness_->log().count(CallKind::kCreateStream), 2);
  EXPECT_EQ(witness_->log().count(CallKind::kCopy), 1);
}

TEST_F(CheckedDriverTest, TheNthCallFailsWithoutEffectAndTheNextDoesNot) {
  witness_->FailNth(CallKind::kCopy, 2, absl::ResourceExhaustedError("planned"));
  ASSERT_OK(Upload(stream_, 0, 64));
  EXPECT_FALSE(witness_->fault_fired());
  EXPECT_EQ(Upload(stream_), absl::ResourceExhaustedError("planned"));
  EXPECT_TRUE(witness_->fault_fired());
  ExpectRefused(Download(stream_, 64, 8), "written before read", "never written");
  ASSERT_OK(Upload(stream_));
}

TEST_F(CheckedDriverTest, ADeadDeviceStaysDeadAndHasNothingLeftToDo) {
  Latch held;
  KernelOp op;
  op.call = [](void* latch, void* const*) {
    static_cast<Latch*>(latch)->Arrive();
    return absl::OkStatus();
  };
  op.callable = &held;
  ASSERT_OK(driver_->Launch(stream_, op));
  ASSERT_TRUE(held.AwaitArrived());
  held.Open();
  witness_->DieAtNth(CallKind::kRecord, 1);
  const absl::Status died = driver_->Record(event_, stream_);
  EXPECT_TRUE(base::FaultOf(died) && base::FaultOf(died)->fatal) << died;
  EXPECT_EQ(driver_->Query(event_).status(), died);
  EXPECT_EQ(Upload(stream_), died);
  EXPECT_EQ(driver_->CreateStream(0, 0).status(), died);
  witness_->ClearFaults();
  EXPECT_EQ(Violation(), "");
}

// Whoever is told of a death lets go of what the device uses.
TEST_F(CheckedDriverTest, NobodyIsToldOfADeathBeforeTheDeviceStandsStill) {
  struct Held {
    Latch latch;
    std::atomic<bool> over{false};
  } held;
  KernelOp op;
  op.call = [](void* context, void* const*) {
    auto* const h = static_cast<Held*>(context);
    h->latch.Arrive();
    h->over = true;
    return absl::OkStatus();
  };
  op.callable = &held;
  ASSERT_OK(driver_->Launch(stream_, op));
  ASSERT_TRUE(held.latch.AwaitArrived());
  witness_->DieAtNth(CallKind::kQuery, 1);
  std::atomic<int> told{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      EXPECT_FALSE(driver_->Query(event_).ok());
      EXPECT_TRUE(held.over) << "told while the device was busy";
      ++told;
    });
  }
  while (!witness_->dead()) std::this_thread::yield();
  for (int i = 0; i < 50; ++i) std::this_thread::yield();  // time for what must not happen
  EXPECT_EQ(told, 0);
  held.latch.Open();
  for (std::thread& thread : threads) thread.join();
  witness_->ClearFaults();
  EXPECT_EQ(Violation(), "");
}

TEST_F(CheckedDriverTest, WhatIsLeftAliveIsToldWhenTheDriverGoes) {
  auto witness = std::make_shared<CallRecorder>();
  auto host = host::CreateHostDriver({.threads_per_device = 1, .memory_bytes = 1 << 20});
  ASSERT_OK(host.status());
  auto driver = CreateCheckedDriver(*std::move(host), witness);
  ASSERT_OK(driver->CreateEvent(0, false).status());
  ASSERT_OK(driver->AllocateDevice(0, 100).status());
  EXPECT_EQ(witness->gauges(), (Gauges{.events = 1, .device_blocks = 1, .device_bytes = 100}));
  driver.reset();
  EXPECT_THAT(witness->violations(),
              ElementsAre("checked driver, rule 'nothing left alive': when the driver went: 0 streams, 1 events, 1 "
                          "device blocks (100 bytes), 0 pinned blocks (0 bytes), 0 graphs, 0 execs, "
                          "0 captures"));
}

}  // namespace
}  // namespace penstock::driver::checked::checked_driver_test
