// Set and Read of States on every driver: any size from any memory, how it is copied, the order among runs in flight,
// and deadlines in the middle.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"
#include "tests/support/noise.h"

namespace penstock::conformance::state_copy_test {
namespace {

using driver::checked::Totals;
using std::chrono::microseconds;
using std::chrono::seconds;
using Bytes = std::vector<uint8_t>;

Bytes RandomBytes(size_t n, std::mt19937& rng) {
  Bytes bytes(n);
  FillWithNoise(std::as_writable_bytes(std::span(bytes)), rng);
  return bytes;
}

// The time limit to try next.
microseconds Longer(microseconds limit) { return limit * (kSanitized ? 6 : 3) / 2 + microseconds(1); }

// Unpinned memory at an odd address or pinned memory, with a margin that nobody may touch.
class Memory {
 public:
  Memory(size_t bytes, size_t at) : at_(at), bytes_(bytes), unpinned_(bytes + at + kMargin, kUntouched) {}
  Memory(Runtime& runtime, size_t bytes) : bytes_(bytes) {
    auto made = runtime.MakeHostBuffer<uint8_t>(static_cast<int64_t>(bytes + kMargin));
    EXPECT_OK(made.status());
    pinned_ = *std::move(made);
    std::fill(pinned_.begin(), pinned_.end(), kUntouched);
  }
  std::span<uint8_t> span() { return {all() + at_, bytes_}; }
  Bytes contents() { return Bytes(span().begin(), span().end()); }
  bool MarginUntouched() {
    const auto untouched = [](uint8_t b) { return b == kUntouched; };
    return std::all_of(all(), all() + at_, untouched) &&
           std::all_of(all() + at_ + bytes_, all() + at_ + bytes_ + kMargin, untouched);
  }

 private:
  static constexpr uint8_t kUntouched = 0xEE;
  static constexpr size_t kMargin = 9;
  uint8_t* all() { return unpinned_.empty() ? pinned_.data() : unpinned_.data(); }

  size_t at_ = 0;
  const size_t bytes_;
  Bytes unpinned_;
  HostBuffer<uint8_t> pinned_;
};

class StateCopies : public GraphConformance {
 protected:
  State<uint8_t> Made(size_t bytes) {
    auto state = runtime_->MakeState<uint8_t>("s", static_cast<int64_t>(bytes));
    EXPECT_OK(state.status());
    return state.ok() ? *std::move(state) : State<uint8_t>();
  }
  void RoundTrip(State<uint8_t>& state, Memory in, Memory out) {
    if (noise_.size() < in.span().size() + kShifts) noise_ = RandomBytes(in.span().size() + kShifts, rng_);
    const auto from = noise_.begin() + rng_() % kShifts;
    const Bytes contents(from, from + static_cast<int64_t>(in.span().size()));
    std::copy(contents.begin(), contents.end(), in.span().begin());
    ASSERT_OK(state.Set(in.span()));
    ASSERT_OK(state.Read(out.span()));
    EXPECT_EQ(in.contents(), contents);
    EXPECT_TRUE(out.contents() == contents) << contents.size() << " bytes";
    EXPECT_TRUE(in.MarginUntouched());
    EXPECT_TRUE(out.MarginUntouched());
  }
  void RoundTrips(size_t bytes) {
    State<uint8_t> state = Made(bytes);
    for (const size_t at : {0, 1, 7}) RoundTrip(state, Memory(bytes, at), Memory(bytes, at));
    RoundTrip(state, Memory(*runtime_, bytes), Memory(bytes, 3));
    RoundTrip(state, Memory(bytes, 3), Memory(*runtime_, bytes));
    RoundTrip(state, Memory(*runtime_, bytes), Memory(*runtime_, bytes));
  }
  static constexpr size_t kShifts = 1000;
  Bytes noise_;  // contents are parts of it
  // More than goes through the two blocks unasked, in many chunks.
  size_t LargeBytes() const { return GetParam().ring ? size_t{40} << 10 : size_t{5} << 20; }
};

TEST_P(StateCopies, MoveEverySizeFromAnyMemory) {
  const std::vector<size_t> small = {1, 63, 64, 65, 64 * 17 + 63, 5000},
                            large = {1, 64 << 10, (64 << 10) + 1, (9 << 20) + 12345};
  for (const size_t bytes : GetParam().ring ? small : large) RoundTrips(bytes);
}

// A box of a State is copied like the rows that lie there, and what lies beside it stays.
TEST_P(StateCopies, MoveBoxesFromAnyMemory) {
  for (int round = 0; round < (kSanitized ? 5 : 20); ++round) {
    const auto upto = [this](uint32_t most) { return static_cast<int64_t>(rng_() % most + 1); };
    const std::array<int64_t, 3> all = {upto(4), upto(30), upto(GetParam().ring ? 90 : 2000)};
    std::array<int64_t, 3> from{}, size{};
    for (size_t d = 0; d < 3; ++d) {
      from[d] = static_cast<int64_t>(rng_() % static_cast<uint64_t>(all[d]));
      size[d] = upto(static_cast<uint32_t>(all[d] - from[d]));
    }
    const auto bytes = static_cast<size_t>(size[0] * size[1] * size[2]);
    auto state = runtime_->MakeState<uint8_t>("s", {all[0], all[1], all[2]});
    ASSERT_OK(state.status());
    Bytes expected = RandomBytes(static_cast<size_t>(all[0] * all[1] * all[2]), rng_);
    ASSERT_OK(state->Set(expected));
    Memory in = rng_() % 2 == 0 ? Memory(*runtime_, bytes) : Memory(bytes, 3);
    Memory out = rng_() % 2 == 0 ? Memory(*runtime_, bytes) : Memory(bytes, 1);
    const Bytes part = RandomBytes(bytes, rng_);
    std::copy(part.begin(), part.end(), in.span().begin());
    const Box box = Slice({from[0], from[1], from[2]}, {size[0], size[1], size[2]});
    if (round % 2 == 0) {
      ASSERT_OK(state->Set(in.span(), box));
      ASSERT_OK(state->Read(out.span(), box));
    } else {
      ASSERT_OK(state->StartSet(in.span(), {.box = box}).status());
      const auto read = state->StartRead(out.span(), {.box = box});
      ASSERT_OK(read.status());
      ASSERT_OK(read->Wait());
    }
    EXPECT_TRUE(out.contents() == part) << "round " << round;
    EXPECT_TRUE(in.MarginUntouched());
    EXPECT_TRUE(out.MarginUntouched());
    size_t i = 0;
    for (int64_t z = 0; z < size[0]; ++z) {
      for (int64_t y = 0; y < size[1]; ++y) {
        for (int64_t x = 0; x < size[2]; ++x) {
          const int64_t at = ((from[0] + z) * all[1] + from[1] + y) * all[2] + from[2] + x;
          expected[static_cast<size_t>(at)] = part[i++];
        }
      }
    }
    Bytes found(expected.size());
    ASSERT_OK(state->Read(found));
    EXPECT_TRUE(found == expected) << "round " << round;
  }
}

// The contents stay when the State takes the memory, and a run's results are in it.
TEST_P(StateCopies, OfAdoptedMemoryAreOfTheMemoryItself) {
  constexpr int64_t kCount = 1000;
  const DeviceBuffer<int32_t> memory = *runtime_->MakeDeviceBuffer<int32_t>(kCount);
  auto first = runtime_->AdoptState<int32_t>("first", kCount, memory);
  auto second = runtime_->AdoptState<int32_t>("second", kCount, memory);
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  EXPECT_EQ(first->data(), memory.data());
  std::vector<int32_t> expected = Random(kCount), found = Poisoned(kCount);
  ASSERT_OK(first->Set(expected));
  Graph graph("add");
  graph.ParallelFor("add", kCount, AddOne{}, ReadWrite(*second));
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  ASSERT_OK(exec->Launch(exec->bindings(), seconds(60))->Wait(seconds(60)));
  ASSERT_OK(first->Read(found));
  for (int32_t& v : expected) ++v;
  EXPECT_EQ(found, expected);
}

// Whatever is done to it in the order of the calls, behind and before runs that nobody waits for.
TEST_P(StateCopies, ComeInTurnAmongRunsInFlight) {
  const auto n = static_cast<int64_t>(GetParam().ring ? 1000 : 20000);
  auto made = runtime_->MakeState<int32_t>("s", n);
  ASSERT_OK(made.status());
  State<int32_t> state = *std::move(made);
  Graph writes("writes"), reads("reads");
  writes.ParallelFor("add", n, AddOne{}, ReadWrite(state));
  auto y = reads.Output<int32_t>("y", n);
  reads.ParallelFor("get", n, CopyOut{}, Read(state), Write(y));
  auto writer = runtime_->Compile(writes, {.slots = 3}), reader = runtime_->Compile(reads, {.slots = 2});
  ASSERT_OK(writer.status());
  ASSERT_OK(reader.status());
  Bindings io = reader->bindings();
  std::vector<int32_t> expected(static_cast<size_t>(n));
  struct Seen {
    penstock::Run run;
    std::vector<int32_t> expected;
    std::shared_ptr<std::vector<int32_t>> found;
    Transfer read;  // instead of the run
  };
  std::vector<Seen> seen;
  const int rounds = GetParam().order_seed == 0 ? 100 : 30;
  for (int r = 0; r < rounds; ++r) {
    const auto what = rng_() % 10;
    if (what == 9) {
      auto found = std::make_shared<std::vector<int32_t>>(Poisoned(n));
      auto read = state.StartRead(*found, {.keep_alive = found});
      ASSERT_OK(read.status());
      seen.push_back({{}, expected, std::move(found), *std::move(read)});
    } else if (what == 8) {
      expected = Random(n);
      auto contents = std::make_shared<std::vector<int32_t>>(expected);
      ASSERT_OK(state.StartSet(*contents, {.keep_alive = contents}).status());
    } else if (what < 3) {
      ASSERT_OK(writer->Launch(writer->bindings(), seconds(60)).status());
      for (int32_t& v : expected) ++v;
    } else if (what < 5) {
      auto found = std::make_shared<std::vector<int32_t>>(Poisoned(n));
      auto run = reader->Launch(io.Set(y, *found, found), seconds(60));
      ASSERT_OK(run.status());
      seen.push_back({*std::move(run), expected, std::move(found), {}});
    } else if (what < 7) {
      expected = Random(n);
      ASSERT_OK(state.Set(std::vector<int32_t>(expected)));
    } else {
      std::vector<int32_t> found = Poisoned(n);
      ASSERT_OK(state.Read(found));
      ASSERT_TRUE(found == expected) << "round " << r;
    }
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    ASSERT_OK(seen[i].read ? seen[i].read.Wait() : seen[i].run.Wait());
    EXPECT_TRUE(*seen[i].found == seen[i].expected) << "reading run or transfer " << i;
  }
}

// Deadlines from the first moment of a Set until one that is long enough. The memory is the caller's again at once.
TEST_P(StateCopies, ASetCutShortAnywherePoisonsAndTheNextOneEndsThat) {
  const size_t bytes = LargeBytes();
  State<uint8_t> state = Made(bytes);
  const Bytes after = RandomBytes(bytes, rng_);
  Bytes found(bytes);
  for (microseconds limit{1}; limit < seconds(60); limit = Longer(limit)) {
    auto contents = std::make_unique<Bytes>(bytes, uint8_t{1});
    const absl::Status status = state.Set(*contents, limit);
    std::fill(contents->begin(), contents->end(), uint8_t{2});
    contents.reset();
    if (status.ok()) break;
    ASSERT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(state.status().code(), absl::StatusCode::kFailedPrecondition) << limit.count();
    EXPECT_EQ(state.Read(found).code(), absl::StatusCode::kFailedPrecondition);
    ASSERT_OK(state.Set(after));
    EXPECT_OK(state.status());
    ASSERT_OK(state.Read(found));
    EXPECT_TRUE(found == after) << "after " << limit.count() << " us";
  }
  ASSERT_OK(state.Read(found));
  EXPECT_TRUE(found == Bytes(bytes, 1)) << "the Set that was in time";
}

TEST_P(StateCopies, AReadCutShortAnywhereWritesNothingAfterwards) {
  const size_t bytes = LargeBytes();
  State<uint8_t> state = Made(bytes);
  const Bytes contents = RandomBytes(bytes, rng_), mine(bytes, 2);
  ASSERT_OK(state.Set(contents));
  Bytes found(bytes), again(bytes);
  for (microseconds limit{1}; limit < seconds(60); limit = Longer(limit)) {
    const absl::Status status = state.Read(found, limit);
    if (status.ok()) break;
    std::fill(found.begin(), found.end(), uint8_t{2});
    ASSERT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_OK(state.status());
    ASSERT_OK(state.Read(again));
    EXPECT_TRUE(again == contents) << "after " << limit.count() << " us";
    ASSERT_TRUE(found == mine) << "after " << limit.count() << " us";
  }
  EXPECT_TRUE(found == contents) << "the Read that was in time";
}

// With the ring's options chosen by the test.
class StateRings : public StateCopies {
 protected:
  void Remake(const StagingOptions& staging) {
    runtime_.reset();
    EXPECT_EQ(checks_->Complaints(), "");
    checks_.emplace();
    auto made = checks_->CreateRuntime({.devices = GetParam().devices, .workers = 2, .staging = staging});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }
};

TEST_P(StateRings, MoveTheSameWithAnyNumberOfThreads) {
  for (int threads = 1; threads <= 5; ++threads) {
    Remake({.threads = threads, .chunk_bytes = 1000, .from_bytes = 0});
    for (const size_t bytes : {999, 1000, 1001, 12345}) RoundTrips(bytes);
  }
}

// Large memory that is not pinned goes in chunks, any other in one piece, and neither takes memory of the devices or of
// the pool the second time.
TEST_P(StateRings, AreUsedForLargeMemoryThatIsNotPinnedOnly) {
  constexpr size_t kChunk = 4096, kFrom = 8192;
  Remake({.threads = 2, .chunk_bytes = kChunk, .from_bytes = kFrom});
  for (const size_t bytes : {kFrom, kFrom + 1, 5 * kChunk}) {
    State<uint8_t> state = Made(bytes);
    for (const bool pinned : {false, true}) {
      for (const bool first : {true, false}) {
        Memory memory = pinned ? Memory(*runtime_, bytes) : Memory(bytes, 1);
        const Totals before = checks_->witness().totals();
        ASSERT_OK(state.Set(memory.span()));
        const Totals set = checks_->witness().totals();
        ASSERT_OK(state.Read(memory.span()));
        const Totals read = checks_->witness().totals();
        if (first) continue;
        const bool ring = !pinned && bytes > kFrom;
        const Totals::Sum sum{ring ? static_cast<int64_t>((bytes + kChunk - 1) / kChunk) : 1,
                              static_cast<int64_t>(bytes)};
        EXPECT_EQ(set - before, (Totals{.uploads = sum})) << bytes << (pinned ? " pinned" : "");
        EXPECT_EQ(read - set, (Totals{.downloads = sum})) << bytes << (pinned ? " pinned" : "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Host, StateCopies, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, StateCopies, testing::ValuesIn(CudaTargets()), NameOfTarget);

INSTANTIATE_TEST_SUITE_P(Host, StateRings, testing::Values(Target{"host:2", "stream", true}), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, StateRings, testing::Values(Target{"cuda", "stream", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::state_copy_test
