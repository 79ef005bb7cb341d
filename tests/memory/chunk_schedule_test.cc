// ChunkSchedule: random copies, threads and devices against a list of what each direction still has to copy, in order;
// and who takes which direction.
#include "src/memory/chunk_schedule.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace penstock::memory::chunk_schedule_test {
namespace {

using driver::CopyKind;

// A copy in chunks of one byte, and how much of it the test has seen end.
struct Copy {
  StagedCopy staged;
  driver::RunFault fault;
  size_t chunks = 0, seen = 0;
  bool withdrawn = false, ended = false;
};

void Prepare(Copy& copy, CopyKind kind, size_t chunks, int device = 0) {
  copy.chunks = chunks;
  copy.staged.op = {.kind = kind, .width = chunks};
  copy.staged.op.tag.fault = &copy.fault;
  copy.staged.device = device;
  copy.staged.progress = CopyProgress(copy.staged.op, 1);
}

// Everything around a schedule: workers that each hold at most one chunk, a feeding thread, and devices that finish the
// chunks of each direction in order.
class Ring {
 public:
  Ring(const ChunkSchedule::Sizes& sizes, unsigned seed) : sizes_(sizes), schedule_(sizes), random_(seed) {
    held_.resize(sizes.workers);
  }

  void Step() {
    switch (Below(8)) {
      case 0: return Post();
      case 1: return Below(4) == 0 ? WithdrawOne() : void();
      case 2: return Below(8) == 0 ? FailOne() : void();
      case 3: return Feed();
      case 4: return Finish();
      case 5: return End(Below(sizes_.workers));
      default: return Begin(Below(sizes_.workers));
    }
  }
  // Until nothing can be done any more.
  void Drain() {
    for (bool any = true; any;) {
      any = schedule_.CanSubmit() || !under_way_[0].empty() || !under_way_[1].empty();
      Feed();
      Finish();
      for (WorkerId w = 0; w < sizes_.workers; ++w) {
        any = any || schedule_.CanCopy(w) || held_[w].copy != nullptr;
        Begin(w);
        End(w);
      }
    }
    for (const Copy& copy : copies_) ASSERT_TRUE(copy.ended) << copy.seen << " of " << copy.chunks << " chunks";
    ASSERT_EQ(used_, std::set<int>());
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Copy& CopyOf(const StagedChunk& chunk) { return CopyOf(*chunk.copy); }
  Copy& CopyOf(StagedCopy& staged) {
    for (Copy& copy : copies_) {
      if (&copy.staged == &staged) return copy;
    }
    ADD_FAILURE() << "a copy that was not posted";
    return copies_.front();
  }
  static bool IsUpload(const Copy& copy) { return copy.staged.op.kind == CopyKind::kHostToDevice; }

  void Post() {
    Copy& copy = copies_.emplace_back();
    Prepare(copy, Below(2) == 0 ? CopyKind::kHostToDevice : CopyKind::kDeviceToHost, 1 + random_() % 20,
            Below(sizes_.devices));
    for (size_t c = 0; c < copy.chunks; ++c) to_begin_[IsUpload(copy)].emplace_back(&copy.staged, c);
    schedule_.Post(copy.staged);
  }
  void WithdrawOne() {
    if (copies_.empty()) return;
    Copy& copy = copies_[static_cast<size_t>(Below(static_cast<int>(copies_.size())))];
    if (copy.ended) return;
    copy.withdrawn = true;
    Skip(schedule_.Withdraw(copy.staged), copy);
  }
  void FailOne() {
    if (copies_.empty()) return;
    copies_[static_cast<size_t>(Below(static_cast<int>(copies_.size())))].fault.Fail(1, absl::CancelledError(""));
  }

  // All chunks of the copy that have not been begun.
  void Skip(const SkippedChunks& skipped, Copy& copy) {
    const size_t count =
        std::erase_if(to_begin_[IsUpload(copy)], [&](const auto& c) { return c.first == &copy.staged; });
    ASSERT_EQ(skipped.count, count);
    ASSERT_EQ(skipped.copy, count > 0 ? &copy.staged : nullptr);
    if (count > 0) CountEnded(copy, count, copy.staged.progress.End(count));
  }
  void GiveUp(const SkippedChunks& skipped) {
    Copy& copy = CopyOf(*skipped.copy);
    ASSERT_TRUE(copy.fault.failed());
    Skip(skipped, copy);
  }
  void CountEnded(Copy& copy, size_t chunks, bool ended) {
    copy.seen += chunks;
    copy.ended = copy.seen == copy.chunks;
    ASSERT_EQ(ended, copy.ended);
  }

  void CheckBegun(const StagedChunk& chunk) {
    auto& to_begin = to_begin_[chunk.copy->is_upload()];
    ASSERT_FALSE(to_begin.empty());
    ASSERT_EQ(std::pair(chunk.copy, chunk.index), to_begin.front());
    to_begin.pop_front();
    ASSERT_FALSE(CopyOf(chunk).withdrawn);
    ASSERT_FALSE(CopyOf(chunk).fault.failed());
    ASSERT_TRUE(used_.insert(chunk.block).second) << "block " << chunk.block << " is in use";
  }

  void Begin(WorkerId w) {
    if (held_[w].copy != nullptr || !schedule_.CanCopy(w)) return;
    const ChunkSchedule::HostCopy next = schedule_.BeginCopy(w);
    if (next.chunk.copy == nullptr) return GiveUp(next.given_up);
    ASSERT_EQ(next.given_up.copy, nullptr);
    held_[w] = next.chunk;
    if (next.chunk.copy->is_upload()) {
      CheckBegun(next.chunk);
      ASSERT_EQ(owner_.emplace(next.chunk.block, w).first->second, w) << "another worker's block";
    } else {
      ASSERT_EQ(std::pair(next.chunk.copy, next.chunk.index), to_empty_.front());
      to_empty_.pop_front();
      ASSERT_EQ(next.chunk.wanted, !CopyOf(next.chunk).withdrawn && !CopyOf(next.chunk).fault.failed());
    }
  }
  bool IsTouched(const StagedCopy* copy) const {
    return std::any_of(held_.begin(), held_.end(), [&](const StagedChunk& c) { return c.copy == copy && c.wanted; });
  }
  void End(WorkerId w) {
    const StagedChunk chunk = std::exchange(held_[w], {});
    if (chunk.copy == nullptr) return;
    Copy& copy = CopyOf(chunk);
    const ChunkSchedule::EndedCopy ended = schedule_.EndCopy(chunk);
    ASSERT_EQ(copy.staged.progress.touched(), IsTouched(&copy.staged));
    ASSERT_EQ(ended.untouched, chunk.wanted && copy.withdrawn && !IsTouched(&copy.staged));
    if (IsUpload(copy)) {
      ASSERT_FALSE(ended.ended);
      to_submit_.insert({chunk.copy, chunk.index});
    } else {
      used_.erase(chunk.block);
      CountEnded(copy, 1, ended.ended);
    }
  }

  void Feed() {
    std::vector<StagedChunk> chunks;
    const SkippedChunks given_up = schedule_.TakeChunks(chunks);
    if (given_up.copy != nullptr) GiveUp(given_up);
    for (const StagedChunk& chunk : chunks) {
      if (chunk.copy->is_upload()) {
        ASSERT_EQ(to_submit_.erase({chunk.copy, chunk.index}), 1u);
      } else {
        CheckBegun(chunk);
      }
      if (Below(20) == 0) {
        used_.erase(chunk.block);
        CountEnded(CopyOf(chunk), 1, schedule_.Refused(chunk));
      } else {
        under_way_[chunk.copy->is_upload()].push_back(chunk);
      }
    }
    ASSERT_EQ(to_submit_.size(), 0u);
    ASSERT_LE(under_way_[false].size(), static_cast<size_t>(8 * sizes_.devices));
  }
  void Finish() {
    auto& under_way = under_way_[Below(2)];
    if (under_way.empty()) return;
    const StagedChunk chunk = under_way.front();
    under_way.pop_front();
    const bool ended = schedule_.Arrived(chunk);
    if (chunk.copy->is_upload()) {
      used_.erase(chunk.block);
      return CountEnded(CopyOf(chunk), 1, ended);
    }
    ASSERT_FALSE(ended);
    to_empty_.emplace_back(chunk.copy, chunk.index);
  }

  using Chunk = std::pair<StagedCopy*, size_t>;
  const ChunkSchedule::Sizes sizes_;
  ChunkSchedule schedule_;
  std::mt19937_64 random_;
  std::deque<Copy> copies_;
  std::deque<Chunk> to_begin_[2];  // downloads, uploads
  std::deque<Chunk> to_empty_;
  std::set<Chunk> to_submit_;
  std::deque<StagedChunk> under_way_[2];
  detail::Table<WorkerId, StagedChunk> held_;
  std::set<int> used_;  // blocks
  std::map<int, int> owner_;  // block -> worker
};

TEST(ChunkSchedule, BeginsEachChunkOnceAndInOrderAndEndsEachCopy) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const int workers = 1 + static_cast<int>(seed % 4);
    Ring ring({.workers = workers,
               .blocks_per_worker = 1 + static_cast<int>(seed / 4 % 2),
               .download_blocks = 1 + static_cast<int>(seed / 8 % 12),
               .devices = 1 + static_cast<int>(seed / 96 % 2)},
              seed);
    for (int i = 0; i < 400 && !testing::Test::HasFatalFailure(); ++i) ring.Step();
    if (!testing::Test::HasFatalFailure()) ring.Drain();
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Copies of both directions whose blocks never run out: each worker that begins ends at once, and so do the devices.
class ChunkScheduleTurns : public testing::Test {
 protected:
  std::string DirectionsOf(int workers, WorkerId w, int count) {
    ChunkSchedule schedule({.workers = workers, .blocks_per_worker = 2, .download_blocks = 8, .devices = 1});
    Copy up, down;
    Prepare(up, CopyKind::kHostToDevice, 100);
    Prepare(down, CopyKind::kDeviceToHost, 100);
    schedule.Post(up.staged);
    schedule.Post(down.staged);
    std::string directions;
    for (int i = 0; i < count; ++i) {
      std::vector<StagedChunk> chunks;
      schedule.TakeChunks(chunks);
      for (const StagedChunk& chunk : chunks) schedule.Arrived(chunk);
      const StagedChunk chunk = schedule.BeginCopy(w).chunk;
      directions += chunk.copy->is_upload() ? 'U' : 'D';
      schedule.EndCopy(chunk);
    }
    return directions;
  }
};

TEST_F(ChunkScheduleTurns, AWorkerThatIsAloneTakesTurns) { EXPECT_EQ(DirectionsOf(1, 0, 6), "DUDUDU"); }

TEST_F(ChunkScheduleTurns, OfSeveralTwoOfThreeFill) {
  EXPECT_EQ(DirectionsOf(6, 0, 4), "UUUU");
  EXPECT_EQ(DirectionsOf(6, 1, 4), "DDDD");
  EXPECT_EQ(DirectionsOf(6, 2, 4), "UUUU");
  EXPECT_EQ(DirectionsOf(6, 4, 4), "DDDD");
}

TEST(ChunkSchedule, KeepsAFewDownloadsUnderWay) {
  ChunkSchedule schedule({.workers = 1, .blocks_per_worker = 1, .download_blocks = 100, .devices = 2});
  Copy copy;
  Prepare(copy, CopyKind::kDeviceToHost, 100);
  schedule.Post(copy.staged);
  std::vector<StagedChunk> chunks;
  schedule.TakeChunks(chunks);
  EXPECT_EQ(chunks.size(), 16u);  // 8 for each device
  EXPECT_FALSE(schedule.CanSubmit());
  schedule.Arrived(chunks.front());
  EXPECT_TRUE(schedule.CanSubmit());
}

TEST(ChunkSchedule, NeedsNoBlockToGiveUpAFailedDownload) {
  ChunkSchedule schedule({.workers = 1, .blocks_per_worker = 1, .download_blocks = 1, .devices = 1});
  Copy copies[2];
  for (Copy& copy : copies) {
    Prepare(copy, CopyKind::kDeviceToHost, 2);
    schedule.Post(copy.staged);
  }
  std::vector<StagedChunk> chunks;
  schedule.TakeChunks(chunks);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_FALSE(schedule.CanSubmit());
  copies[0].fault.Fail(1, absl::CancelledError(""));
  EXPECT_TRUE(schedule.CanSubmit());
  chunks.clear();
  const SkippedChunks given_up = schedule.TakeChunks(chunks);
  EXPECT_EQ(given_up.copy, &copies[0].staged);
  EXPECT_EQ(given_up.count, 1u);
  EXPECT_TRUE(chunks.empty());
}

}  // namespace
}  // namespace penstock::memory::chunk_schedule_test
