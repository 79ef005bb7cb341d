// The words of a run's end: which node failed and where it was declared, what a cancelled run had not begun, which
// memory an abandoned run still needs.
#include <string>
#include <string_view>
#include <vector>

#include "graph/common/message.h"
#include "src/base/status.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {
namespace {

using graph::PlanNode;

// Where the user declared what a node is about: the node itself, or the buffer an inserted copy moves.
const Name& NameOf(const Model& model, const graph::Plan& plan, const PlanNode& node) {
  if (node.decl >= 0) return model.nodes[static_cast<size_t>(node.decl)].name;
  return model.buffers[static_cast<size_t>(plan.instances[static_cast<size_t>(node.src)].buffer)].name;
}

// Run::Cancel fails a run without a node; a callable that returns Cancelled has one.
bool IsCancel(const driver::RunFault& fault) {
  return fault.node() < 0 && fault.status().code() == absl::StatusCode::kCancelled;
}

// Names in a message: so many, then how many more.
struct NameList {
  static constexpr size_t kMost = 16;
  size_t count = 0;
  std::string names;

  void Add(std::string_view name) {
    if (++count > kMost) return;
    names += (count == 1 ? "'" : ", '") + std::string(name) + "'";
  }
  std::string Text() const { return count > kMost ? names + " and " + std::to_string(count - kMost) + " more" : names; }
};

}  // namespace

absl::Status ExecutableCore::Describe(int32_t node, const absl::Status& cause) const {
  return base::Prefixed(node < 0 ? graph::Prefix(*model_) : TextOfNode(node), cause);
}

std::string ExecutableCore::Label() const { return graph::Prefix(*model_); }

std::string ExecutableCore::TextOfNode(int32_t node) const {
  const PlanNode& n = plan_.nodes[static_cast<size_t>(node)];
  const Name& declared = NameOf(*model_, plan_, n);
  const Name shown(n.name, declared.source().file, declared.source().line);
  return graph::Prefix(*model_, "node", shown, n.device < 0 ? "host" : device(n.device).info.name);
}

std::string ExecutableCore::TextOfGraph(int32_t graph) const {
  const GraphProgram& replay = program_.replay;
  const int32_t begin = replay.begin[static_cast<size_t>(graph)], end = replay.begin[static_cast<size_t>(graph) + 1];
  const auto name = [&](int32_t entry) {
    const auto node = static_cast<size_t>(replay.entries[static_cast<size_t>(entry)].node);
    return "'" + graph::OneLine(plan_.nodes[node].name) + "'";
  };
  return "launching nodes " + name(begin) + " to " + name(end - 1) + ", " + std::to_string(end - begin) +
         " in one graph";
}

absl::Status ExecutableCore::DescribeEnd(const Slot& slot) const {
  if (!slot.fault.failed()) return absl::OkStatus();
  if (IsCancel(slot.fault)) return DescribeCancelled(slot);
  const absl::Status end = Describe(slot.fault.node(), slot.fault.status());
  return base::IsFatal(end) && slot.fault.node() < 0 ? base::Suffixed(end, TextOfOpenNodes(slot)) : end;
}

// After an asynchronous fault the device answers nothing more. What is known is what was seen before: from the end of
// the commands backwards, a lane is done up to the last record that was seen complete, and so is whatever it had waited
// for.
std::vector<bool> ExecutableCore::NodesKnownDone(const Slot& slot) const {
  std::vector<bool> node_done(plan_.nodes.size()), lane_done(plan_.lanes.size()), event_done(plan_.events.size());
  for (size_t e = 0; e < event_done.size(); ++e) event_done[e] = slot.seen_complete[e] == slot.serial;
  const Schedule& schedule = *slot.schedule;
  const std::vector<bool> submitted = slot.WasSubmitted();
  const int32_t finish =
      slot.first_unsubmitted == schedule.epilogue_begin ? schedule.short_epilogue_begin : schedule.epilogue_begin;
  for (int32_t c = schedule.epilogue_end; c-- > 0;) {
    if (c < finish && (c >= schedule.epilogue_begin || !submitted[static_cast<size_t>(c)])) continue;
    const ExecCommand& command = schedule.commands[static_cast<size_t>(c)];
    const auto index = static_cast<size_t>(command.index), lane = static_cast<size_t>(command.lane);
    if (command.op == ExecCommand::Op::kRecord && event_done[index]) lane_done[lane] = true;
    if (command.op == ExecCommand::Op::kWait && lane_done[lane]) event_done[index] = true;
    if (!lane_done[lane]) continue;
    for (const int32_t n : schedule.nodes[c]) node_done[static_cast<size_t>(n)] = true;
  }
  for (size_t s = 0; s < plan_.host_steps.size(); ++s) {
    const HostStepState state = slot.host_states[s].load(std::memory_order_acquire);
    node_done[static_cast<size_t>(plan_.host_steps[s].node)] = state == HostStepState::kDone;
  }
  return node_done;
}

// Every node but those known done, by whether it had been submitted.
std::string ExecutableCore::TextOfOpenNodes(const Slot& slot) const {
  std::vector<bool> begun(plan_.nodes.size());
  const std::vector<bool> submitted = slot.WasSubmitted();
  for (int32_t c = 0; c < slot.schedule->epilogue_begin; ++c) {
    if (!submitted[static_cast<size_t>(c)]) continue;
    for (const int32_t n : slot.schedule->nodes[c]) begun[static_cast<size_t>(n)] = true;
  }
  const std::vector<bool> done = NodesKnownDone(slot);
  NameList open, never;
  for (size_t n = 0; n < plan_.nodes.size(); ++n) {
    if (!done[n]) (begun[n] ? open : never).Add(plan_.nodes[n].name);
  }
  std::string text;
  if (open.count > 0) text += "; submitted and not known done: " + open.Text();
  if (never.count > 0) text += "; not submitted: " + never.Text();
  return text;
}

absl::Status ExecutableCore::DescribeCancelled(const Slot& slot) const {
  const auto declared = [&](int32_t node) { return plan_.nodes[static_cast<size_t>(node)].decl >= 0; };
  int64_t all = 0, left = 0;
  for (const PlanNode& node : plan_.nodes) all += node.decl >= 0;
  const std::vector<bool> submitted = slot.WasSubmitted();
  for (int32_t c = 0; c < slot.schedule->epilogue_begin; ++c) {
    if (submitted[static_cast<size_t>(c)]) continue;
    for (const int32_t n : slot.schedule->nodes[c]) left += declared(n);
  }
  for (size_t s = 0; s < plan_.host_steps.size(); ++s) {
    left += slot.host_states[s].load(std::memory_order_acquire) == HostStepState::kSkipped &&
            declared(plan_.host_steps[s].node);
  }
  return absl::CancelledError(graph::Prefix(*model_) + ": cancelled; " + std::to_string(left) + " of " +
                              std::to_string(all) +
                              " nodes had not been submitted; what its outputs hold is not known; launch it again "
                              "to get them");
}

absl::Status ExecutableCore::DescribeAbandoned(const Slot& slot, const absl::Status& why) const {
  std::string text = graph::Prefix(*model_) + ": " + base::Str(why.message()) +
                     "; it is abandoned and its slot comes back when the work ends";
  std::string bound;
  for (size_t b = 0; b < model_->buffers.size(); ++b) {
    const int32_t instance = program_.bound[b];
    const bool kept = b < slot.keep_alive.size() && slot.keep_alive[b] != nullptr;
    if (instance < 0 || kept) continue;
    bound += bound.empty() ? "'" : ", '";
    bound += graph::OneLine(model_->buffers[b].name.view()) + "'";
  }
  if (!bound.empty()) text += "; until then the memory bound to " + bound + " must stay valid";
  if (!slot.ticket.places.empty()) text += runtime_->states().DescribePredecessor(slot.ticket);
  if (slot.fault.failed()) {
    text += IsCancel(slot.fault)
                ? "; it had been cancelled before"
                : "; before that: " + base::Str(Describe(slot.fault.node(), slot.fault.status()).message());
  }
  return absl::Status(why.code(), text);
}

}  // namespace penstock::runtime
