#include "tests/graph/oracle/execution.h"

#include <algorithm>
#include <utility>

namespace penstock::graph {

int32_t Execution::Add(int32_t node) {
  preds_.emplace_back();
  node_of_.push_back(node);
  const int32_t op = operations() - 1;
  if (node >= 0) op_of_node_[node] = op;
  return op;
}

void Execution::AddCommand(const Command& c) {
  if (c.count > 1) return AddBatch(c);
  const int32_t op = Add(c.op == Command::Op::kNode ? c.arg : -1);
  auto& preds = preds_[op];
  int32_t& tail = lane_tail_[c.lane];
  if (tail >= 0) preds.push_back(tail);
  tail = op;
  if (c.op == Command::Op::kWait) {
    const int32_t record = record_of_[c.arg];
    if (record < 0) problem_ = "event " + std::to_string(c.arg) + " is waited for before it is recorded";
    if (record >= 0) preds.push_back(record);
  }
  if (c.op == Command::Op::kRecord) record_of_[c.arg] = op;
}

// Nodes that start when the lane has come to them, in no order, and of which all must have ended before it goes on.
void Execution::AddBatch(const Command& c) {
  const int32_t start = Add(-1);
  int32_t& tail = lane_tail_[c.lane];
  if (tail >= 0) preds_.back().push_back(tail);
  std::vector<int32_t> ops;
  for (int32_t n = c.arg; n < c.arg + c.count; ++n) {
    ops.push_back(Add(n));
    preds_.back().push_back(start);
  }
  tail = Add(-1);
  preds_.back() = ops;
}

Execution::Execution(const Plan& plan, int32_t commands, int32_t finish)
    : op_of_node_(plan.nodes.size(), -1),
      record_of_(plan.events.size(), -1),
      recorded_in_(plan.events.size(), -1),
      lane_tail_(plan.lanes.size(), -1) {
  for (const HostStep& step : plan.host_steps) Add(step.node);  // host step h is operation h
  int32_t last_segment = -1;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    const int32_t submit = Add(-1);
    preds_.back().assign(segment.after_hosts.begin(), segment.after_hosts.end());
    if (last_segment >= 0) preds_.back().push_back(last_segment);
    last_segment = submit;
    for (int32_t c = segment.begin; c < segment.end && (commands < 0 || c < commands); ++c) {
      const Command& command = plan.commands[c];
      const auto first = static_cast<size_t>(operations());
      AddCommand(command);
      preds_[first].push_back(submit);
      if (command.op == Command::Op::kRecord) recorded_in_[command.arg] = static_cast<int32_t>(s);
    }
  }
  for (size_t h = 0; h < plan.host_steps.size(); ++h) {
    AddHostStep(plan.host_steps[h], static_cast<int32_t>(h), commands < 0);
  }
  if (finish >= 0) {
    for (int32_t c = finish; c < plan.epilogue_end; ++c) AddCommand(plan.commands[c]);
  }
  if (problem_.empty()) FindReach();
}

void Execution::AddHostStep(const HostStep& step, int32_t op, bool whole) {
  auto& preds = preds_[op];
  if (step.joins) preds.push_back(op - 1);  // a worker does one after the other
  preds.insert(preds.end(), step.after_hosts.begin(), step.after_hosts.end());
  for (const int32_t e : step.after_events) {
    const int32_t record = record_of_[e];
    if (!whole && record < 0) continue;
    if (record < 0 || recorded_in_[e] > step.after_segment) {
      problem_ = "host step " + std::to_string(op) + " asks for event " + std::to_string(e) + " before it is recorded";
      return;
    }
    preds.push_back(record);
  }
}

Execution::Execution(const Plan& plan, std::vector<std::vector<int32_t>> preds) : preds_(std::move(preds)) {
  for (int32_t n = 0; n < static_cast<int32_t>(plan.nodes.size()); ++n) {
    node_of_.push_back(n);
    op_of_node_.push_back(n);
  }
  FindReach();
}

// What ends before `op` starts: its predecessors, and what ends before they do.
void Execution::JoinPreds(size_t op) {
  uint64_t* mine = reach_.data() + op * words_;
  for (const int32_t p : preds_[op]) {
    const uint64_t* theirs = reach_.data() + static_cast<size_t>(p) * words_;
    for (size_t w = 0; w < words_; ++w) mine[w] |= theirs[w];
    mine[static_cast<size_t>(p) / 64] |= uint64_t{1} << (static_cast<size_t>(p) % 64);
  }
}

void Execution::FindReach() {
  const auto count = static_cast<size_t>(operations());
  words_ = count / 64 + 1;
  reach_.assign(count * words_, 0);
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> state(count, State::kNew);
  std::vector<std::pair<size_t, size_t>> stack;  // operation, the next of its predecessors
  for (size_t root = 0; root < count; ++root) {
    if (state[root] == State::kNew) stack.push_back({root, 0});
    while (!stack.empty()) {
      auto& [op, next] = stack.back();
      state[op] = State::kOpen;
      if (next < preds_[op].size()) {
        const auto p = static_cast<size_t>(preds_[op][next++]);
        if (state[p] == State::kOpen) {
          problem_ = "the run waits for itself";
          return;
        }
        if (state[p] == State::kNew) stack.push_back({p, 0});
        continue;
      }
      JoinPreds(op);
      state[op] = State::kDone;
      stack.pop_back();
    }
  }
}

bool Execution::BeforeEvent(int32_t a, int32_t event) const {
  const int32_t op = op_of_node_[a];
  return op < 0 || (record_of_[event] >= 0 && Reaches(op, record_of_[event]));
}

}  // namespace penstock::graph
