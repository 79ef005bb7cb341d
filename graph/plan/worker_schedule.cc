#include "graph/plan/worker_schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

namespace penstock::graph {
namespace {

using Picoseconds = int64_t;

Picoseconds InPicoseconds(double us) { return us > 0 ? std::llround(std::min(us, 1e6) * 1e6) : 0; }

// What is to be placed.
struct Work {
  const CsrRows& preds;
  std::vector<Picoseconds> cost;  // of each task
  Picoseconds handover;
  int32_t count() const { return preds.rows(); }
};

struct Placement {
  std::vector<int32_t> order;  // tasks as they were placed: a topological order
  std::vector<int32_t> worker_of;  // for each task; all workers less than `workers` have some
  int32_t workers = 0;
  Picoseconds end = 0;
};

// Tasks by longest remaining path. `worker_of`, if not null, says between which tasks there are handovers. A task
// comes before its successors: its path is not shorter, and its position is less.
std::vector<int32_t> ByRemainingPath(const Work& work, const std::vector<int32_t>* worker_of) {
  std::vector<Picoseconds> to_go(work.cost.size());
  for (int32_t v = work.count() - 1; v >= 0; --v) {
    to_go[v] += work.cost[v];
    for (const int32_t p : work.preds[v]) {
      const bool handover = worker_of != nullptr && (*worker_of)[p] != (*worker_of)[v];
      to_go[p] = std::max(to_go[p], to_go[v] + (handover ? work.handover : 0));
    }
  }
  std::vector<int32_t> order(work.cost.size());
  std::iota(order.begin(), order.end(), 0);
  const auto earlier = [&](int32_t a, int32_t b) { return to_go[a] != to_go[b] ? to_go[a] > to_go[b] : a < b; };
  if (!std::is_sorted(order.begin(), order.end(), earlier)) std::sort(order.begin(), order.end(), earlier);
  return order;
}

// Places each task where it can start soonest.
class SoonestPlacer {
 public:
  SoonestPlacer(const Work& work, int32_t most) : work_(work), most_(most), finish_(work.cost.size()) {
    successors_.resize(work.cost.size());
    for (int32_t v = 0; v < work.count(); ++v) {
      for (const int32_t p : work.preds[v]) ++successors_[p].all, ++successors_[p].unplaced;
    }
  }

  Placement Run() {
    placed_.worker_of.resize(work_.cost.size());
    placed_.order = ByRemainingPath(work_, nullptr);
    for (const int32_t v : placed_.order) Place(v);
    placed_.workers = count();
    return std::move(placed_);
  }

 private:
  struct Successors {
    int32_t unplaced = 0, all = 0;
  };
  // Compared in this order; the least is taken.
  struct Candidate {
    Picoseconds start;
    enum Kind { kHasPredecessor, kInUse, kUnused } kind;
    Successors of_predecessor;
    int32_t worker;
    auto Key() const { return std::make_tuple(start, kind, of_predecessor.unplaced, -of_predecessor.all, worker); }
  };
  // When all predecessors of a task are done and known to be so: on `worker` at `there`, on others at `elsewhere`.
  struct Readiness {
    int32_t worker = -1;
    Picoseconds there = 0, elsewhere = 0;
    Picoseconds On(int32_t w) const { return w == worker ? there : elsewhere; }
  };

  int32_t count() const { return static_cast<int32_t>(free_.size()); }
  int32_t worker_of(int32_t task) const { return placed_.worker_of[task]; }

  // Only on the worker of the predecessor that is done last can the task be ready sooner than elsewhere.
  Readiness ReadinessOf(std::span<const int32_t> preds) const {
    Readiness ready;
    Picoseconds last = 0, last_of_others = 0;
    for (const int32_t p : preds) {
      if (ready.worker < 0 || finish_[p] > last) ready.worker = worker_of(p), last = finish_[p];
    }
    for (const int32_t p : preds) {
      if (worker_of(p) != ready.worker) last_of_others = std::max(last_of_others, finish_[p] + work_.handover);
    }
    ready.there = std::max(last, last_of_others);
    ready.elsewhere = preds.empty() ? 0 : last + work_.handover;
    return ready;
  }

  Candidate Best(std::span<const int32_t> preds) {
    const Readiness ready = ReadinessOf(preds);
    Candidate best{ready.elsewhere, Candidate::kUnused, {}, count()};
    if (count() == most_) best.start = INT64_MAX;
    const auto consider = [&](int32_t w, Candidate::Kind kind, Successors of_predecessor) {
      const Candidate candidate{std::max(free_[w], ready.On(w)), kind, of_predecessor, w};
      if (candidate.Key() < best.Key()) best = candidate;
    };
    const int32_t first = FirstFree();
    if (first >= 0) consider(first, Candidate::kInUse, {});
    for (const int32_t p : preds) consider(worker_of(p), Candidate::kHasPredecessor, successors_[p]);
    return best;
  }

  // The worker that becomes free first, the lowest among equals; -1: none is in use.
  int32_t FirstFree() {
    while (!by_time_.empty() && free_[by_time_.top().second] != by_time_.top().first) by_time_.pop();
    return by_time_.empty() ? -1 : by_time_.top().second;
  }

  void Place(int32_t v) {
    const std::span<const int32_t> preds = work_.preds[v];
    const Candidate best = Best(preds);
    if (best.worker == count()) free_.push_back(0);
    placed_.worker_of[v] = best.worker;
    free_[best.worker] = finish_[v] = best.start + work_.cost[v];
    by_time_.push({finish_[v], best.worker});
    placed_.end = std::max(placed_.end, finish_[v]);
    for (const int32_t p : preds) --successors_[p].unplaced;
  }

  using Free = std::pair<Picoseconds, int32_t>;  // when, worker

  const Work& work_;
  const int32_t most_;
  Placement placed_;
  std::vector<Picoseconds> finish_;  // for each task
  std::vector<Successors> successors_;  // of each task
  std::vector<Picoseconds> free_;  // for each worker in use: when it is free
  std::priority_queue<Free, std::vector<Free>, std::greater<>> by_time_;  // some entries are out of date
};

// Places tasks on given workers.
Placement PlaceOn(const Work& work, std::vector<int32_t> worker_of, int32_t workers) {
  Placement placed{ByRemainingPath(work, &worker_of), {}, workers, 0};
  std::vector<Picoseconds> finish(work.cost.size()), free(static_cast<size_t>(workers));
  for (const int32_t v : placed.order) {
    Picoseconds start = free[worker_of[v]];
    for (const int32_t p : work.preds[v]) {
      start = std::max(start, finish[p] + (worker_of[p] != worker_of[v] ? work.handover : 0));
    }
    free[worker_of[v]] = finish[v] = start + work.cost[v];
    placed.end = std::max(placed.end, finish[v]);
  }
  placed.worker_of = std::move(worker_of);
  return placed;
}

// Puts neighbouring workers together to at most `most` blocks of about equal work.
Placement FoldWorkers(const Work& work, Placement wide, int32_t most) {
  std::vector<Picoseconds> load(static_cast<size_t>(wide.workers));
  for (int32_t v = 0; v < work.count(); ++v) load[wide.worker_of[v]] += work.cost[v];
  const auto all = static_cast<double>(std::accumulate(load.begin(), load.end(), Picoseconds{0}));
  std::vector<int32_t> block_of(load.size());
  Picoseconds before = 0;
  int32_t blocks = 0, last = -1;
  for (size_t w = 0; w < load.size(); ++w) {
    const double middle = static_cast<double>(before) + static_cast<double>(load[w]) / 2;
    const int32_t block = all > 0 ? std::min(most - 1, static_cast<int32_t>(middle * most / all)) : 0;
    if (block != last) ++blocks;  // a worker with much work may take the place of several blocks
    last = block;
    block_of[w] = blocks - 1;
    before += load[w];
  }
  for (int32_t& w : wide.worker_of) w = block_of[w];
  return PlaceOn(work, std::move(wide.worker_of), blocks);
}

int64_t EdgesAcross(const CsrRows& preds, const std::vector<int32_t>& worker_of) {
  int64_t edges = 0;
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) edges += worker_of[p] != worker_of[v];
  }
  return edges;
}

Placement BestPlacement(const Work& work, int32_t most) {
  if (work.count() == 0) return {};
  const Picoseconds alone = std::accumulate(work.cost.begin(), work.cost.end(), Picoseconds{0});
  Placement best;
  best.end = INT64_MAX;
  if (most > 1) best = SoonestPlacer(work, most).Run();
  if (most > 1 && best.workers == most) {
    Placement folded = FoldWorkers(work, SoonestPlacer(work, work.count()).Run(), most);
    const bool fewer = EdgesAcross(work.preds, folded.worker_of) < EdgesAcross(work.preds, best.worker_of);
    if (folded.end < best.end || (fewer && folded.end <= best.end + best.end / 10)) best = std::move(folded);
  }
  if (best.end < alone) return best;
  return PlaceOn(work, std::vector<int32_t>(work.cost.size(), 0), 1);
}

// Finds the waits by vector clocks, as ReduceWaits does: the clock of a worker has for each worker how many of its
// first tasks are known to be done. A task adds the clocks of those that it waits for. Going through its predecessors
// from the last placed to the first, a wait is needed exactly if the clock does not cover the predecessor yet. Of those
// on one worker only the last can be needed. Here tasks go by the order in which they were placed.
class WaitFinder {
 public:
  WaitFinder(const CsrRows& preds, const Placement& placed)
      : placed_(placed), tasks_(placed.order.size()), now_(workers() * workers()) {
    std::vector<int32_t> done(workers());
    std::vector<int32_t> index_of(tasks_.size());
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const int32_t v = placed.order[i];
      index_of[v] = static_cast<int32_t>(i);
      tasks_[i].worker = placed.worker_of[v];
      tasks_[i].position = ++done[tasks_[i].worker];
    }
    FindLast(preds, index_of);
  }

  std::vector<Edge> Run() {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const Task& task = tasks_[i];
      int32_t* clock = &now_[static_cast<size_t>(task.worker) * workers()];
      FindWaits(static_cast<int32_t>(i), clock);
      clock[task.worker] = task.position;
      if (task.clock != kNone) std::copy_n(clock, workers(), &clocks_[task.clock]);
    }
    return std::move(waits_);
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Task {
    int32_t worker = 0, position = 0;  // from 1
    size_t clock = kNone;  // where it is in clocks_, if another worker may wait for the task
  };

  size_t workers() const { return static_cast<size_t>(placed_.workers); }

  void FindLast(const CsrRows& preds, const std::vector<int32_t>& index_of) {
    std::vector<int32_t> last(workers(), -1);
    size_t clocks = 0;
    for (const int32_t v : placed_.order) {
      for (const int32_t p : preds[v]) {
        int32_t& of_worker = last[placed_.worker_of[p]];
        if (placed_.worker_of[p] != placed_.worker_of[v]) of_worker = std::max(of_worker, index_of[p]);
      }
      for (const int32_t p : preds[v]) {
        const int32_t of_worker = std::exchange(last[placed_.worker_of[p]], -1);
        if (of_worker >= 0) last_.Add(of_worker);
      }
      for (const int32_t p : last_.open()) {
        if (tasks_[p].clock == kNone) tasks_[p].clock = workers() * clocks++;
      }
      last_.CloseAsSet();
    }
    clocks_.resize(workers() * clocks);
  }

  void FindWaits(int32_t task, int32_t* __restrict clock) {
    const std::span<const int32_t> last = last_[task];
    for (size_t i = last.size(); i > 0; --i) {
      const Task& before = tasks_[last[i - 1]];
      if (clock[before.worker] >= before.position) continue;
      waits_.push_back({placed_.order[last[i - 1]], placed_.order[task]});
      const int32_t* __restrict from = &clocks_[before.clock];
      for (size_t w = 0; w < workers(); ++w) clock[w] = std::max(clock[w], from[w]);
    }
  }

  const Placement& placed_;
  std::vector<Task> tasks_;
  CsrRows last_;  // for each task: its last predecessors on other workers, ascending
  std::vector<int32_t> now_;  // the clock of each worker
  std::vector<int32_t> clocks_;  // the clocks of tasks when they were done
  std::vector<Edge> waits_;
};

}  // namespace

WorkerSchedule AssignWorkers(const CsrRows& preds, const std::vector<double>& us, const WorkerOptions& options) {
  Work work{preds, {}, InPicoseconds(options.handover_us)};
  const Picoseconds of_task = InPicoseconds(options.task_us);
  work.cost.reserve(us.size());
  for (const double own : us) work.cost.push_back(of_task + InPicoseconds(own));
  Placement placed = BestPlacement(work, options.most_workers);

  WorkerSchedule schedule;
  schedule.workers = placed.workers;
  schedule.us = static_cast<double>(placed.end) / 1e6;
  const std::vector<Edge> waits = WaitFinder(preds, placed).Run();
  schedule.waits = MakeEdges(preds.rows(), waits);
  schedule.signals.resize(us.size());
  for (const Edge& wait : waits) schedule.signals[wait.from] = true;
  std::vector<std::vector<int32_t>> tasks(static_cast<size_t>(placed.workers));
  for (const int32_t v : placed.order) tasks[placed.worker_of[v]].push_back(v);
  for (const std::vector<int32_t>& list : tasks) {
    for (const int32_t v : list) schedule.tasks.Add(v);
    schedule.tasks.Close();
  }
  schedule.worker_of = std::move(placed.worker_of);
  return schedule;
}

}  // namespace penstock::graph
