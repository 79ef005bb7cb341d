// What a plan really does, found without the planner: its commands are taken as the runtime executes them, order is
// found by brute-force reachability, and contents are followed through simulated memory.
//
// Each check returns an empty string, or what is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan.h"
#include "penstock/model.h"

namespace penstock::graph {

// The operations of a run and what each must wait for: commands, host steps, and one operation a segment that stands
// for its submission. Lanes are FIFOs, a wait follows the last record of its event, segments are submitted in order.
class Execution {
 public:
  // Only the first `commands` of the segments are submitted when that is given; then `finish` begins there.
  explicit Execution(const Plan& plan, int32_t commands = -1, int32_t finish = -1);

  const std::string& problem() const { return problem_; }
  int32_t operations() const { return static_cast<int32_t>(preds_.size()); }
  const std::vector<int32_t>& preds(int32_t op) const { return preds_[static_cast<size_t>(op)]; }
  int32_t node_of(int32_t op) const { return node_of_[static_cast<size_t>(op)]; }  // -1: no node
  // Whether plan node `a` has ended before `b` starts, whatever the timing.
  bool Before(int32_t a, int32_t b) const;
  // Whether `a` has ended once event `done`'s last record has.
  bool BeforeEvent(int32_t a, int32_t event) const;

 private:
  int32_t Add(int32_t node);
  void AddCommand(const Command& command);
  void AddHostStep(int32_t step);
  void FindReach();
  bool Reaches(int32_t from, int32_t to) const {
    return (reach_[static_cast<size_t>(to)][static_cast<size_t>(from) / 64] >> (static_cast<size_t>(from) % 64) & 1) !=
           0;
  }

  const Plan& plan_;
  std::string problem_;
  std::vector<std::vector<int32_t>> preds_;
  std::vector<int32_t> node_of_;
  std::vector<int32_t> op_of_node_;
  std::vector<int32_t> record_of_;        // event -> its last record, an operation
  std::vector<int32_t> lane_tail_;
  std::vector<int32_t> host_op_;
  std::vector<std::vector<uint64_t>> reach_;
};

// Conflicting declared accesses and After in declared order; conflicting accesses to one instance, to a staging
// instance and the memory it may be, and to shared bytes of an arena in some order.
std::string CheckOrder(const Model& model, const Plan& plan);

// Runs the plan in one random legal interleaving and compares what each declared node reads, and the bound outputs at
// the end, with the declared graph executed in sequence. Each kHost buffer is bound to pinned memory (its staging is
// skipped) or not, by the seed.
std::string Interpret(const Model& model, const Plan& plan, uint64_t seed);

// Every node of a device has ended once its done event has: after the whole run from both beginnings, and after any
// first part of the commands from `finish_begin`.
std::string CheckFinish(const Plan& plan);

// Indices, devices, lanes and sizes are what plan.h says.
std::string CheckShape(const Model& model, const Plan& plan);

// Waits for events, and dependencies on host steps, whose removal CheckOrder does not notice.
struct Redundant {
  int events = 0, hosts = 0;
  int tried_events = 0, tried_hosts = 0;
};
Redundant CountRedundant(const Model& model, const Plan& plan);

}  // namespace penstock::graph
