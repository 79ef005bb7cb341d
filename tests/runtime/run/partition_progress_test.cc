// The board of a split range: every command is submitted once, behind those before it in its part and behind the
// records it waits for, whoever comes to help, and by the owner alone where nobody does. Under every schedule of an
// owner and one who helps, and many of two; with mistakes planted that the exploration must find.
#include "src/runtime/run/partition_progress.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "src/host/submission_threads.h"
#include "tests/support/explored.h"

namespace penstock::runtime::partition_progress_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::Explored;
using interleave::ModelAtomic;
using interleave::Scenario;

// A range whose commands are numbered through, by parts. Command `waits[i].command` waits for command `behind`.
struct Wait {
  int32_t command, behind;
};
LanePartition MakeSplit(const std::vector<std::vector<int32_t>>& parts, const std::vector<Wait>& waits) {
  LanePartition split;
  for (const std::vector<int32_t>& part : parts) {
    for (const int32_t c : part) split.commands.push_back({c});
    split.part_begin.push_back(static_cast<int32_t>(split.commands.size()));
  }
  split.end = static_cast<int32_t>(split.commands.size());
  for (const Wait& wait : waits) {
    for (PartCommand& c : split.commands) {
      if (c.command != wait.command) continue;
      for (size_t p = 0; p < parts.size(); ++p) {
        for (size_t i = 0; i < parts[p].size(); ++i) {
          if (parts[p][i] == wait.behind) c.after_part = static_cast<int32_t>(p), c.after = static_cast<int32_t>(i);
        }
      }
    }
  }
  return split;
}

// Looks that only hint are no points where others go on: what is taken to be free is taken by an exchange, and what is
// seen to be full is looked at again.
int64_t changes = 0;
template <class T>
class Counting {
 public:
  Counting(T value = T{}) : of_(value), hint_(value) {}  // NOLINT: implicit, as std::atomic's
  T load(std::memory_order order = std::memory_order_seq_cst) const {
    return order == std::memory_order_relaxed ? hint_ : of_.load();
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    if (order != std::memory_order_relaxed) interleave::Point();
    of_ = ModelAtomic<T>(value);
    hint_ = value;
    ++changes;
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    interleave::Point();
    ++changes;
    of_ = ModelAtomic<T>(value);
    return std::exchange(hint_, value);
  }

 private:
  ModelAtomic<T> of_;
  T hint_;
};
class UntilChanged {
 public:
  void Look() { seen_ = changes; }
  void Rest() {
    interleave::BlockUntil([seen = seen_] { return changes != seen; });
  }

 private:
  int64_t seen_ = 0;
};

// What is submitted, and what is wrong with it. `full`: these commands find their lane full once.
class Log {
 public:
  explicit Log(const LanePartition& split) : split_(split) {}
  Submitted Submit(int32_t command) {
    interleave::Point();  // a call takes its time
    if (full.erase(command) > 0) return Submitted::kFull;
    if (command == fails) return has_failed = true, Submitted::kFailed;
    if (has_failed) return Submitted::kFailed;
    for (int32_t p = 0; p < split_.parts(); ++p) {
      for (const PartCommand& c : split_.part(p)) {
        if (c.command == command) break;
        if (c.command < command && InPart(p, command) && !done.contains(c.command)) problem = "out of order";
      }
    }
    for (const Wait& wait : waits) {
      if (wait.command == command && !done.contains(wait.behind)) problem = "a wait before its record";
    }
    if (!done.insert(command).second) problem = "submitted twice";
    order.push_back(command);
    return Submitted::kDone;
  }
  bool failed() const { return has_failed; }

  std::vector<Wait> waits;
  std::set<int32_t> done, full;
  std::vector<int32_t> order;
  int32_t fails = -1;
  bool has_failed = false;
  std::string problem;

 private:
  bool InPart(int32_t part, int32_t command) const {
    for (const PartCommand& c : split_.part(part)) {
      if (c.command == command) return true;
    }
    return false;
  }
  const LanePartition& split_;
};

template <template <class> class Atomic>
struct State {
  State(LanePartition of, std::vector<Wait> waits) : split(std::move(of)), board(split), log(split) {
    log.waits = std::move(waits);
  }
  LanePartition split;
  PartitionProgress<Atomic> board;
  Log log;
  SubmitResult driven = SubmitResult::kFailed;
};

struct Parts {
  std::vector<std::vector<int32_t>> parts;
  std::vector<Wait> waits{};
  std::vector<Wait> planted = waits;  // what the board is told of the waits
  int32_t fails = -1;  // this command
};

// An owner, and some who help once.
template <template <class> class Atomic = Counting>
Scenario OneDrives(int helpers, const Parts& of) {
  auto state = std::make_shared<State<Atomic>>(MakeSplit(of.parts, of.planted), of.waits);
  state->log.fails = of.fails;
  Scenario scenario;
  scenario.threads.push_back([state] { state->driven = state->board.template SubmitAll<UntilChanged>(state->log); });
  for (int h = 0; h < helpers; ++h) {
    scenario.threads.push_back([state] { state->board.SubmitOne(state->log, 0, state->split.parts()); });
  }
  scenario.check = [state] {
    const bool all = state->log.done.size() == state->split.commands.size();
    if (state->log.fails < 0 && (state->driven != SubmitResult::kAll || !all))
      return std::string("not all was submitted");
    if (state->log.fails >= 0 && state->driven != SubmitResult::kFailed) return std::string("the failure is not told");
    return state->log.problem;
  };
  return scenario;
}

// Two who help, each twice with a part of their own, or once with all of them.
Scenario TwoHelp(const Parts& of, bool own) {
  auto state = std::make_shared<State<Counting>>(MakeSplit(of.parts, of.planted), of.waits);
  Scenario scenario;
  for (int32_t h = 0; h < 2; ++h) {
    scenario.threads.push_back([state, own, h] {
      for (int i = 0; i < (own ? 2 : 1); ++i) state->board.SubmitOne(state->log, own ? h : 0, own ? h + 1 : 2);
    });
  }
  scenario.check = [state] { return state->log.problem; };
  return scenario;
}

constexpr int64_t kMany = 20000;

Explored ExploreBoard(int helpers, const Parts& parts, int64_t most = kMany) {
  return Explore([&] { return OneDrives(helpers, parts); }, most);
}

const Parts kCrossed{{{0, 3}, {1, 2}}, {{1, 0}, {3, 2}}};  // each part waits for the other

TEST(PartitionProgress, SubmitsEachCommandOnceAndInOrderWhateverTheSchedule) {
  ExpectSound(ExploreBoard(1, {{{0}}}));
  for (const bool own : {true, false}) {
    ExpectSound(Explore([&] { return TwoHelp({.parts = {{0, 1}, {2}}, .waits = {{2, 1}}}, own); }, kMany));
  }
  EXPECT_EQ(ExploreBoard(1, kCrossed, 2000).problem, "");
  EXPECT_EQ(ExploreBoard(2, kCrossed, 2000).problem, "");
}

TEST(PartitionProgress, StopsAtAFailureWhateverTheSchedule) {
  ExpectSound(ExploreBoard(1, {.parts = {{0}}, .fails = 0}));
  EXPECT_EQ(ExploreBoard(2, {.parts = kCrossed.parts, .waits = kCrossed.waits, .fails = 2}, 2000).problem, "");
}

TEST(PartitionProgress, IsExploredCloselyEnoughToFindAWaitThatComesTooEarly) {
  for (const std::vector<Wait>& planted : {std::vector<Wait>{}, std::vector<Wait>{{2, 0}}}) {
    ExpectFound(
        Explore([&] { return TwoHelp({.parts = {{0, 1}, {2}}, .waits = {{2, 1}}, .planted = planted}, true); }, kMany),
        "a wait before its record");
  }
}

// Looks, and takes whatever has happened since.
template <class T>
class Hasty : public Counting<T> {
 public:
  using Counting<T>::Counting;
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    const T before = this->load();
    this->store(value);
    return before;
  }
};

TEST(PartitionProgress, IsExploredCloselyEnoughToFindTwoAtWorkOnOnePart) {
  ExpectFound(Explore([] { return OneDrives<Hasty>(1, {{{0}}}); }), "submitted twice");
}

// Streams that share a hardware queue would otherwise hold each other up.
TEST(PartitionProgress, TheOwnerAloneSubmitsInPlanOrder) {
  State<std::atomic> state(MakeSplit({{0, 2, 3, 7}, {1, 4, 6}, {5, 8}}, {{4, 3}}), {{4, 3}});
  EXPECT_EQ(state.board.SubmitAll<host::SpinAndYield>(state.log), SubmitResult::kAll);
  EXPECT_EQ(state.log.problem, "");
  EXPECT_EQ(state.log.order, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(PartitionProgress, SaysThatLanesAreFullWhenNothingElseCanGoOnAndGoesOnThere) {
  State<std::atomic> state(MakeSplit({{0, 2}, {1, 3}, {4}}, {{3, 2}}), {{3, 2}});
  state.log.full = {2};
  // The first look finds it full, the owner's second one finds room.
  EXPECT_EQ(state.board.SubmitAll<host::SpinAndYield>(state.log), SubmitResult::kAll);
  state.board.Reset();
  state.log.done.clear();
  state.log.full = {2};
  struct AlwaysFull {
    Submitted Submit(int32_t command) { return command == 2 ? Submitted::kFull : log.Submit(command); }
    bool failed() const { return false; }
    Log& log;
  } full{state.log};
  EXPECT_EQ(state.board.SubmitAll<host::SpinAndYield>(full), SubmitResult::kFull);
  EXPECT_EQ(state.log.done, (std::set<int32_t>{0, 1, 4}));
  EXPECT_EQ(state.board.done(0), 1);
  state.log.full.clear();
  EXPECT_EQ(state.board.SubmitAll<host::SpinAndYield>(state.log), SubmitResult::kAll);
  EXPECT_EQ(state.log.done.size(), 5u);
  EXPECT_EQ(state.log.problem, "");
}

// Real threads, a range of random parts and waits: orders of memory are ThreadSanitizer's to look at.
TEST(PartitionProgress, OfManyPartsIsSubmittedByManyThreads) {
  constexpr int32_t kParts = 5, kCommands = 600;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    uint32_t random = seed;
    const auto below = [&](uint32_t n) { return (random = random * 1664525u + 1013904223u) / 65536u % n; };
    std::vector<std::vector<int32_t>> parts(kParts);
    std::vector<Wait> waits;
    for (int32_t c = 0; c < kCommands; ++c) {
      parts[below(kParts)].push_back(c);
      if (c > 10 && below(2) == 0) waits.push_back({c, c - 1 - static_cast<int32_t>(below(10))});
    }
    const LanePartition split = MakeSplit(parts, waits);
    PartitionProgress<> board(split);
    board.Reset();
    struct Job {
      Submitted Submit(int32_t command) {
        for (const Wait& wait : *waits) {
          if (wait.command == command && (*data)[static_cast<size_t>(wait.behind)] == 0) *wrong = true;
        }
        return ++(*data)[static_cast<size_t>(command)], Submitted::kDone;
      }
      bool failed() const { return false; }
      const std::vector<Wait>* waits;
      std::vector<int>* data;  // no atomics: whoever goes on behind a command sees what it did
      std::atomic<bool>* wrong;
    };
    std::vector<int> data(kCommands);
    std::atomic<bool> wrong{false}, stop{false};
    std::vector<std::jthread> helpers;
    for (int h = 0; h < 3; ++h) {
      helpers.emplace_back([&] {
        Job job{&waits, &data, &wrong};
        while (!stop.load()) {
          if (!board.SubmitOne(job, 0, kParts)) std::this_thread::yield();
        }
      });
    }
    Job job{&waits, &data, &wrong};
    EXPECT_EQ(board.SubmitAll<host::SpinAndYield>(job), SubmitResult::kAll);
    for (const int times : data) EXPECT_EQ(times, 1) << "seed " << seed;
    stop.store(true);
    EXPECT_FALSE(wrong.load()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::runtime::partition_progress_test
