// How an executable's nodes reach their device: which mode was asked for, why it cannot be, what no graph takes.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/common/message.h"
#include "graph/plan/graph_schedule.h"
#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

using graph::PlanKind;
using graph::PlanNode;

absl::StatusOr<Mode> ExecutableCore::WantedMode(const CompileOptions& options) const {
  Mode wanted = options.mode;
  if (const std::optional<std::string> name = base::WordOf("PENSTOCK_MODE")) {
    if (name != "stream" && name != "graph" && name != "auto") {
      return absl::InvalidArgumentError(graph::Prefix(*model_) + ": PENSTOCK_MODE is '" +
                                        graph::OneLine(base::Variable("PENSTOCK_MODE").value_or("")) +
                                        "'; it must be stream, graph or auto");
    }
    wanted = name == "graph" ? Mode::kGraph : name == "stream" ? Mode::kStream : Mode::kAuto;
  }
  return wanted;
}

void ExecutableCore::ChooseMode(Mode wanted) {
  if (wanted == Mode::kStream) return;
  std::vector<std::string>& notes = submission_report_.notes;
  const auto several = [&](const graph::Lane& lane) { return lane.device != plan_.lanes[0].device; };
  if (std::any_of(plan_.lanes.begin(), plan_.lanes.end(), several)) {
    notes.push_back("no graphs: the plan is on several devices, and a graph stays on one");
  }
  if (trace_ != nullptr && wanted == Mode::kAuto) {
    notes.push_back("no graphs: runs with a trace are no fair trial; with Mode::kGraph it shows the nodes of replays");
  }
  if (runtime_->synchronous())
    notes.push_back("no graphs: RuntimeOptions::synchronous, or PENSTOCK_SYNC, has each node waited for");
  if (plan_.lanes.empty() && wanted == Mode::kAuto) notes.push_back("no graphs: nothing runs on a device");
  if (notes.empty()) submission_report_.mode = wanted;
}

// Under kAuto graphs are no condition: a Launch node that cannot be captured is in none, for which everything is made
// once more (false), and where they cannot be made at all there are none. The submission_report says so.
absl::StatusOr<bool> ExecutableCore::MakeReplays(int count) {
  if (submission_report_.mode == Mode::kStream) return true;
  for (size_t i = 0; i < slots_.size(); ++i) {
    int32_t node = -1;
    const bool upload = submission_report_.mode == Mode::kGraph;  // which waits for the device
    const absl::Status made = runtime_->WithMemory([&] { return slots_[i]->MakeReplay(upload, node); });
    if (made.ok()) continue;
    if (submission_report_.mode == Mode::kGraph || base::IsFatal(made))
      return DescribeSlotError(static_cast<int>(i), count, made);
    if (node >= 0) {
      uncaptured_[static_cast<size_t>(node)] = base::Str(made.message());
      return false;
    }
    submission_report_.mode = Mode::kStream;
    submission_report_.notes.push_back("no graphs: " + base::Str(made.message()));
    for (const auto& slot : slots_) slot->DropGraphs();
    break;
  }
  if (submission_report_.mode == Mode::kAuto) trial_ = std::make_unique<ModeTrial>(count);
  for (const auto& slot : slots_) {
    slot->Use(submission_report_.mode);
    if (submission_report_.mode == Mode::kGraph && slot->replay != nullptr) slot->replay->OnlyGraphs();
  }
  return true;
}

// Launch nodes with arguments that they were not captured with. Under kAuto the run needs no graphs, and later ones do
// without where these could not be captured.
absl::Status ExecutableCore::PrepareGraphs(Slot& slot) {
  if (slot.replay == nullptr || slot.schedule != &program_.graphs || program_.replay.launch.empty()) return {};
  const driver::CurrentDevice current(*driver_, local_device_of_lane(program_.replay.lane));
  int32_t node = -1;
  const absl::StatusOr<bool> captured = slot.replay->Capture(node);
  if (captured.ok()) return absl::OkStatus();  // or tried again before the first graph
  absl::Status why = Describe(base::IsFatal(captured.status()) ? -1 : node, captured.status());
  if (trial_ == nullptr || base::IsFatal(why)) return why;
  trial_->Refuse(base::Str(why.message()));
  slot.trial = -1;
  slot.Use(Mode::kStream);
  slot.DropGraphs();
  return absl::OkStatus();
}

void ExecutableCore::BeginTrial(Slot& slot) {
  if (trial_ == nullptr) return;
  const ModeTrial::Turn turn = trial_->Next();
  slot.trial = turn.number;
  slot.Use(turn.mode);
  if (turn.number >= 0) slot.launched = std::chrono::steady_clock::now();
  if (!trial_->decided()) return;
  if (turn.mode == Mode::kStream) slot.DropGraphs();
  if (turn.mode == Mode::kGraph) slot.replay->OnlyGraphs();
}

void ExecutableCore::EndTrial(Slot& slot) {
  if (slot.trial < 0) return;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - slot.launched;
  if (!slot.fault.failed()) trial_->Ended(slot.trial, took.count());
  slot.trial = -1;
}

// The first run is left out, which makes much for the first time.
void ExecutableCore::NoteTime(const Slot& slot) {
  if (!measures_ || slot.fault.failed()) return;
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - slot.launched;
  const int64_t before = measured_.fetch_add(1, std::memory_order_relaxed);
  if (before == 0) return;
  const double mean = mean_ns();
  mean_ns_.store(before == 1 ? took.count() : mean + (took.count() - mean) / 8, std::memory_order_relaxed);
}

std::vector<bool> ExecutableCore::RefusedNodes() {
  std::vector<bool> refused(plan_.nodes.size());
  for (size_t n = 0; n < refused.size(); ++n) {
    const bool peer = plan_.nodes[n].kind == PlanKind::kPeerCopy;
    refused[n] = peer || !uncaptured_[n].empty();
    if (!refused[n]) continue;
    const std::string name = "node '" + graph::OneLine(plan_.nodes[n].name) + "' is in no graph: ";
    submission_report_.notes.push_back(name +
                                       (peer ? "it copies between devices, and a graph stays on one" : uncaptured_[n]));
  }
  return refused;
}

graph::GraphSchedule ExecutableCore::ScheduleGraphs() {
  graph::GraphSchedule schedule = graph::MakeGraphSchedule(plan_, RefusedNodes());
  const bool writes =
      std::any_of(plan_.states.begin(), plan_.states.end(), [](const auto& use) { return use.written; });
  if (writes || !plan_.external_deps.empty()) {
    submission_report_.notes.push_back(
        "States that are written, and device memory that is bound, part graphs at their first and last touches: " +
        std::to_string(schedule.graphs.size()) + " graphs a slot");
  }
  return schedule;
}

SubmissionReport ExecutableCore::submission_report() const {
  SubmissionReport submission_report = submission_report_;
  for (const auto& slot : slots_) {
    if (slot->graphs != nullptr) slot->graphs->AddTo(submission_report);
  }
  if (trial_ == nullptr) return submission_report;
  const ModeTrial::Result result = trial_->result();
  submission_report.mode = result.mode;
  submission_report.stream_us = result.stream_us;
  submission_report.graph_us = result.graph_us;
  if (!result.refused.empty()) submission_report.notes.push_back("no graphs any more: " + result.refused);
  return submission_report;
}

}  // namespace penstock::runtime
