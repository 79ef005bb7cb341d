#include "src/cli/simulate_text.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/common/message.h"
#include "src/cli/over_devices_text.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

constexpr double kRoughFrom = 0.15;  // of an error

using graph::SimResource;
using graph::SimSpan;
using graph::SimWait;

constexpr size_t kPathLines = 10, kNameColumns = 40;

std::string DeviceName(const Profile& profile, int device) {
  if (device < 0 || device >= static_cast<int>(profile.devices.size())) return "?";
  return graph::OneLine(profile.devices[static_cast<size_t>(device)].name);
}

std::string NameOfUse(const Profile& profile, const graph::SimUse& use) {
  switch (use.resource) {
    case SimResource::kKernel: return DeviceName(profile, use.device) + " kernels";
    case SimResource::kUpload: return DeviceName(profile, use.device) + " uploads";
    case SimResource::kDownload: return DeviceName(profile, use.device) + " downloads";
    case SimResource::kPeer: return DeviceName(profile, use.from) + " to " + DeviceName(profile, use.device);
    case SimResource::kWorker: return "host workers";
    case SimResource::kLaunch: return "launches";
    case SimResource::kNothing: break;
  }
  return "?";
}

const char* WhyOf(SimWait wait) {
  switch (wait) {
    case SimWait::kNothing: return "";
    case SimWait::kApplication: return "the application";
    case SimWait::kSubmission: return "submission";
    case SimWait::kPredecessor: return "what it follows";
    case SimWait::kLane: return "its lane";
    case SimWait::kState: return "a State";
    case SimWait::kResource: return "its resource";
    case SimWait::kSlot: return "a slot";
  }
  return "?";
}

double ErrorOf(const Prediction& p) { return p.result.run_us / p.simulated.run_us - 1; }

std::string FitName(std::string_view text) { return Shown(text, kNameColumns); }

double ShareOf(const graph::SimUse& use, const graph::SimResult& result) {
  return result.makespan_us > 0 ? use.busy_us / (result.makespan_us * use.places) : 0;
}

// A part of the critical path: what spans of a node did, and what waited before them.
struct PathPart {
  std::string node;
  SimWait wait{};
  double work_us = 0, wait_us = 0;
};

std::vector<PathPart> PathOf(const Simulations& all) {
  const graph::SimResult& result = all.shown().result;
  std::map<std::pair<int32_t, SimWait>, PathPart> parts;
  double until = 0;
  for (const int32_t s : result.critical_path) {
    const SimSpan& span = result.spans[static_cast<size_t>(s)];
    const bool submits = span.node < 0;  // whatever it waits for
    PathPart& part = parts[{span.node, submits ? SimWait{} : span.wait}];
    part.node = submits ? "(submission)" : graph::OneLine(all.graph->nodes[static_cast<size_t>(span.node)].name);
    part.wait = submits ? SimWait{} : span.wait;
    part.wait_us += std::max(0.0, span.begin_us - until);
    part.work_us += std::max(0.0, span.end_us - std::max(span.begin_us, until));
    until = std::max(until, span.end_us);
  }
  std::vector<PathPart> sorted;
  for (auto& [key, part] : parts) sorted.push_back(std::move(part));
  std::sort(sorted.begin(), sorted.end(), [](const PathPart& x, const PathPart& y) {
    return std::tuple(-x.work_us - x.wait_us, x.node, x.wait) < std::tuple(-y.work_us - y.wait_us, y.node, y.wait);
  });
  return sorted;
}

double PerSecond(double run_us) { return run_us > 0 ? 1e6 / run_us : 0; }

std::string SlotsAndModeText(const graph::SimOptions& options) {
  return absl::StrFormat("%d slot%s, %s", options.slots, options.slots == 1 ? "" : "s",
                         options.as_graphs ? "graph mode" : "stream mode");
}

void WriteMeasured(const Simulations& all, std::string& to) {
  const Prediction& p = all.as_measured;
  absl::StrAppendFormat(&to, "%-18s%14s%14s%10s\n", "", "measured us", "predicted us", "error");
  const auto row = [&](const char* name, double measured, double predicted) {
    if (measured > 0) {
      absl::StrAppendFormat(&to, "%-18s%14.1f%14.1f%+9.1f%%\n", name, measured, predicted,
                            (predicted / measured - 1) * 100);
    } else {
      absl::StrAppendFormat(&to, "%-18s%14s%14.1f%10s\n", name, "unknown", predicted, "");
    }
  };
  row("time per run", p.simulated.run_us, p.result.run_us);
  row("latency of a run", p.simulated.latency_us, analysis::LatencyMicros(p.result));
}

// How far the predictions are to be trusted.
std::vector<std::string> NotesOn(const Simulations& all) {
  std::vector<std::string> notes;
  const analysis::SimulatedGraph& simulated = all.as_measured.simulated;
  if (simulated.run_us > 0 && simulated.measured_runs < analysis::kFewestRunsOfAPace) {
    notes.push_back(absl::StrCat("the pace of ", analysis::CountText(simulated.measured_runs, "run"),
                                 " says little; record a program that runs the graph more often"));
  }
  if (simulated.run_us > 0 && std::abs(ErrorOf(all.as_measured)) > kRoughFrom) {
    notes.emplace_back("the simulation of the runs as they were is far off; what it says of changes is rough too");
  }
  if (analysis::WaitsForStates(*all.profile, all.graph->executable)) {
    notes.emplace_back(
        "runs of this graph waited for a State, which the simulation does not know: more slots may help "
        "less than it says");
  }
  return notes;
}

void WriteChanged(const Simulations& all, std::string& to) {
  if (!all.changed) return;
  const auto us = [](const Prediction& p) { return p.result.run_us; };
  absl::StrAppendFormat(&to, "\nchanged: %s\n%-18s%14s%14s%10s\n", SlotsAndModeText(all.changed->simulated.options), "",
                        "as it is us", "changed us", "as fast");
  const auto row = [&](const char* name, double before, double after) {
    absl::StrAppendFormat(&to, "%-18s%14.1f%14.1f%9.2fx\n", name, before, after, after > 0 ? before / after : 0);
  };
  row("time per run", us(all.as_measured), us(*all.changed));
  row("latency of a run", analysis::LatencyMicros(all.as_measured.result),
      analysis::LatencyMicros(all.changed->result));
}

void WriteBusy(const Simulations& all, std::string& to) {
  to += "\nbusy\n";
  for (const graph::SimUse& use : all.shown().result.uses) {
    const std::string places = use.places > 1 ? absl::StrFormat("  of %d at a time", use.places) : "";
    absl::StrAppendFormat(&to, "  %-40s%6.1f%%%s\n", FitName(NameOfUse(*all.profile, use)),
                          ShareOf(use, all.shown().result) * 100, places);
  }
}

void WritePath(const Simulations& all, std::string& to) {
  const double whole = all.shown().result.makespan_us;
  to += "\ncritical path of all runs: work, and waiting before it\n";
  size_t lines = 0;
  for (const PathPart& part : PathOf(all)) {
    if (lines++ == kPathLines || whole <= 0) break;
    absl::StrAppendFormat(&to, "  %-40s%6.1f%%%6.1f%%", FitName(part.node), part.work_us / whole * 100,
                          part.wait_us / whole * 100);
    absl::StrAppend(&to, part.wait == SimWait::kNothing ? "" : "  after ", WhyOf(part.wait), "\n");
  }
}

void WriteSlots(const Simulations& all, std::string& to) {
  if (all.slots.empty()) return;
  absl::StrAppendFormat(&to, "\n%5s%18s%14s%16s%20s\n", "slots", "time per run us", "runs a s", "latency us",
                        "device memory MiB");
  for (const Prediction& p : all.slots) {
    double bytes = 0;
    for (const graph::SimPeak& peak : p.result.peaks) bytes += peak.device >= 0 ? static_cast<double>(peak.bytes) : 0;
    absl::StrAppendFormat(&to, "%5d%18.1f%14.1f%16.1f%20.1f\n", p.simulated.options.slots, p.result.run_us,
                          PerSecond(p.result.run_us), analysis::LatencyMicros(p.result), bytes / (1 << 20));
  }
}

nlohmann::json JsonOfPrediction(const Simulations& all, const Prediction& p) {
  nlohmann::json busy = nlohmann::json::array();
  for (const graph::SimUse& use : p.result.uses) {
    busy.push_back(
        {{"resource", NameOfUse(*all.profile, use)}, {"places", use.places}, {"share", ShareOf(use, p.result)}});
  }
  nlohmann::json peaks = nlohmann::json::array();
  for (const graph::SimPeak& peak : p.result.peaks) peaks.push_back({{"device", peak.device}, {"bytes", peak.bytes}});
  return {{"slots", p.simulated.options.slots},
          {"mode", p.simulated.options.as_graphs ? "graph" : "stream"},
          {"run_us", p.result.run_us},
          {"runs_per_second", PerSecond(p.result.run_us)},
          {"latency_us", analysis::LatencyMicros(p.result)},
          {"busy", busy},
          {"memory_peaks", peaks},
          {"events", p.result.events}};
}

}  // namespace

std::string TextOf(const Simulations& all) {
  const analysis::SimulatedGraph& simulated = all.as_measured.simulated;
  std::string to =
      absl::StrFormat("graph '%s', executable %d: %d runs measured; %s\n\n", FitName(graph::OneLine(all.graph->name)),
                      all.graph->executable, simulated.measured_runs, SlotsAndModeText(simulated.options));
  WriteMeasured(all, to);
  for (const std::string& note : NotesOn(all)) absl::StrAppend(&to, Wrapped("note: " + note, 6), "\n");
  WriteChanged(all, to);
  WriteBusy(all, to);
  WritePath(all, to);
  WriteSlots(all, to);
  if (all.devices) to += TextOf(*all.devices);
  return to;
}

nlohmann::json JsonOf(const Simulations& all) {
  const analysis::SimulatedGraph& simulated = all.as_measured.simulated;
  nlohmann::json json{{"graph", all.graph->name},
                      {"executable", all.graph->executable},
                      {"measured_runs", simulated.measured_runs},
                      {"measured_run_us", simulated.run_us},
                      {"measured_latency_us", simulated.latency_us},
                      {"predicted", JsonOfPrediction(all, all.as_measured)}};
  if (simulated.run_us > 0) json["error"] = ErrorOf(all.as_measured);
  json["notes"] = NotesOn(all);
  if (all.changed) json["changed"] = JsonOfPrediction(all, *all.changed);
  json["critical_path"] = nlohmann::json::array();
  for (const PathPart& part : PathOf(all)) {
    nlohmann::json step{{"node", part.node}, {"work_us", part.work_us}, {"wait_us", part.wait_us}};
    if (part.wait != SimWait::kNothing) step["after"] = WhyOf(part.wait);
    json["critical_path"].push_back(std::move(step));
  }
  json["with_slots"] = nlohmann::json::array();
  for (const Prediction& p : all.slots) json["with_slots"].push_back(JsonOfPrediction(all, p));
  if (all.devices) json["over_devices"] = JsonOf(*all.devices);
  return json;
}

}  // namespace penstock::cli
