// A runtime on devices in virtual time, and the times of the runs of one executable there.
//
// The test's thread is the application's and the one that moves time. Before each step it waits until all other threads
// of the runtime sleep or spend virtual time; nothing else can wake them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/runtime.h"
#include "src/driver/sim/sim_driver.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock {

// When each node of each run began and ended, and each run was launched and ended, in virtual microseconds.
struct RunTimes {
  std::vector<std::vector<double>> begin_us, end_us;  // -1: it has not
  std::vector<double> launched_us, ended_us;

  void Resize(int32_t runs, size_t nodes);
};

class SimRig {
 public:
  // `options`: the latencies, the costs of submissions, and how the application launches: one thread, which never waits
  // for a run.
  SimRig(std::vector<graph::SimDevice> devices, const graph::SimOptions& options);
  SimRig(const SimRig&) = delete;
  SimRig& operator=(const SimRig&) = delete;

  Runtime& runtime() { return *runtime_; }

  // Launches SimOptions::runs runs, the r-th with `bind(r)`, in which each node of the plan takes what `us` says.
  absl::StatusOr<RunTimes> Run(Executable& executable, const std::vector<double>& us,
                               const std::function<const Bindings&(int32_t)>& bind);
  // What the callable of a Host node calls: takes the node's time. `decl`: the node as declared.
  void SpendOnHost(int32_t decl, int32_t run);

 private:
  struct Launched {
    penstock::Run run;
    double ended_us = -1;
  };

  void Settle();
  bool IsQuiet() const;
  absl::Status LaunchAll(Executable& executable, const std::function<const Bindings&(int32_t)>& bind);
  absl::StatusOr<Lease> Acquire(Executable& executable);
  std::optional<driver::sim::SimDriverOptions::Cost> CostOf(const driver::OpTag& tag) const;

  const graph::SimOptions options_;
  const int64_t threads_;  // of the runtime, without those that always sleep here
  driver::sim::SimDriver* driver_ = nullptr;  // the runtime's
  std::optional<Runtime> runtime_;
  // While Run is going on:
  runtime::ExecutableCore* core_ = nullptr;
  const std::vector<double>* us_ = nullptr;
  RunTimes times_;
  std::vector<Launched> launched_;
};

}  // namespace penstock
