#include "src/driver/host/graph_run.h"

#include <algorithm>
#include <atomic>

namespace penstock::driver::host {
namespace {

class NoTask final : public Task {
 public:
  NoTask() : Task({}, 1) {}
  absl::Status Run(int /*chunk*/) override { return absl::OkStatus(); }
};

}  // namespace

// --- making it ---

GraphRun::GraphRun(std::vector<GraphStep> steps) { (void)AddPart(std::move(steps), -1); }

// A part has at least one node, so that its end is always that of a node.
int32_t GraphRun::AddPart(std::vector<GraphStep> steps, int32_t branch) {
  if (steps.empty()) steps.emplace_back();
  const auto part = static_cast<int32_t>(parts_.size()), first = count();
  parts_.push_back({.first = first, .end = first + static_cast<int32_t>(steps.size()), .branch = branch});
  nodes_.resize(nodes_.size() + steps.size());
  for (int32_t i = first; i < parts_[static_cast<size_t>(part)].end; ++i) {
    GraphStep& step = steps[static_cast<size_t>(i - first)];
    Node& node = at(i);
    node.work = std::move(step.work);
    node.has_task = node.work.task != nullptr;
    node.priority = step.priority;
    node.device = step.device;
    node.is_on = std::move(step.is_on);
    node.part = part;
    node.before = static_cast<int32_t>(step.after.size());
    for (const int32_t before : step.after) at(first + before).next.push_back(i);
    if (step.branch) AddBranch(i, std::move(*step.branch));
  }
  return part;
}

void GraphRun::AddBranch(int32_t node, BranchSteps steps) {
  const auto number = static_cast<int32_t>(branches_.size());
  const int32_t first = count();
  at(node).branch = number;
  branches_.push_back({.kind = steps.kind, .value = std::move(steps.value), .node = node});
  for (std::vector<GraphStep>& body : steps.bodies) {
    const int32_t part = AddPart(std::move(body), number);
    branches_[static_cast<size_t>(number)].parts.push_back(part);
  }
  Branch& branch = branches_[static_cast<size_t>(number)];
  AddFaults(branch, first);
  if (branch.kind == ConditionalKind::kWhile) branch.pause = AddPause(number);
}

// Of all nodes from `first` on, which are those of its bodies and of what is nested in them.
void GraphRun::AddFaults(Branch& branch, int32_t first) const {
  for (auto node = static_cast<size_t>(first); node < nodes_.size(); ++node) {
    const RunFault* const fault = nodes_[node].has_task ? nodes_[node].work.task->tag.fault : nullptr;
    const bool known = std::find(branch.faults.begin(), branch.faults.end(), fault) != branch.faults.end();
    if (fault != nullptr && !known) branch.faults.push_back(fault);
  }
}

// It is in no part: see End.
int32_t GraphRun::AddPause(int32_t branch) {
  Node& node = nodes_.emplace_back();
  node.work.task = std::make_unique<NoTask>();
  node.has_task = true;
  node.part = -1;
  node.branch = branch;
  node.device = at(branches_[static_cast<size_t>(branch)].node).device;
  return count() - 1;
}

// --- running it ---

bool GraphRun::Start(std::vector<int32_t>& ready) {
  for (const Node& node : nodes_) {
    if (node.is_on) std::atomic_ref(*node.is_on).store(1, std::memory_order_relaxed);
  }
  StartPart(0, ready);
  return Drain(ready);
}

bool GraphRun::End(int32_t node, std::vector<int32_t>& ready) {
  if (at(node).part < 0) {
    Choose(at(node).branch, ready);
  } else {
    ended_.push_back(node);
  }
  return Drain(ready);
}

void GraphRun::StartPart(int32_t number, std::vector<int32_t>& ready) {
  Part& part = parts_[static_cast<size_t>(number)];
  part.left = part.end - part.first;
  part.ran_a_task = false;
  for (int32_t node = part.first; node < part.end; ++node) at(node).awaited = at(node).before;
  for (int32_t node = part.first; node < part.end; ++node) {
    if (at(node).before == 0) Begin(node, ready);
  }
}

void GraphRun::Begin(int32_t node, std::vector<int32_t>& ready) {
  Node& of = at(node);
  const bool is_on = !of.is_on || std::atomic_ref(*of.is_on).load(std::memory_order_relaxed) != 0;
  if (of.has_task && is_on) {
    parts_[static_cast<size_t>(of.part)].ran_a_task = true;
    ready.push_back(node);
  } else if (of.branch >= 0) {
    Choose(of.branch, ready);
  } else {
    ended_.push_back(node);
  }
}

// Recurses no deeper than conditional nodes are nested: parts that end are handled by Drain.
void GraphRun::Choose(int32_t number, std::vector<int32_t>& ready) {
  const Branch& branch = branches_[static_cast<size_t>(number)];
  const int32_t part = Chosen(branch);
  if (part >= 0) {
    StartPart(part, ready);
  } else {
    ended_.push_back(branch.node);
  }
}

// The part to start; -1: none.
int32_t GraphRun::Chosen(const Branch& branch) const {
  if (branch.kind == ConditionalKind::kWhile) {
    for (const RunFault* const fault : branch.faults) {
      if (fault->failed()) return -1;
    }
  }
  const size_t value = *branch.value, zero_if_set = value != 0 ? 0 : 1;
  const size_t body = branch.kind == ConditionalKind::kSwitch ? value : zero_if_set;
  return body < branch.parts.size() ? branch.parts[body] : -1;
}

// Goes on until tasks must run.
bool GraphRun::Drain(std::vector<int32_t>& ready) {
  while (!ended_.empty()) {
    const int32_t node = ended_.back();
    ended_.pop_back();
    for (const int32_t next : at(node).next) {
      if (--at(next).awaited == 0) Begin(next, ready);
    }
    const int32_t part = at(node).part;
    if (--parts_[static_cast<size_t>(part)].left == 0) EndPart(part, ready);
  }
  return done_;
}

void GraphRun::EndPart(int32_t number, std::vector<int32_t>& ready) {
  const Part& part = parts_[static_cast<size_t>(number)];
  if (part.branch < 0) {
    done_ = true;
    return;
  }
  const Branch& branch = branches_[static_cast<size_t>(part.branch)];
  if (part.ran_a_task) parts_[static_cast<size_t>(at(branch.node).part)].ran_a_task = true;
  if (branch.kind != ConditionalKind::kWhile) {
    ended_.push_back(branch.node);
  } else if (part.ran_a_task) {
    Choose(part.branch, ready);
  } else {
    ready.push_back(branch.pause);
  }
}

}  // namespace penstock::driver::host
