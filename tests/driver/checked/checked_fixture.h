// What tests of the checked driver share: one in front of two host devices, with two streams, an event, a device block
// and a pinned one; and how a violation is expected.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "src/driver/checked/checked_driver.h"
#include "src/driver/host/host_driver.h"
#include "src/host/event_count.h"
#include "tests/conformance/driver/packed_args.h"
#include "tests/support/status.h"

namespace penstock::driver::checked {

// Uses as a test says them.
class Uses final : public UseSource {
 public:
  explicit Uses(std::vector<MemoryUse> uses) : uses_(std::move(uses)) {}
  void AppendUses(int32_t /*node*/, std::vector<MemoryUse>& out) const override {
    out.insert(out.end(), uses_.begin(), uses_.end());
  }

 private:
  std::vector<MemoryUse> uses_;
};

inline void DoNothing(void* const* /*argv*/, int64_t /*first*/, int64_t /*end*/) {}

class CheckedFixture : public testing::Test {
 protected:
  static constexpr size_t kBytes = 4096;

  void SetUp() override {
    auto host = host::CreateHostDriver(
        {.devices = 2, .threads_per_device = 1, .memory_bytes = 1 << 26, .event_count = &event_count_});
    ASSERT_OK(host.status());
    driver_ = CreateCheckedDriver(InFrontOf(*std::move(host)), witness_);
    driver_->MakeCurrent(0);
    stream_ = *driver_->CreateStream(0, 0);
    other_ = *driver_->CreateStream(0, 0);
    event_ = *driver_->CreateEvent(0, false);
    device_ = Device(0);
    pinned_ = static_cast<std::byte*>(*driver_->AllocatePinned(kBytes));
    std::memset(pinned_, 1, kBytes);
  }
  void TearDown() override {
    Finish(stream_);
    Finish(other_);
    (void)Violation();  // those of a test are looked at in the test
    driver_->DestroyStream(stream_);
    driver_->DestroyStream(other_);
    driver_->DestroyEvent(event_);
    driver_->FreeDevice(0, device_);
    driver_->FreePinned(pinned_);
    for (void* table : tables_) driver_->FreePinned(table);
    driver_.reset();
    EXPECT_THAT(witness_->violations(), testing::IsEmpty());
    EXPECT_EQ(witness_->gauges(), Gauges{});
  }

  // What the checked driver is put in front of.
  virtual std::unique_ptr<Driver> InFrontOf(std::unique_ptr<Driver> host) { return host; }

  std::byte* Device(int device) { return static_cast<std::byte*>(*driver_->AllocateDevice(device, kBytes)); }
  void Finish(Stream stream) {
    const Event end = *driver_->CreateEvent(0, false);
    ASSERT_OK(driver_->Record(end, stream));
    for (;;) {
      const uint64_t ticket = event_count_.ticket();
      if (*driver_->Query(end)) break;
      event_count_.Wait(ticket, std::chrono::steady_clock::time_point::max());
    }
    driver_->DestroyEvent(end);
  }
  absl::Status Upload(Stream stream, size_t from = 0, size_t bytes = kBytes) {
    return driver_->Copy(
        stream,
        {.kind = CopyKind::kHostToDevice, .dst = device_ + from, .src = pinned_, .width = bytes, .tag = {nullptr, 4}});
  }
  absl::Status Download(Stream stream, size_t from = 0, size_t bytes = kBytes) {
    return driver_->Copy(
        stream,
        {.kind = CopyKind::kDeviceToHost, .dst = pinned_, .src = device_ + from, .width = bytes, .tag = {nullptr, 9}});
  }
  // Pinned, until the test ends.
  CopyPiece* Table(size_t pieces) {
    tables_.push_back(*driver_->AllocatePinned(pieces * sizeof(CopyPiece)));
    return static_cast<CopyPiece*>(tables_.back());
  }
  absl::Status Batch(CopyKind kind, const CopyPiece* pieces, size_t count) {
    return driver_->CopyBatch(stream_, {.kind = kind, .pieces = pieces, .count = count, .tag = {nullptr, 6}});
  }
  absl::Status Launch(Stream stream, std::byte* argument, const UseSource* uses = nullptr) {
    conformance::PackedArgs args;
    args.Add(argument);
    KernelOp op = args.op();
    op.range = &DoNothing;
    op.rows = 1;
    op.uses = uses;
    return driver_->Launch(stream, op);
  }

  // The only violation since the last call, or "" where there is none.
  std::string Violation() {
    const std::vector<std::string> found = witness_->TakeViolations();
    EXPECT_LE(found.size(), 1u) << testing::PrintToString(found);
    return found.empty() ? "" : found[0];
  }
  // That the call was refused with the one violation it caused, which says `text`.
  void ExpectRefused(const absl::Status& status, const std::string& rule, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    const std::string violation = Violation();
    EXPECT_EQ(violation, base::Str(status.message()));
    EXPECT_THAT(violation, testing::HasSubstr("rule '" + rule + "'"));
    EXPECT_THAT(violation, testing::HasSubstr(text));
  }

  penstock::host::EventCount event_count_;
  std::shared_ptr<CallRecorder> witness_ = std::make_shared<CallRecorder>();
  std::unique_ptr<Driver> driver_;
  Stream stream_, other_;
  Event event_;
  std::byte *device_ = nullptr, *pinned_ = nullptr;
  std::vector<void*> tables_;
};

}  // namespace penstock::driver::checked
