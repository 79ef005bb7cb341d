// AssignWorkers: which of a few workers does each of many tiny tasks, in which order, and for which tasks of other
// workers it waits. All is decided beforehand: a worker walks its list.
//
// Tasks are placed by longest remaining path, the earlier position among equals, each at the end of the list of the
// worker on which it can start soonest: one that has a predecessor, the one that becomes free first, or one not yet
// used. Among equals the choice falls, in this order, on
//   - a worker that has a predecessor: that of which the fewest successors are not placed yet, since they may want the
//     same worker, or among equals that with the most successors;
//   - a worker already in use;
//   - the lowest number.
// So each column of a stencil stays on its worker, if each step goes through the columns in ascending or descending
// order.
// If all workers are then in use, another way is tried: tasks are placed as if there were as many workers as wanted,
// and neighbours among these, in the order of their first tasks, are put together to `most_workers` blocks of equal
// work. Then tasks are placed again, on the workers so found, by longest remaining path including handovers. The second
// way is taken if its estimate is less, or at most a tenth more while fewer edges lead from one worker to another. One
// worker has all tasks if that takes no longer.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/common/csr_rows.h"

namespace penstock::graph {

struct WorkerOptions {
  int32_t most_workers = 1;
  double handover_us = 0.7;  // from the end of a task to the start of one on another worker that waits for it
  double task_us = 0.3;  // what each task takes beside its own work
};

struct WorkerSchedule {
  int32_t workers = 0;
  CsrRows tasks;  // for each worker: its tasks, in order; there is a topological order of all that all workers follow
  std::vector<int32_t> worker_of;  // for each task
  CsrRows waits;  // for each task: the tasks on other workers that it waits for, ascending
  std::vector<bool> signals;  // for each task: whether some other worker waits for it
  double us = 0;  // the estimated time from start to end
};

// Row v of `preds` has the predecessors of task v: less than v, ascending. `us`: the work of each task. Times are
// rounded to picoseconds, so that equal times are equal however they were added up; a time that is no number or
// negative is 0, and a second is the longest.
//
// The waits are as few as possible: none that the order of tasks on workers and the other waits imply. Workers that
// wait cannot deadlock, since all waits are for tasks placed earlier. O((tasks + edges) (log tasks +
// workers)); memory: `workers` words for each worker and for each task that is the last predecessor on its worker of a
// task on another.
WorkerSchedule AssignWorkers(const CsrRows& preds, const std::vector<double>& us, const WorkerOptions& options);

}  // namespace penstock::graph
