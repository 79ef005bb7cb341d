// Staging: every number of threads, chunk boundary and unaligned size, both directions at once, against a plain copy of
// bytes; failures and cancelled runs. On checked host devices.
#include "src/memory/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <semaphore>
#include <string>
#include <vector>

#include "src/driver/checked/checked_driver.h"
#include "src/driver/host/host_driver.h"
#include "src/host/progress.h"
#include "tests/support/null_driver.h"

namespace penstock::memory::staging_test {
namespace {

using driver::CopyKind;
using driver::CopyOp;
using driver::checked::CallKind;
using Bytes = std::vector<unsigned char>;

class StagingTest : public testing::Test {
 protected:
  void Make(const StagingOptions& options, int devices = 1) {
    driver::host::HostDriverOptions host;
    host.devices = devices;
    host.event_count = &event_count_;
    auto inner = driver::host::CreateHostDriver(host);
    ASSERT_TRUE(inner.ok()) << inner.status();
    driver_ = driver::checked::CreateCheckedDriver(*std::move(inner), witness_);
    pool_ = PinnedPool::Create(*driver_, {.slab_bytes = size_t{1} << 20});
    auto made = Staging::Create(*driver_, *pool_, event_count_, options);
    ASSERT_TRUE(made.ok()) << made.status();
    staging_ = *std::move(made);
  }

  void TearDown() override { End(); }

  void End() {
    if (driver_ == nullptr) return;
    staging_.reset();
    for (const auto& [device, memory] : memory_) driver_->FreeDevice(device, memory);
    memory_.clear();
    pool_.reset();
    driver_.reset();
    EXPECT_EQ(witness_->violations(), std::vector<std::string>());
    EXPECT_EQ(witness_->gauges(), driver::checked::Gauges());
  }

  unsigned char* Device(size_t bytes, int device = 0) {
    const absl::StatusOr<void*> memory = driver_->AllocateDevice(device, bytes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    memory_.emplace_back(device, *memory);
    return static_cast<unsigned char*>(*memory);
  }

  Bytes Random(size_t n) {
    Bytes bytes(n);
    for (unsigned char& b : bytes) b = static_cast<unsigned char>(random_());
    return bytes;
  }

  // Posts a copy; Await waits for as many as were posted.
  StagedCopy& Post(CopyOp op, int device = 0) {
    StagedCopy& copy = copies_.emplace_back();
    faults_.emplace_back();
    op.tag = {&faults_.back(), 7};
    copy.op = op;
    copy.device = device;
    copy.done = &StagingTest::Done;
    copy.context = this;
    staging_->Post(copy);
    return copy;
  }
  static void Done(void* self, int64_t) { static_cast<StagingTest*>(self)->done_.release(); }
  void Await() {
    for (size_t i = 0; i < copies_.size(); ++i) done_.acquire();
    copies_.clear();
  }
  driver::RunFault& fault() { return faults_.back(); }

  static CopyOp Up(void* device, const void* host, size_t bytes) {
    return {.kind = CopyKind::kHostToDevice, .dst = device, .src = host, .width = bytes};
  }
  static CopyOp Down(void* host, const void* device, size_t bytes) {
    return {.kind = CopyKind::kDeviceToHost, .dst = host, .src = device, .width = bytes};
  }

  void RoundTrip(size_t bytes, size_t at) {
    const Bytes in = Random(bytes + at);
    Bytes out(bytes + at + 9, 0xEE), expected = out;
    unsigned char* device = Device(bytes + at);
    Post(Up(device + at, in.data() + at, bytes));
    Await();
    Post(Down(out.data() + at, device + at, bytes));
    Await();
    std::memcpy(expected.data() + at, in.data() + at, bytes);
    EXPECT_EQ(out, expected) << bytes << " bytes at " << at;
  }

  std::mt19937_64 random_{11};
  host::EventCount event_count_;
  std::shared_ptr<driver::checked::CallRecorder> witness_ = std::make_shared<driver::checked::CallRecorder>();
  std::unique_ptr<driver::Driver> driver_;
  std::shared_ptr<PinnedPool> pool_;
  std::unique_ptr<Staging> staging_;
  std::vector<std::pair<int, void*>> memory_;
  std::deque<StagedCopy> copies_;
  std::deque<driver::RunFault> faults_;
  std::counting_semaphore<> done_{0};
};

TEST_F(StagingTest, MovesEverySizeAroundTheChunkWithEveryNumberOfThreads) {
  for (int threads = 1; threads <= 5; ++threads) {
    Make({.threads = threads, .chunk_bytes = 64, .block_bytes = 64});
    for (const size_t bytes : {1, 2, 63, 64, 65, 127, 128, 129, 64 * 15, 64 * 15 + 1, 64 * 16, 64 * 17 + 63}) {
      for (const size_t at : {0, 1, 7}) RoundTrip(bytes, at);
    }
    End();
  }
}

TEST_F(StagingTest, MovesBoxes) {
  Make({.threads = 3, .chunk_bytes = 40, .block_bytes = 40});
  for (int i = 0; i < 200; ++i) {
    const auto below = [&](uint64_t n) { return static_cast<size_t>(random_() % n); };
    const size_t w = 1 + below(60), h = 1 + below(5), d = 1 + below(4);
    const size_t pitch = w + below(4), slice = pitch * h + below(3);
    const Bytes in = Random(slice * d);
    Bytes out(slice * d, 0xEE), expected = out;
    unsigned char* device = Device(w * h * d);
    CopyOp up{.kind = CopyKind::kHostToDevice, .dst = device, .src = in.data(), .width = w, .height = h, .depth = d};
    up.dst_pitch = w, up.dst_slice = w * h, up.src_pitch = pitch, up.src_slice = slice;
    Post(up);
    Await();
    CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = out.data(), .src = device, .width = w, .height = h, .depth = d};
    down.dst_pitch = pitch, down.dst_slice = slice, down.src_pitch = w, down.src_slice = w * h;
    Post(down);
    Await();
    for (size_t z = 0; z < d; ++z) {
      for (size_t y = 0; y < h; ++y) {
        for (size_t x = 0; x < w; ++x) expected[z * slice + y * pitch + x] = in[z * slice + y * pitch + x];
      }
    }
    ASSERT_EQ(out, expected) << w << " x " << h << " x " << d;
  }
}

TEST_F(StagingTest, MovesManyCopiesOfBothDirectionsAndDevicesAtOnce) {
  Make({.threads = 4, .chunk_bytes = 128, .block_bytes = 128}, 2);
  constexpr size_t kCopies = 60;
  std::vector<Bytes> in, out;
  std::vector<unsigned char*> device;
  for (size_t i = 0; i < kCopies; ++i) {
    in.push_back(Random(1 + i * 37));
    out.emplace_back(in.back().size(), 0);
    device.push_back(Device(in.back().size(), static_cast<int>(i % 2)));
    Post(Up(device[i], in[i].data(), in[i].size()), static_cast<int>(i % 2));
  }
  Await();
  for (size_t i = 0; i < kCopies; ++i) {  // what has come up goes down while more goes up
    Post(Down(out[i].data(), device[i], in[i].size()), static_cast<int>(i % 2));
    in.push_back(Random(1 + i * 11));
    Post(Up(Device(in.back().size()), in.back().data(), in.back().size()));
  }
  Await();
  for (size_t i = 0; i < kCopies; ++i) EXPECT_EQ(out[i], in[i]) << i;
}

// Threads fall asleep and wake while copies end and new ones are posted.
TEST_F(StagingTest, MissesNoCopyThatEndsWhileThreadsFallAsleep) {
  Make({.threads = 5, .chunk_bytes = 16, .block_bytes = 16});
  const Bytes in = Random(100);
  std::vector<Bytes> out(3, Bytes(100));
  unsigned char* device = Device(100);
  Post(Up(device, in.data(), 100));
  Await();
  for (size_t i = 0; i < 3000; ++i) {
    Post(Down(out[i % 3].data(), device, 1 + i / 3 % 100));
    if (i % 3 == 2) Await();
  }
  EXPECT_EQ(out, std::vector<Bytes>(3, in));
}

TEST_F(StagingTest, MakesOneCopyAChunkAndAllocatesNothingForIt) {
  Make({.threads = 2, .chunk_bytes = 100, .block_bytes = 100});
  const Bytes in = Random(1000);
  unsigned char* device = Device(1000);
  const auto before = witness_->log();
  Post(Up(device, in.data(), 1000));
  Await();
  const auto after = witness_->log();
  const auto made = [&](CallKind kind) { return after.count(kind) - before.count(kind); };
  EXPECT_EQ(made(CallKind::kCopy), 10);
  EXPECT_EQ(made(CallKind::kRecord), 10);
  EXPECT_EQ(made(CallKind::kAllocatePinned) + made(CallKind::kAllocateDevice) + made(CallKind::kCreateEvent) +
                made(CallKind::kCreateStream),
            0);
}

TEST_F(StagingTest, ACallThatFailsFailsTheCopyAndNothingElse) {
  for (const auto& [kind, threads] : {std::pair(CallKind::kCopy, 2),
                                      {CallKind::kRecord, 2},
                                      {CallKind::kQuery, 2},
                                      {CallKind::kCopy, 5},
                                      {CallKind::kRecord, 5},
                                      {CallKind::kQuery, 5}}) {
    Make({.threads = threads, .chunk_bytes = 64, .block_bytes = 64});
    const Bytes in = Random(64 * 60);
    unsigned char* device = Device(in.size());
    witness_->FailNth(kind, 4, absl::UnavailableError("not now"));
    Post(Up(device, in.data(), in.size()));
    Await();
    EXPECT_TRUE(witness_->fault_fired());
    ASSERT_TRUE(fault().failed());
    EXPECT_EQ(fault().node(), 7);
    EXPECT_EQ(fault().status().code(), absl::StatusCode::kUnavailable);
    RoundTrip(500, 3);
    End();
  }
}

// With blocks that are all full when the first copy fails, and threads that sleep for want of others.
TEST_F(StagingTest, ACopyThatFailsWhileEveryThreadSleepsEnds) {
  Make({.threads = 5, .chunk_bytes = 64, .block_bytes = 64});
  const Bytes in = Random(64 * 500);
  unsigned char* device = Device(in.size());
  for (int i = 0; i < 300; ++i) {
    witness_->FailNth(CallKind::kCopy, 1 + i % 9, absl::UnavailableError("not now"));
    Post(Up(device, in.data(), in.size()));
    Await();
    EXPECT_TRUE(fault().failed());
  }
}

TEST_F(StagingTest, ADeviceThatDiesEndsEveryCopy) {
  Make({.threads = 3, .chunk_bytes = 64, .block_bytes = 64});
  const Bytes in = Random(64 * 20);
  Bytes out(64 * 20);
  unsigned char *device = Device(in.size()), *other = Device(1);
  Post(Up(device, in.data(), in.size()));
  Await();
  witness_->DieAtNth(CallKind::kCopy, 5);
  Post(Down(out.data(), device, in.size()));
  Post(Up(other, in.data(), 1));
  Await();
  EXPECT_TRUE(faults_[1].failed());
  witness_->TakeViolations();
}

TEST_F(StagingTest, BeginsNothingOfARunThatHasFailed) {
  Make({.threads = 1, .chunk_bytes = 64, .block_bytes = 64});
  const Bytes in = Random(64 * 9);
  unsigned char* device = Device(in.size());
  const int64_t before = witness_->log().count(CallKind::kCopy);
  StagedCopy& copy = copies_.emplace_back();
  driver::RunFault& failed = faults_.emplace_back();
  failed.Fail(1, absl::CancelledError("cancelled"));
  copy.op = Up(device, in.data(), in.size());
  copy.op.tag.fault = &failed;
  copy.done = &StagingTest::Done;
  copy.context = this;
  staging_->Post(copy);
  Await();
  EXPECT_EQ(witness_->log().count(CallKind::kCopy), before);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kCancelled);
}

// Copies that are withdrawn sooner or later until they were often enough cut in the middle. Then the memory is the
// test's, whatever the ring and the device still do.
TEST_F(StagingTest, WithdrawnCopiesTouchTheHostsSideNoMore) {
  constexpr unsigned char kBefore = 0x11, kCopied = 0x22, kAfter = 0x33;
  constexpr size_t kChunk = size_t{128} << 10, kBytes = 10 * kChunk;
  Make({.threads = 3, .chunk_bytes = kChunk, .block_bytes = kChunk});
  unsigned char* device = Device(kBytes);
  const Bytes before(kBytes, kBefore), copied(kBytes, kCopied);
  Bytes host, seen(kBytes);
  const Bytes after(kBytes, kAfter);
  const auto chunks_copied = [&](const Bytes& bytes) {
    int count = 0;
    for (size_t at = 0; at < kBytes; at += kChunk) count += bytes[at] == kCopied;
    return count;
  };
  constexpr int kEnough = 5;
  int cut[2] = {}, pauses[2] = {};
  for (int i = 0; i < 4000 && (cut[0] < kEnough || cut[1] < kEnough); ++i) {
    const bool up = i % 2 == 0;
    const Bytes& from = up ? before : copied;
    Post(Up(device, from.data(), kBytes));
    Await();
    host = up ? copied : before;
    StagedCopy& copy = Post(up ? Up(device, host.data(), kBytes) : Down(host.data(), device, kBytes));
    for (int p = 0; p < pauses[up]; ++p) host::CpuPause();
    staging_->Withdraw(copy);
    int moved = chunks_copied(host);
    std::memset(host.data(), kAfter, kBytes);
    Await();
    if (up) {
      Post(Down(seen.data(), device, kBytes));
      Await();
      moved = chunks_copied(seen);
    }
    ASSERT_EQ(std::memchr(seen.data(), kAfter, kBytes), nullptr) << "read after all";
    ASSERT_TRUE(host == after) << "written after all";
    cut[up] += moved > 0 && moved < 10;
    pauses[up] = moved == 10 ? pauses[up] / 2 : pauses[up] + pauses[up] / 8 + 10;
  }
  EXPECT_GT(cut[0], 0) << "none was cut in the middle on the way out";
  EXPECT_GT(cut[1], 0) << "none was cut in the middle on the way in";
}

TEST_F(StagingTest, AWithdrawnCopyThatHasNotBegunIsDoneAndHoldsNobodyUp) {
  for (int threads = 1; threads <= 3; ++threads) {
    Make({.threads = threads, .chunk_bytes = 64, .block_bytes = 64});
    const Bytes in = Random(64 * 50), other = Random(64 * 3);
    unsigned char *device = Device(in.size()), *behind = Device(other.size());
    for (int i = 0; i < 200; ++i) {
      StagedCopy& copy = Post(Up(device, in.data(), in.size()));
      Post(Up(behind, other.data(), other.size()));
      staging_->Withdraw(copy);
      Await();
    }
    Bytes out(other.size());
    Post(Down(out.data(), behind, out.size()));
    Await();
    EXPECT_EQ(out, other);
    End();
  }
}

// A thread that is alone takes turns: a long way in does not hold up a short way out. With a device that is always
// done, so that there always is a block to fill.
TEST(StagingOfOneThread, ServesBothDirections) {
  runtime::NullDriver driver;
  host::EventCount event_count;
  const auto pool = PinnedPool::Create(driver, {.slab_bytes = size_t{1} << 20});
  auto staging = Staging::Create(driver, *pool, event_count, {.threads = 1, .chunk_bytes = 64, .block_bytes = 64});
  ASSERT_TRUE(staging.ok()) << staging.status();
  struct Ends {
    std::vector<int64_t> order;
    std::counting_semaphore<> all{0};
  } ends;
  const Bytes in(64 * 100000);
  Bytes out(64 * 8);
  StagedCopy copies[2];
  driver::RunFault faults[2];
  copies[0].op = {.kind = CopyKind::kHostToDevice, .dst = out.data(), .src = in.data(), .width = in.size()};
  copies[1].op = {.kind = CopyKind::kDeviceToHost, .dst = out.data(), .src = in.data(), .width = out.size()};
  for (int i = 0; i < 2; ++i) {
    copies[i].op.tag = {&faults[i], i};
    copies[i].context = &ends;
    copies[i].arg = i;
    copies[i].done = [](void* context, int64_t arg) {
      static_cast<Ends*>(context)->order.push_back(arg);
      static_cast<Ends*>(context)->all.release();
    };
    (*staging)->Post(copies[i]);
  }
  for (int i = 0; i < 2; ++i) ends.all.acquire();
  EXPECT_EQ(ends.order, (std::vector<int64_t>{1, 0}));
}

TEST_F(StagingTest, SaysWhatPinnedMemoryIsMissing) {
  Make({});
  const auto pool = PinnedPool::Create(*driver_, {.slab_bytes = 4096, .budget = std::make_shared<PinnedBudget>(8192)});
  const auto made =
      Staging::Create(*driver_, *pool, event_count_, {.threads = 2, .chunk_bytes = 4096, .block_bytes = 4096});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted) << made.status();
}

}  // namespace
}  // namespace penstock::memory::staging_test
