#include "src/runtime/executable/mode_selection.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "graph/common/message.h"
#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/driver/current_device.h"

namespace penstock::runtime {

absl::StatusOr<Mode> ModeSelection::Wanted(const Model& model, const CompileOptions& options) {
  const std::optional<std::string> name = base::WordOf("PENSTOCK_MODE");
  if (!name) return options.mode;
  if (name == "graph") return Mode::kGraph;
  if (name == "stream") return Mode::kStream;
  if (name == "auto") return Mode::kAuto;
  return absl::InvalidArgumentError(graph::Prefix(model) + ": PENSTOCK_MODE is '" +
                                    graph::OneLine(base::Variable("PENSTOCK_MODE").value_or("")) +
                                    "'; it must be stream, graph or auto");
}

void ModeSelection::Choose(Mode wanted) {
  if (wanted == Mode::kStream) return;
  const graph::Plan& plan = context_.graph.plan();
  const size_t notes_before = notes().size();
  const auto is_construct = [](const graph::PlanNode& node) { return node.kind == graph::PlanKind::kConditional; };
  const auto construct = std::find_if(plan.nodes.begin(), plan.nodes.end(), is_construct);
  if (graph::IsOnSeveralDevices(plan) && construct != plan.nodes.end()) {
    notes().push_back("no graphs: the plan is on several devices, and its node '" + graph::OneLine(construct->name) +
                      "' is a construct that a device decides, which has a graph of its own there");
  }
  if (context_.runtime->synchronous()) {
    notes().push_back("no graphs: RuntimeOptions::synchronous, or PENSTOCK_SYNC, has each node waited for");
  }
  if (plan.lanes.empty() && wanted == Mode::kAuto) notes().push_back("no graphs: nothing runs on a device");
  if (notes().size() == notes_before) report_.mode = wanted;
}

// Without a trial nothing but streams is needed if they should be faster. Graphs that should be may be refused yet.
void ModeSelection::SetLikely(Mode mode) {
  likely_ = mode;
  if (context_.graph.trace() == nullptr || report_.mode != Mode::kAuto) return;
  notes().push_back("no mode is tried, since runs with a trace are too slow to compare: this one should be faster");
  if (mode == Mode::kStream) report_.mode = Mode::kStream;
}

void ModeSelection::FallBackToStreams(const absl::Status& why) {
  report_.mode = Mode::kStream;
  notes().push_back("no graphs: " + base::Str(why.message()));
}

void ModeSelection::Start(const std::vector<std::unique_ptr<RunSlot>>& slots) {
  if (mode() == Mode::kAuto) trial_ = std::make_unique<ModeTrial>(likely_, static_cast<int>(slots.size()));
  if (trial_ != nullptr && context_.graph.trace() != nullptr) trial_->Decide();
  for (const auto& slot : slots) {
    slot->Use(mode() == Mode::kAuto ? likely_ : mode());
    if (mode() == Mode::kGraph && slot->replay != nullptr) slot->replay->OnlyGraphs();
  }
}

void ModeSelection::Begin(RunSlot& slot) {
  if (trial_ == nullptr) return;
  const ModeTrial::Turn turn = trial_->Next();
  slot.trial = turn.number;
  slot.Use(turn.mode);
  if (turn.number >= 0) slot.launched = std::chrono::steady_clock::now();
  if (!trial_->decided()) return;
  if (turn.mode == Mode::kStream) slot.DropGraphs();
  if (turn.mode == Mode::kGraph) slot.replay->OnlyGraphs();
}

Mode ModeSelection::Decide() { return trial_ != nullptr ? trial_->Decide() : mode(); }

absl::Status ModeSelection::Prepare(RunSlot& slot) {
  const CompiledGraph& graph = context_.graph;
  const Program& program = graph.program();
  if (slot.replay == nullptr || slot.schedule != &program.graphs || program.replay.launch.empty()) return {};
  const driver::CurrentDevice current(graph.driver(), graph.local_device_of_lane(program.replay.lane));
  absl::Status why = slot.replay->Capture().status();
  if (why.ok()) return why;  // or tried again before the first graph
  const int32_t node = base::TakeNode(why);
  why = graph.Describe(base::IsFatal(why) ? -1 : node, why);
  if (trial_ == nullptr || base::IsFatal(why)) return why;
  trial_->Refuse(base::Str(why.message()));
  slot.trial = -1;
  slot.Use(Mode::kStream);
  slot.DropGraphs();
  return absl::OkStatus();
}

void ModeSelection::End(RunSlot& slot) {
  if (slot.trial < 0) return;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - slot.launched;
  if (!slot.fault.failed()) trial_->Ended(slot.trial, took.count());
  slot.trial = -1;
}

SubmissionReport ModeSelection::Report(const std::vector<std::unique_ptr<RunSlot>>& slots) const {
  SubmissionReport report = report_;
  for (const auto& slot : slots) {
    if (slot->graphs != nullptr) slot->graphs->AddTo(report);
  }
  if (trial_ == nullptr) return report;
  const ModeTrial::Result result = trial_->result();
  report.mode = result.mode;
  report.stream_us = result.stream_us;
  report.graph_us = result.graph_us;
  if (!result.refused.empty()) report.notes.push_back("no graphs any more: " + result.refused);
  return report;
}

}  // namespace penstock::runtime
