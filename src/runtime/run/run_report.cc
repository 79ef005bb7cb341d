#include "src/runtime/run/run_report.h"

#include <string>
#include <string_view>
#include <vector>

#include "graph/common/message.h"
#include "src/base/status.h"

namespace penstock::runtime {
namespace {

using graph::PlanNode;

// Run::Cancel fails a run without a node; a callable that returns Cancelled has one.
bool IsCancel(const driver::RunFault& fault) {
  return fault.node() < 0 && fault.status().code() == absl::StatusCode::kCancelled;
}

// Names in a message: a limited number, then how many more there are.
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

// After an asynchronous fault the device no longer answers; only what was seen before is known. Scanning the commands
// from the end, a lane is done up to its last record that was seen complete, and so is whatever it had waited for.
std::vector<bool> NodesKnownDone(const RunSlot& slot) {
  std::vector<bool> node_done(slot.graph().plan().nodes.size()), lane_done(slot.graph().plan().lanes.size()),
      event_done(slot.graph().plan().events.size());
  for (size_t e = 0; e < event_done.size(); ++e) event_done[e] = slot.progress.seen_complete[e] == slot.progress.serial;
  const Schedule& schedule = *slot.schedule;
  const std::vector<bool> submitted = slot.WasSubmitted();
  const int32_t finish = slot.progress.first_unsubmitted == schedule.epilogue_begin ? schedule.short_epilogue_begin
                                                                                    : schedule.epilogue_begin;
  for (int32_t c = schedule.epilogue_end; c-- > 0;) {
    if (c < finish && (c >= schedule.epilogue_begin || !submitted[c])) continue;
    const ExecCommand& command = schedule.commands[c];
    const int32_t index = command.index;
    const LaneId lane = command.lane;
    if (command.op == ExecCommand::Op::kRecord && event_done[index]) lane_done[lane] = true;
    if (command.op == ExecCommand::Op::kWait && lane_done[lane]) event_done[index] = true;
    if (!lane_done[lane]) continue;
    for (const int32_t n : schedule.nodes[c]) node_done[n] = true;
  }
  for (const HostStepId s : slot.graph().plan().host_steps.ids()) {
    const HostStepState state = slot.host_states[s].load(std::memory_order_acquire);
    node_done[slot.graph().plan().host_steps[s].node] = state == HostStepState::kDone;
  }
  return node_done;
}

// Names every node that is not known done, grouped by whether it had been submitted.
std::string TextOfOpenNodes(const RunSlot& slot) {
  std::vector<bool> begun(slot.graph().plan().nodes.size());
  const std::vector<bool> submitted = slot.WasSubmitted();
  for (int32_t c = 0; c < slot.schedule->epilogue_begin; ++c) {
    if (!submitted[c]) continue;
    for (const int32_t n : slot.schedule->nodes[c]) begun[n] = true;
  }
  const std::vector<bool> done = NodesKnownDone(slot);
  NameList open, never;
  for (size_t n = 0; n < slot.graph().plan().nodes.size(); ++n) {
    if (!done[n]) (begun[n] ? open : never).Add(slot.graph().plan().nodes[n].name);
  }
  std::string text;
  if (open.count > 0) text += "; submitted and not known done: " + open.Text();
  if (never.count > 0) text += "; not submitted: " + never.Text();
  return text;
}

absl::Status DescribeCancelled(const RunSlot& slot) {
  const auto declared = [&](int32_t node) { return slot.graph().plan().nodes[node].decl >= 0; };
  int64_t all = 0, left = 0;
  for (const PlanNode& node : slot.graph().plan().nodes) all += node.decl >= 0;
  const std::vector<bool> submitted = slot.WasSubmitted();
  for (int32_t c = 0; c < slot.schedule->epilogue_begin; ++c) {
    if (submitted[c]) continue;
    for (const int32_t n : slot.schedule->nodes[c]) left += declared(n);
  }
  for (const HostStepId s : slot.graph().plan().host_steps.ids()) {
    left += slot.host_states[s].load(std::memory_order_acquire) == HostStepState::kSkipped &&
            declared(slot.graph().plan().host_steps[s].node);
  }
  return absl::CancelledError(graph::Prefix(slot.graph().model()) + ": cancelled; " + std::to_string(left) + " of " +
                              std::to_string(all) +
                              " nodes had not been submitted; what its outputs hold is not known; launch it again "
                              "to get them");
}

}  // namespace

absl::Status DescribeEnd(const RunSlot& slot) {
  if (!slot.fault.failed()) return absl::OkStatus();
  if (IsCancel(slot.fault)) return DescribeCancelled(slot);
  const absl::Status end = slot.DescribeFault();
  return base::IsFatal(end) && slot.fault.node() < 0 ? base::Suffixed(end, TextOfOpenNodes(slot)) : end;
}

absl::Status DescribeAbandoned(const RunSlot& slot, const absl::Status& why) {
  std::string text = graph::Prefix(slot.graph().model()) + ": " + base::Str(why.message()) +
                     "; it is abandoned and its slot comes back when the work ends";
  std::string bound;
  for (size_t b = 0; b < slot.graph().model().buffers.size(); ++b) {
    const int32_t instance = slot.graph().program().buffers.bound[b];
    const bool kept = slot.bound.keep_alives != nullptr && (*slot.bound.keep_alives)[b] != nullptr;
    if (instance < 0 || kept) continue;
    bound += bound.empty() ? "'" : ", '";
    bound += graph::OneLine(slot.graph().model().buffers[b].name.view()) + "'";
  }
  if (!bound.empty()) text += "; until then the memory bound to " + bound + " must stay valid";
  if (!slot.progress.has_turn.load(std::memory_order_relaxed)) {
    text +=
        "; it had not begun, since it waited for its turn after other runs (CompileOptions::in_order, max_submitted)";
  }
  if (!slot.ticket.places.empty()) text += slot.options().runtime.states().DescribePredecessor(slot.ticket);
  if (slot.fault.failed()) {
    text += IsCancel(slot.fault) ? "; it had been cancelled before"
                                 : "; before that: " + base::Str(slot.DescribeFault().message());
  }
  return absl::Status(why.code(), text);
}

}  // namespace penstock::runtime
