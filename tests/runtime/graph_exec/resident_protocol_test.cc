// The order of a resident region's tasks under every schedule of its workers, launch after launch, with mistakes
// planted that the exploration must find; and the memory orders, with real threads.
#include "penstock/detail/resident_protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "graph/plan/worker_schedule.h"
#include "tests/support/explored.h"
#include "tests/support/sanitized.h"

namespace penstock::runtime::resident_protocol_test {
namespace {

using detail::ProgressAt;
using detail::ResidentWait;
using graph::CsrRows;
using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::Explored;
using interleave::Scenario;
using Lists = std::vector<std::vector<int32_t>>;

// --- regions ---

struct Task {
  int32_t number;
  uint32_t position;
  bool signals = false;
  std::vector<ResidentWait> waits{};
};

struct Region {
  CsrRows preds;  // of each task, by number
  std::vector<std::vector<Task>> workers{};
  uint32_t count() const { return static_cast<uint32_t>(workers.size()); }
};

CsrRows Rows(const Lists& lists) {
  CsrRows rows;
  for (const std::vector<int32_t>& list : lists) {
    for (const int32_t item : list) rows.Add(item);
    rows.Close();
  }
  return rows;
}

// Tasks wait for those of `waits` that are on other workers.
Region RegionOf(CsrRows preds, const CsrRows& lists, const CsrRows& waits) {
  Region region{.preds = std::move(preds)};
  region.workers.resize(static_cast<size_t>(lists.rows()));
  std::vector<std::pair<int32_t, Task*>> place(static_cast<size_t>(region.preds.rows()));
  for (int32_t w = 0; w < lists.rows(); ++w) {
    std::vector<Task>& worker = region.workers[static_cast<size_t>(w)];
    for (const int32_t task : lists[w]) worker.push_back({task, static_cast<uint32_t>(worker.size()) + 1});
    for (Task& task : worker) place[static_cast<size_t>(task.number)] = {w, &task};
  }
  for (const auto& [worker, task] : place) {
    for (const int32_t before : waits[task->number]) {
      const auto& [other, awaited] = place[static_cast<size_t>(before)];
      if (other == worker) continue;
      task->waits.push_back({static_cast<uint32_t>(other), awaited->position});
      awaited->signals = true;
    }
  }
  return region;
}

// By hand: the tasks of each worker.
Region ByHand(const Lists& preds, const Lists& workers) { return RegionOf(Rows(preds), Rows(workers), Rows(preds)); }

Region Assigned(CsrRows preds, int32_t most_workers) {
  const std::vector<double> us(static_cast<size_t>(preds.rows()), 10);
  const graph::WorkerSchedule schedule = AssignWorkers(preds, us, {.most_workers = most_workers});
  EXPECT_EQ(schedule.workers, most_workers);
  return RegionOf(std::move(preds), schedule.tasks, schedule.waits);
}

// The second worker may begin when the first has ended.
Region OneBehindTheOther() { return ByHand({{}, {0}, {0}, {1, 2}}, {{0, 1}, {2, 3}}); }
// Each waits for the other.
Region Crossed() { return ByHand({{}, {}, {1}, {0, 2}}, {{0, 2}, {1, 3}}); }
// One waits for a task of two others each.
Region TwoBeforeOne() { return ByHand({{}, {}, {0}, {1}}, {{0}, {1}, {2, 3}}); }

// --- a worker ---

enum class Mistake : uint8_t { kNone, kRaisesFirst, kForgetsEpoch };

// As ResidentKernel. `run` does a task.
template <class Memory, class Run>
void RunWorker(Memory& memory, const Region& region, uint32_t worker, const Run& run,
               Mistake mistake = Mistake::kNone) {
  const uint64_t epoch = detail::EnterRegion(memory);
  const uint64_t awaited = mistake == Mistake::kForgetsEpoch ? 0 : epoch;
  for (const Task& task : region.workers[worker]) {
    for (const ResidentWait& wait : task.waits)
      detail::AwaitProgress(memory, wait.word, ProgressAt(awaited, wait.position));
    for (const ResidentWait& wait : task.waits) memory.Acquire(wait.word);
    const auto raise = [&] {
      if (task.signals) memory.Raise(worker, ProgressAt(epoch, task.position));
    };
    if (mistake == Mistake::kRaisesFirst) raise(), interleave::Point();
    run(task.number);
    if (mistake != Mistake::kRaisesFirst) raise();
  }
  detail::LeaveRegion(memory, epoch, region.count());
}

// --- every schedule ---

struct ModelWords {
  explicit ModelWords(size_t workers) : progress(workers) {}
  std::vector<uint64_t> progress;
  uint64_t epoch = 0, leavers = 0, choice = 0;
};

// A worker's view of the words. Others may go on before it looks or writes, except at its beginning, where it was just
// chosen. It waits where it would look in vain until the word has been raised.
class ModelMemory {
 public:
  explicit ModelMemory(ModelWords& words) : words_(words) {}
  uint64_t LoadEpoch() const { return words_.epoch; }
  uint64_t LoadProgress(uint32_t word) { return Load(words_.progress[word]); }
  uint64_t LoadChoice() { return Load(words_.choice); }
  static bool Any(bool is) { return is; }
  void Pause() {
    interleave::BlockUntil([this] { return *last_ != seen_; });
    woken_ = true;
  }
  void Acquire(uint32_t /*word*/) const {}
  void AcquireChoice() const {}
  void Raise(uint32_t word, uint64_t progress) { interleave::Point(), words_.progress[word] = progress; }
  void RaiseChoice(uint64_t choice) { interleave::Point(), words_.choice = choice; }
  uint64_t CountLeaver() { return interleave::Point(), words_.leavers++; }
  void ResetLeavers() { interleave::Point(), words_.leavers = 0; }
  void StoreEpoch(uint64_t epoch) { interleave::Point(), words_.epoch = epoch; }

 protected:
  ModelWords& words_;

 private:
  uint64_t Load(const uint64_t& word) {
    if (!std::exchange(woken_, false)) interleave::Point();
    last_ = &word;
    return seen_ = word;
  }

  const uint64_t* last_ = nullptr;  // the word it looked at
  uint64_t seen_ = 0;
  bool woken_ = false;
};

// Workers that run a region several times, each time when all have ended the time before.
template <class Memory>
struct Launches {
  explicit Launches(const Region& of)
      : region(of), words(of.workers.size()), ran(static_cast<size_t>(of.preds.rows())) {}

  // As task of the n-th launch, counting from 0.
  void Work(int32_t task, int launch) {
    int& times = ran[static_cast<size_t>(task)];
    if (times++ != launch) problem = "a task ran twice";
    for (const int32_t before : region.preds[task]) {
      if (ran[static_cast<size_t>(before)] != launch + 1) problem = "a task began before one that it comes after";
    }
  }
  void Run(uint32_t worker, int launches, Mistake mistake) {
    for (int launch = 0; launch < launches; ++launch) {
      const uint32_t all = static_cast<uint32_t>(launch) * region.count();
      if (launch > 0) interleave::BlockUntil([this, all] { return ended >= all; });
      Memory memory(words);
      RunWorker(memory, region, worker, [&](int32_t task) { Work(task, launch); }, mistake);
      ++ended;
    }
  }
  std::string Check(int launches) const {
    const bool all = std::all_of(ran.begin(), ran.end(), [launches](int times) { return times == launches; });
    return problem.empty() && !all ? "a task did not run" : problem;
  }

  const Region region;
  ModelWords words;
  std::vector<int> ran;
  uint32_t ended = 0;  // workers, in all launches
  std::string problem;
};

template <class Memory = ModelMemory>
Explored ExploreLaunches(const Region& region, int launches, Mistake mistake = Mistake::kNone, int64_t most = 20000) {
  return Explore(
      [&] {
        auto state = std::make_shared<Launches<Memory>>(region);
        Scenario scenario;
        for (uint32_t w = 0; w < region.count(); ++w) {
          scenario.threads.push_back([state, w, launches, mistake] { state->Run(w, launches, mistake); });
        }
        scenario.check = [state, launches] { return state->Check(launches); };
        return scenario;
      },
      most);
}

TEST(ResidentProtocol, KeepsTheOrderOfTwoWorkersInTwoLaunchesWhateverTheSchedule) {
  ExpectSound(ExploreLaunches(OneBehindTheOther(), 2));
}

TEST(ResidentProtocol, KeepsTheOrderOfWorkersThatWaitForEachOtherWhateverTheSchedule) {
  ExpectSound(ExploreLaunches(Crossed(), 1));
  ExpectSound(ExploreLaunches(Assigned(Rows({{}, {}, {0}, {0, 1}, {1}, {2, 3}}), 2), 1));
}

TEST(ResidentProtocol, KeepsTheOrderOfThreeWorkersWhateverTheSchedule) {
  ExpectSound(ExploreLaunches(TwoBeforeOne(), 1));
}

// --- planted mistakes ---

constexpr char kEarly[] = "a task began before one that it comes after";

TEST(ResidentProtocol, IsExploredCloselyEnoughToFindAWordThatIsRaisedBeforeTheTask) {
  ExpectFound(ExploreLaunches(OneBehindTheOther(), 1, Mistake::kRaisesFirst), kEarly);
}

TEST(ResidentProtocol, IsExploredCloselyEnoughToFindAWaitForThePositionInAnyEpoch) {
  ExpectFound(ExploreLaunches(OneBehindTheOther(), 2, Mistake::kForgetsEpoch), kEarly);
}

TEST(ResidentProtocol, IsExploredCloselyEnoughToFindAWaitThatIsLeftOut) {
  for (const size_t task : {0, 1}) {
    Region region = Crossed();
    EXPECT_FALSE(region.workers[task][1].waits.empty());
    region.workers[task][1].waits.clear();
    ExpectFound(ExploreLaunches(region, 1), kEarly);
  }
}

struct NeverStoresEpoch : ModelMemory {
  using ModelMemory::ModelMemory;
  void StoreEpoch(uint64_t /*epoch*/) {}
};
struct NeverResetsLeavers : ModelMemory {
  using ModelMemory::ModelMemory;
  void ResetLeavers() {}
};
// The first worker that leaves stores the epoch, and no later one does.
struct FirstStoresEpoch : ModelMemory {
  using ModelMemory::ModelMemory;
  uint64_t CountLeaver() { return ModelMemory::CountLeaver() == 0 ? words_.progress.size() - 1 : 0; }
  void ResetLeavers() {}
};

TEST(ResidentProtocol, IsExploredCloselyEnoughToFindAnEpochThatIsUsedTwice) {
  ExpectFound(ExploreLaunches<NeverStoresEpoch>(OneBehindTheOther(), 2), kEarly);
}

TEST(ResidentProtocol, IsExploredCloselyEnoughToFindAnEpochThatEndsBeforeItsLaunch) {
  EXPECT_EQ(ExploreLaunches<NeverResetsLeavers>(OneBehindTheOther(), 1).problem, "") << "it is the next launch's";
  ExpectFound(ExploreLaunches<NeverResetsLeavers>(OneBehindTheOther(), 2), "deadlock");
  ExpectFound(ExploreLaunches<FirstStoresEpoch>(OneBehindTheOther(), 1), "deadlock");
}

// --- sections ---

// A region with a construct: in each section some workers have one task, and one decides. `path`: the sections of a
// run, in order; the choice is how far on from a section the next one is, modulo the number of sections.
struct Sections {
  struct Section {
    std::vector<bool> has_task;  // of each worker
    uint32_t decider;
  };
  std::vector<Section> sections;
  std::vector<uint32_t> path;
  uint32_t workers() const { return static_cast<uint32_t>(sections[0].has_task.size()); }
};

enum class SectionMistake : uint8_t { kNone, kForgetsTheIdle, kKeepsEpoch, kTakesAnyChoice };

// As ResidentKernel after it has entered the region, in epoch 1. What it finds in a section's records is in `of`. `run`
// does the task of the n-th section of the path.
template <class Memory, class Run>
std::vector<uint32_t> RunSections(Memory& memory, const Sections& of, uint32_t worker, const Run& run,
                                  SectionMistake mistake = SectionMistake::kNone) {
  const auto count = static_cast<uint32_t>(of.sections.size());
  uint64_t epoch = 1;
  std::vector<uint32_t> went;
  uint32_t at = of.path.front();
  for (size_t n = 0; n < of.path.size(); ++n) {
    const Sections::Section& section = of.sections[at];
    went.push_back(at);
    if (section.has_task[worker]) run(worker, n);
    memory.Raise(worker, ProgressAt(epoch, section.has_task[worker] ? 1 : 0));
    uint32_t choice = 0;
    if (worker == section.decider) {
      for (uint32_t w = 0; w < of.workers(); ++w) {
        if (w == worker || (mistake == SectionMistake::kForgetsTheIdle && !section.has_task[w])) continue;
        detail::AwaitProgress(memory, w, ProgressAt(epoch, section.has_task[w] ? 1 : 0));
        memory.Acquire(w);
      }
      if (n + 1 < of.path.size()) choice = (of.path[n + 1] + count - at) % count;
      detail::PublishChoice(memory, epoch, choice);
    } else {
      choice = detail::AwaitChoice(memory, mistake == SectionMistake::kTakesAnyChoice ? 1 : epoch);
      memory.AcquireChoice();
    }
    if (mistake != SectionMistake::kKeepsEpoch) ++epoch;
    at = (at + choice) % count;
  }
  return went;
}

// Workers that run a region once.
struct SectionRun {
  explicit SectionRun(const Sections& run) : of(run), words(run.workers()), done(run.path.size()) {}
  // All tasks of earlier sections have been done.
  void Work(uint32_t worker, size_t n) {
    for (size_t before = 0; before < n; ++before) {
      const std::vector<bool>& has = of.sections[of.path[before]].has_task;
      if (done[before] != std::count(has.begin(), has.end(), true)) problem = "a section began before another ended";
    }
    if (!of.sections[of.path[n]].has_task[worker]) problem = "a worker did what is not its own";
    ++done[n];
  }
  void Run(uint32_t worker, SectionMistake mistake) {
    ModelMemory memory(words);
    const auto work = [this](uint32_t w, size_t n) { Work(w, n); };
    if (RunSections(memory, of, worker, work, mistake) != of.path) problem = "a worker went another way";
  }

  const Sections of;
  ModelWords words;
  std::vector<int64_t> done;  // tasks of each section of the path
  std::string problem;
};

Explored ExploreSections(const Sections& sections, SectionMistake mistake = SectionMistake::kNone) {
  return Explore(
      [&] {
        auto state = std::make_shared<SectionRun>(sections);
        Scenario scenario;
        for (uint32_t w = 0; w < sections.workers(); ++w) {
          scenario.threads.push_back([state, w, mistake] { state->Run(w, mistake); });
        }
        scenario.check = [state] { return state->problem; };
        return scenario;
      },
      20000);
}

// The workers take turns at deciding.
Sections ALoop(std::vector<uint32_t> path) { return {{{{true, true}, 0}, {{true, true}, 1}}, std::move(path)}; }
// One worker works and decides alone, and a section is left out.
Sections AnIdleWorker() { return {{{{true, false}, 0}, {{true, false}, 0}, {{true, false}, 0}}, {0, 2}}; }

TEST(ResidentProtocol, AllGoTheSameWayThroughSectionsWhateverTheSchedule) {
  ExpectSound(ExploreSections(ALoop({0, 1})));
  ExpectSound(ExploreSections(AnIdleWorker()));
}

TEST(ResidentProtocol, IsExploredCloselyEnoughToFindSectionsThatRunOn) {
  const auto found = [](const Sections& sections, SectionMistake mistake) {
    const Explored explored = ExploreSections(sections, mistake);
    EXPECT_NE(explored.problem, "") << "mistake " << static_cast<int>(mistake);
  };
  found(AnIdleWorker(), SectionMistake::kForgetsTheIdle);
  found(ALoop({0, 1, 1}), SectionMistake::kKeepsEpoch);
  found(ALoop({0, 1, 1}), SectionMistake::kTakesAnyChoice);
}

// --- real threads ---

struct Words {
  explicit Words(size_t workers) : progress(workers) {}
  std::vector<std::atomic<uint64_t>> progress;
  std::atomic<uint64_t> epoch{0}, leavers{0}, choice{0};
};

// The memory orders of resident_cuda.h, but that it acquires by reading the words again: ThreadSanitizer knows no
// fences.
class ThreadMemory {
 public:
  explicit ThreadMemory(Words& words) : words_(words) {}
  uint64_t LoadEpoch() const { return words_.epoch.load(std::memory_order_relaxed); }
  uint64_t LoadProgress(uint32_t word) const { return words_.progress[word].load(std::memory_order_relaxed); }
  uint64_t LoadChoice() const { return words_.choice.load(std::memory_order_relaxed); }
  void RaiseChoice(uint64_t choice) const { words_.choice.store(choice, std::memory_order_release); }
  static bool Any(bool is) { return is; }
  static void Pause() { std::this_thread::yield(); }
  void Acquire(uint32_t word) const { (void)words_.progress[word].load(std::memory_order_acquire); }
  void AcquireChoice() const { (void)words_.choice.load(std::memory_order_acquire); }
  void Raise(uint32_t word, uint64_t progress) const {
    words_.progress[word].store(progress, std::memory_order_release);
  }
  uint64_t CountLeaver() const { return words_.leavers.fetch_add(1, std::memory_order_relaxed); }
  void ResetLeavers() const { words_.leavers.store(0, std::memory_order_relaxed); }
  void StoreEpoch(uint64_t epoch) const { words_.epoch.store(epoch, std::memory_order_relaxed); }

 private:
  Words& words_;
};

CsrRows RandomPreds(int32_t tasks, std::mt19937& random) {
  CsrRows preds;
  for (int32_t task = 0; task < tasks; ++task) {
    for (int32_t before = std::max(task - 12, 0); before < task; ++before) {
      if (random() % 5 == 0) preds.Add(before);
    }
    preds.Close();
  }
  return preds;
}

// A value for each edge, in plain memory: the earlier task writes it, the later one reads it and wipes it out.
struct Values {
  explicit Values(const CsrRows& of) : preds(of), of_edge(of.items()), of_task(static_cast<size_t>(of.rows())) {
    edges_from.resize(of_task.size());
    edges_to.resize(of_task.size());
    size_t edge = 0;
    for (int32_t task = 0; task < preds.rows(); ++task) {
      for (const int32_t before : preds[task]) {
        edges_from[static_cast<size_t>(before)].push_back(edge);
        edges_to[static_cast<size_t>(task)].push_back(edge++);
      }
    }
  }
  void Work(int32_t task) {
    const auto t = static_cast<size_t>(task);
    uint64_t sum = of_task[t] + t + 1;
    for (const size_t edge : edges_to[t]) sum = sum * 31 + std::exchange(of_edge[edge], 0);
    of_task[t] = sum;
    for (const size_t edge : edges_from[t]) of_edge[edge] = sum;
  }

  const CsrRows& preds;
  std::vector<uint64_t> of_edge, of_task;
  std::vector<std::vector<size_t>> edges_from, edges_to;  // of each task
};

TEST(ResidentProtocol, HandsPlainMemoryFromTaskToTaskOnThreads) {
  constexpr int32_t kTasks = 60, kWorkers = 4;
  constexpr int kLaunches = 20, kRegions = kSanitized ? 2 : 5;
  std::mt19937 random(20261127);
  for (int i = 0; i < kRegions; ++i) {
    const Region region = Assigned(RandomPreds(kTasks, random), kWorkers);
    Values values(region.preds), expected(region.preds);
    Words words(kWorkers);
    for (int launch = 0; launch < kLaunches; ++launch) {
      std::vector<std::thread> workers;
      for (uint32_t w = 0; w < kWorkers; ++w) {
        workers.emplace_back([&, w] {
          ThreadMemory memory(words);
          RunWorker(memory, region, w, [&](int32_t task) { values.Work(task); });
        });
      }
      for (std::thread& worker : workers) worker.join();
      for (int32_t task = 0; task < kTasks; ++task) expected.Work(task);
      ASSERT_EQ(values.of_task, expected.of_task) << "launch " << launch;
    }
  }
}

// Each worker reads what the others wrote in the section before.
TEST(ResidentProtocol, HandsPlainMemoryFromSectionToSectionOnThreads) {
  constexpr uint32_t kWorkers = 3, kSections = 60;
  Sections of{{{{true, true, true}, 0}, {{true, false, true}, 2}, {{true, true, true}, 1}}, {0}};
  for (uint32_t n = 1; n < kSections; ++n) of.path.push_back((of.path.back() + n % 3) % 3);
  Words words(kWorkers);
  std::vector<uint64_t> cells(2 * size_t{kWorkers}, 1);  // of each worker, read and written in turn
  std::vector<std::thread> workers;
  std::vector<std::vector<uint32_t>> went(kWorkers);
  const auto step = [&](std::vector<uint64_t>& all, uint32_t w, size_t n) {
    uint64_t sum = n;
    for (uint32_t other = 0; other < kWorkers; ++other) sum = sum * 31 + all[(n % 2) * kWorkers + other];
    all[((n + 1) % 2) * kWorkers + w] = sum;
  };
  for (uint32_t w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      ThreadMemory memory(words);
      went[w] = RunSections(memory, of, w, [&](uint32_t worker, size_t n) { step(cells, worker, n); });
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::vector<uint64_t> expected(2 * size_t{kWorkers}, 1);
  for (size_t n = 0; n < of.path.size(); ++n) {
    for (uint32_t w = 0; w < kWorkers; ++w) {
      if (of.sections[of.path[n]].has_task[w]) step(expected, w, n);
    }
  }
  EXPECT_EQ(cells, expected);
  for (const std::vector<uint32_t>& way : went) EXPECT_EQ(way, of.path);
}

}  // namespace
}  // namespace penstock::runtime::resident_protocol_test
