// Worker schedules against brute force: order by closing bit matrices, times by a simulation of the workers.
#include "graph/plan/worker_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace penstock::graph::worker_schedule_test {
namespace {

// `chains` of `length` tasks; the tasks of one step have consecutive numbers.
CsrRows Chains(int32_t chains, int32_t length) {
  CsrRows rows;
  for (int32_t v = 0; v < chains * length; ++v) {
    if (v >= chains) rows.Add(v - chains);
    rows.Close();
  }
  return rows;
}

// Steps of width * height tasks, the columns, in ascending order or, if `turns`, in odd steps in descending order. A
// task comes after those of the step before at its column and at those beside it.
struct Stencil {
  int32_t width, height, steps;
  bool turns = false;
  int32_t columns() const { return width * height; }
  int32_t TaskAt(int32_t column, int32_t step) const {
    return step * columns() + (turns && step % 2 == 1 ? columns() - 1 - column : column);
  }
  CsrRows Preds() const {
    std::vector<Edge> edges;
    for (int32_t step = 1; step < steps; ++step) {
      for (int32_t a = 0; a < columns(); ++a) {
        for (int32_t b = 0; b < columns(); ++b) {
          const int32_t distance = std::abs(a % width - b % width) + std::abs(a / width - b / width);
          if (distance <= 1) edges.push_back({TaskAt(b, step - 1), TaskAt(a, step)});
        }
      }
    }
    return MakeEdges(columns() * steps, edges);
  }
};

std::vector<double> Same(const CsrRows& preds, double us) {
  return std::vector<double>(static_cast<size_t>(preds.rows()), us);
}

// No schedule is shorter: the longest path without handovers, and the work over the workers.
double LowerBound(const CsrRows& preds, const std::vector<double>& us, const WorkerOptions& options, int32_t workers) {
  std::vector<double> end(us.size());
  double longest = 0, work = 0;
  for (size_t v = 0; v < us.size(); ++v) {
    for (const int32_t p : preds[static_cast<int32_t>(v)]) end[v] = std::max(end[v], end[static_cast<size_t>(p)]);
    end[v] += options.task_us + us[v];
    longest = std::max(longest, end[v]);
    work += options.task_us + us[v];
  }
  return std::max(longest, work / workers);
}

// Walks all lists at once: a worker does its next task when those that it waits for are done. -1: all wait.
double Simulate(const WorkerSchedule& schedule, const std::vector<double>& us, const WorkerOptions& options) {
  std::vector<double> end(us.size(), -1), free(static_cast<size_t>(schedule.workers));
  std::vector<size_t> next(free.size());
  size_t done = 0;
  for (bool any = true; any;) {
    any = false;
    for (size_t w = 0; w < free.size(); ++w) {
      const std::span<const int32_t> list = schedule.tasks[static_cast<int32_t>(w)];
      if (next[w] == list.size()) continue;
      const auto v = static_cast<size_t>(list[next[w]]);
      bool ready = true;
      double start = free[w];
      for (const int32_t p : schedule.waits[static_cast<int32_t>(v)]) {
        ready &= end[static_cast<size_t>(p)] >= 0;
        start = std::max(start, end[static_cast<size_t>(p)] + options.handover_us);
      }
      if (!ready) continue;
      free[w] = end[v] = start + options.task_us + us[v];
      ++next[w], ++done;
      any = true;
    }
  }
  return done == us.size() ? (us.empty() ? 0 : *std::max_element(end.begin(), end.end())) : -1;
}

// Bit b of row a: a comes before b. At most 64 tasks.
using Bits = std::vector<uint64_t>;
Bits Closure(Bits before) {
  for (size_t k = 0; k < before.size(); ++k) {
    for (uint64_t& row : before) row |= (row >> k & 1) != 0 ? before[k] : 0;
  }
  return before;
}
bool Has(const Bits& before, int32_t a, int32_t b) { return (before[static_cast<size_t>(a)] >> b & 1) != 0; }
void Set(Bits& before, int32_t a, int32_t b) { before[static_cast<size_t>(a)] |= uint64_t{1} << b; }

Bits ListOrder(const WorkerSchedule& schedule) {
  Bits before(schedule.worker_of.size());
  for (int32_t w = 0; w < schedule.workers; ++w) {
    const std::span<const int32_t> list = schedule.tasks[w];
    for (size_t i = 1; i < list.size(); ++i) Set(before, list[i - 1], list[i]);
  }
  return before;
}

void AddRows(const CsrRows& rows, Bits& before) {
  for (int32_t v = 0; v < rows.rows(); ++v) {
    for (const int32_t p : rows[v]) Set(before, p, v);
  }
}

bool ImpliesAll(const Bits& closed, const CsrRows& preds) {
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) {
      if (!Has(closed, p, v)) return false;
    }
  }
  return true;
}

struct RandomTasks {
  CsrRows preds;
  std::vector<double> us;
  WorkerOptions options;
};

RandomTasks MakeRandomTasks(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % static_cast<uint64_t>(n)); };
  RandomTasks tasks;
  const int32_t count = 1 + below(64), degree = 1 + below(4), reach = 1 + below(30), costs = 1 + below(5);
  for (int32_t v = 0; v < count; ++v) {
    for (int32_t k = below(degree + 1); v > 0 && k > 0; --k) tasks.preds.Add(std::max(0, v - 1 - below(reach)));
    tasks.preds.CloseAsSet();
    tasks.us.push_back(0.1 * below(costs));
  }
  tasks.options = {1 + below(9), 0.1 * below(10), 0.1 * below(4)};
  return tasks;
}

template <class F>
void ForEachRandom(F&& f) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    const RandomTasks tasks = MakeRandomTasks(seed);
    f(tasks, AssignWorkers(tasks.preds, tasks.us, tasks.options));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(AssignWorkers, EachTaskIsOnceInTheListOfItsWorker) {
  int several = 0;
  ForEachRandom([&](const RandomTasks& tasks, const WorkerSchedule& schedule) {
    ASSERT_GE(schedule.workers, 1);
    ASSERT_LE(schedule.workers, tasks.options.most_workers);
    ASSERT_EQ(schedule.tasks.rows(), schedule.workers);
    std::vector<int32_t> worker_of(tasks.us.size(), -1);
    for (int32_t w = 0; w < schedule.workers; ++w) {
      ASSERT_FALSE(schedule.tasks[w].empty()) << "worker " << w << " has nothing to do";
      for (const int32_t v : schedule.tasks[w]) worker_of[static_cast<size_t>(v)] = w;
    }
    ASSERT_EQ(schedule.tasks.items(), tasks.us.size());
    ASSERT_EQ(worker_of, schedule.worker_of);
    several += schedule.workers > 1;
  });
  EXPECT_GT(several, 250);
}

TEST(AssignWorkers, ListsAndEdgesFollowOneTopologicalOrder) {
  ForEachRandom([&](const RandomTasks& tasks, const WorkerSchedule& schedule) {
    Bits before = ListOrder(schedule);
    AddRows(tasks.preds, before);
    before = Closure(before);
    for (int32_t v = 0; v < tasks.preds.rows(); ++v) ASSERT_FALSE(Has(before, v, v)) << v;
  });
}

TEST(AssignWorkers, ListsAndWaitsImplyAllEdges) {
  ForEachRandom([&](const RandomTasks& tasks, const WorkerSchedule& schedule) {
    Bits before = ListOrder(schedule);
    AddRows(schedule.waits, before);
    ASSERT_TRUE(ImpliesAll(Closure(before), tasks.preds));
  });
}

TEST(AssignWorkers, NoWaitCanBeLeftOut) {
  int waits = 0;
  ForEachRandom([&](const RandomTasks& tasks, const WorkerSchedule& schedule) {
    for (int32_t v = 0; v < tasks.preds.rows(); ++v) {
      const std::span<const int32_t> row = schedule.waits[v];
      ASSERT_TRUE(std::is_sorted(row.begin(), row.end()));
      for (const int32_t p : row) {
        Bits before = ListOrder(schedule);
        AddRows(schedule.waits, before);
        before[static_cast<size_t>(p)] &= ~(uint64_t{1} << v);
        ASSERT_FALSE(ImpliesAll(Closure(before), tasks.preds)) << v << " need not wait for " << p;
        ++waits;
      }
    }
  });
  EXPECT_GT(waits, 2500);
}

TEST(AssignWorkers, ThoseSignalForWhomAnotherWorkerWaits) {
  ForEachRandom([&](const RandomTasks& tasks, const WorkerSchedule& schedule) {
    std::vector<bool> signals(tasks.us.size());
    for (int32_t v = 0; v < schedule.waits.rows(); ++v) {
      for (const int32_t p : schedule.waits[v]) {
        signals[static_cast<size_t>(p)] = true;
        ASSERT_NE(schedule.worker_of[static_cast<size_t>(p)], schedule.worker_of[static_cast<size_t>(v)]);
      }
    }
    ASSERT_EQ(signals, schedule.signals);
  });
}

TEST(AssignWorkers, TheEstimateIsWhatASimulationTakesAndNoMoreThanOneWorkerTakes) {
  ForEachRandom([&](const RandomTasks& tasks, const WorkerSchedule& schedule) {
    const double alone = LowerBound(tasks.preds, tasks.us, tasks.options, 1);
    ASSERT_NEAR(schedule.us, Simulate(schedule, tasks.us, tasks.options), 1e-3);
    ASSERT_LE(schedule.us, alone + 1e-3);
    ASSERT_GE(schedule.us, LowerBound(tasks.preds, tasks.us, tasks.options, schedule.workers) - 1e-3);
    ASSERT_TRUE(schedule.workers == 1 || schedule.us < alone - 1e-4) << "more workers for nothing";
  });
}

TEST(AssignWorkers, IsDeterministic) {
  ForEachRandom([&](const RandomTasks& tasks, const WorkerSchedule& schedule) {
    const WorkerSchedule again = AssignWorkers(tasks.preds, tasks.us, tasks.options);
    ASSERT_EQ(again.tasks, schedule.tasks);
    ASSERT_EQ(again.waits, schedule.waits);
    ASSERT_EQ(again.us, schedule.us);
  });
}

TEST(AssignWorkers, NothingToDoTakesNoWorker) {
  const WorkerSchedule schedule = AssignWorkers(CsrRows(), {}, {4});
  EXPECT_EQ(schedule.workers, 0);
  EXPECT_EQ(schedule.us, 0);
}

TEST(AssignWorkers, AChainTakesOneWorkerAndEightChainsTakeEight) {
  const CsrRows chain = Chains(1, 1000), chains = Chains(8, 125);
  EXPECT_EQ(AssignWorkers(chain, Same(chain, 0.2), {128}).workers, 1);
  const WorkerSchedule eight = AssignWorkers(chains, Same(chains, 0.2), {128});
  EXPECT_EQ(eight.workers, 8);
  EXPECT_EQ(eight.waits.items(), 0u);
  EXPECT_NEAR(eight.us, 62.5, 1e-6);
}

TEST(AssignWorkers, TakesAnotherWorkerOnlyIfThatGainsMoreThanTheHandover) {
  // One task, then two: beside each other they take a handover more and a task less.
  CsrRows fork;
  for (int32_t v = 0; v < 3; ++v) {
    if (v > 0) fork.Add(0);
    fork.Close();
  }
  EXPECT_EQ(AssignWorkers(fork, Same(fork, 0.3), {8, 0.7, 0.3}).workers, 1);
  EXPECT_EQ(AssignWorkers(fork, Same(fork, 0.5), {8, 0.7, 0.3}).workers, 2);
}

TEST(AssignWorkers, OneWorkerIsBetterThanManyHandovers) {
  // Pairs of tasks, each after both of the pair before it.
  CsrRows ladder;
  for (int32_t v = 0; v < 200; ++v) {
    if (v >= 2) ladder.Add(v - v % 2 - 2), ladder.Add(v - v % 2 - 1);
    ladder.Close();
  }
  EXPECT_EQ(AssignWorkers(ladder, Same(ladder, 0.1), {8, 0.7, 0.3}).workers, 1);
  EXPECT_EQ(AssignWorkers(ladder, Same(ladder, 0.9), {8, 0.7, 0.3}).workers, 2);
}

TEST(AssignWorkers, TakesAWorkerThatIsIdleBeforeANewOne) {
  // A task, three after it, one after these, and so on.
  CsrRows forks;
  for (int32_t v = 0; v < 100; ++v) {
    if (v % 4 > 0) forks.Add(v - v % 4);
    for (int32_t p = v - 3; v % 4 == 0 && p > 0 && p < v; ++p) forks.Add(p);
    forks.Close();
  }
  EXPECT_EQ(AssignWorkers(forks, Same(forks, 5), {8, 0.7, 0.3}).workers, 3);
}

TEST(AssignWorkers, AStencilHasOneColumnPerWorker) {
  for (const bool turns : {false, true}) {
    for (const auto& [width, height] : {std::pair(16, 1), std::pair(3, 1), std::pair(5, 7)}) {
      const Stencil stencil{width, height, 20, turns};
      const CsrRows preds = stencil.Preds();
      for (const int32_t most : {stencil.columns(), 128}) {
        const WorkerSchedule schedule = AssignWorkers(preds, Same(preds, 0.9), {most});
        EXPECT_EQ(schedule.workers, stencil.columns());
        for (int32_t step = 0; step < stencil.steps; ++step) {
          for (int32_t x = 0; x < stencil.columns(); ++x) {
            ASSERT_EQ(schedule.worker_of[static_cast<size_t>(stencil.TaskAt(x, step))], x) << "step " << step;
          }
        }
        EXPECT_NEAR(schedule.us, 20 * (0.3 + 0.9) + 19 * 0.7, 1e-6);
      }
    }
  }
}

TEST(AssignWorkers, NeighbouringColumnsOfAWideStencilShareAWorker) {
  const Stencil stencil{64, 1, 50};
  const CsrRows preds = stencil.Preds();
  const std::vector<double> us = Same(preds, 0.2);
  const WorkerOptions options{8};
  const WorkerSchedule schedule = AssignWorkers(preds, us, options);
  for (int32_t step = 0; step < stencil.steps; ++step) {
    for (int32_t x = 0; x < stencil.width; ++x) {
      ASSERT_EQ(schedule.worker_of[static_cast<size_t>(stencil.TaskAt(x, step))], x / 8) << x << ", " << step;
    }
  }
  EXPECT_EQ(schedule.waits.items(), 2u * 7 * 49) << "one for each neighbour and step";
  EXPECT_LT(schedule.us, 1.015 * LowerBound(preds, us, options, 8)) << "handovers go on beside other tasks";
}

TEST(AssignWorkers, ComesNearTheLowerBoundWhereThereIsMuchToDo) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    CsrRows preds;
    std::vector<double> us;
    for (int32_t v = 0; v < 2000; ++v) {
      for (uint64_t k = random() % 3; v >= 300 && k > 0; --k) preds.Add(v - 100 - static_cast<int32_t>(random() % 200));
      preds.CloseAsSet();
      us.push_back(0.1 * static_cast<double>(random() % 10));
    }
    const WorkerOptions options{16};
    EXPECT_LT(AssignWorkers(preds, us, options).us, 1.15 * LowerBound(preds, us, options, 16)) << "seed " << seed;
  }
}

TEST(AssignWorkers, TimesThatAreNoneCountAsNothing) {
  const CsrRows chain = Chains(1, 4);
  EXPECT_NEAR(AssignWorkers(chain, {-5, std::nan(""), 1, 0.5}, {2, 0.7, 0.3}).us, 2.7, 1e-6);
}

}  // namespace
}  // namespace penstock::graph::worker_schedule_test
