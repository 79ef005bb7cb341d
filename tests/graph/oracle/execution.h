// What a plan's commands make wait for what, as the runtime executes them, found without the planner: lanes are FIFOs,
// a wait follows the last record of its event, segments are submitted in order once their host steps are done. Order is
// reachability, by brute force.
//
// A PlanNode's `preds` are no part of it: they say why, commands do. What edges alone would order has a constructor of
// its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace penstock::graph {

// The operations of a run and what each must wait for: commands, host steps, and one operation a segment that stands
// for its submission.
class Execution {
 public:
  // Only the first `commands` of the segments are submitted when that is given; then `finish` begins there.
  explicit Execution(const Plan& plan, int32_t commands = -1, int32_t finish = -1);

  // The nodes alone, each behind its row of `preds` and nothing else: no lanes, events, host steps or segments.
  Execution(const Plan& plan, std::vector<std::vector<int32_t>> preds);

  const std::string& problem() const { return problem_; }
  int32_t operations() const { return static_cast<int32_t>(preds_.size()); }
  const std::vector<int32_t>& preds(int32_t op) const { return preds_[op]; }
  int32_t node_of(int32_t op) const { return node_of_[op]; }  // -1: no node
  // Whether plan node `a` has ended before `b` starts, whatever the timing.
  bool Before(int32_t a, int32_t b) const { return Reaches(op_of_node_[a], op_of_node_[b]); }
  // Whether `a` has ended, or was never submitted, once event `done`'s last record has.
  bool BeforeEvent(int32_t a, int32_t event) const;

 private:
  int32_t Add(int32_t node);
  void AddCommand(const Command& command);
  void AddBatch(const Command& command);
  void AddHostStep(const HostStep& step, int32_t op, bool whole);
  void FindReach();
  void JoinPreds(size_t op);
  bool Reaches(int32_t from, int32_t to) const {
    const uint64_t word = reach_[static_cast<size_t>(to) * words_ + static_cast<size_t>(from) / 64];
    return (word >> (static_cast<size_t>(from) % 64) & 1) != 0;
  }

  std::string problem_;
  std::vector<std::vector<int32_t>> preds_;
  std::vector<int32_t> node_of_;
  std::vector<int32_t> op_of_node_;
  std::vector<int32_t> record_of_;  // event -> its last record, an operation
  std::vector<int32_t> recorded_in_;  // event -> the segment of that
  std::vector<int32_t> lane_tail_;
  std::vector<uint64_t> reach_;  // (operation, operations that end before it starts), a bit each
  size_t words_ = 0;
};

}  // namespace penstock::graph
