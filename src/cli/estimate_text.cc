#include "src/cli/estimate_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/common/message.h"
#include "src/analysis/assumed_machine.h"
#include "src/analysis/rules/words.h"
#include "src/base/status.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

using analysis::Estimate;

constexpr size_t kMostGraphsShown = 20;

std::string LabelledText(const std::string& label, const std::string& text) {
  std::string padded = "  " + label;
  padded.resize(std::max<size_t>(padded.size() + 2, 16), ' ');
  return Wrapped(padded + text, 16) + "\n";
}

std::string MachineLine(const Estimates& all) {
  std::string text = "Before a run: estimates from the bytes and operations that nodes declare";
  if (!all.machine.empty()) absl::StrAppend(&text, ", and from '", graph::OneLine(all.machine), "'");
  text = Wrapped(text + ".", 0) + "\n";
  if (all.assumed.empty()) return text;
  return text +
         Wrapped("Assumed, since no machine file (penstock calibrate, --machine FILE) has it: " +
                     absl::StrJoin(all.assumed, ", ") + ".",
                 2) +
         "\n";
}

std::string MovesText(const Estimate& of) {
  const auto size = [](double bytes) { return SizeText(static_cast<int64_t>(std::min(bytes, 9e18))); };
  std::string text = absl::StrCat(size(of.up_bytes), " to devices, ", size(of.down_bytes), " from them, ",
                                  size(of.within_bytes), " within them");
  if (of.flops > 0) absl::StrAppend(&text, "; computes ", analysis::FlopsText(of.flops));
  return text;
}

// The floors under each other, with a mark at what bounds a run.
std::string FloorsText(const Estimate& of) {
  TextTable table({"<floor of a run", "", "<"});
  for (size_t f = 0; f < of.floors.size(); ++f) {
    table.Add({Shown(of.floors[f].resource), TimeText(of.floors[f].us), f == of.bound ? "bounds it" : ""});
  }
  std::ostringstream text;
  if (!table.empty()) table.Write(text);
  return text.str();
}

std::string MemoryText(const Profile::Graph& graph, const Estimate& of) {
  std::string text = absl::StrCat("a slot takes ", SizeText(of.slot_device_bytes), " on devices and ",
                                  SizeText(of.slot_pinned_bytes), " pinned");
  if (graph.slots > 0 && of.slot_device_bytes > 0) {
    const double all = static_cast<double>(of.slot_device_bytes) * graph.slots;
    absl::StrAppend(&text, "; ", CountText(graph.slots, "slot"), " as compiled ",
                    SizeText(static_cast<int64_t>(std::min(all, 9e18))));
    if (of.device_memory_bytes > 0) {
      absl::StrAppend(&text, " of ", SizeText(of.device_memory_bytes), ", where at most ",
                      CountText(of.most_slots(), "slot"), " fit",
                      of.devices > 1 ? ", if the devices take equal shares" : "");
    }
  }
  return text;
}

std::string RunsText(const Estimate& of) {
  TextTable table({"slots", "a run on streams", "as graphs"});
  for (const Estimate::RunTime& run : of.runs) {
    table.Add({std::to_string(run.slots), TimeText(run.stream_us), TimeText(run.graph_us)});
  }
  std::ostringstream text;
  table.Write(text);
  return text.str();
}

std::string TooSmallText(const Estimate& of) {
  return absl::StrCat("transfers and launches of a run take ", TimeText(of.overhead_us),
                      " one after the other, and all of its work takes ", TimeText(of.host_us),
                      " on the host by the bytes and operations that its nodes declare; put many such items into one "
                      "run, or use a host device (RuntimeOptions::devices = \"host\")");
}

std::string GraphEstimateText(const Profile& profile, const Estimate& of) {
  const Profile::Graph& graph = profile.graphs[of.graph];
  std::string text = absl::StrCat("\ngraph ", graph.executable, " '", Shown(graph.name),
                                  "': ", CountText(static_cast<int64_t>(graph.nodes.size()), "node"), ", ",
                                  CountText(graph.slots, "slot"), "\n");
  text += LabelledText("a run moves", MovesText(of));
  text += FloorsText(of);
  if (of.unpinned_us > 0) {
    text +=
        LabelledText("not pinned", absl::StrCat("host threads copy bound memory that is not pinned for ",
                                                TimeText(of.unpinned_us), " more; see ", "Runtime::MakeHostBuffer"));
  }
  text += LabelledText("memory", MemoryText(graph, of));
  text += LabelledText("expected", absl::StrCat("a run takes ", TimeText(of.latency_us),
                                                " from launch to end; the time per run of many:"));
  text += RunsText(of);
  if (of.is_too_small()) text += LabelledText("too small", "for a GPU: " + TooSmallText(of));
  for (const std::string& note : of.notes) text += Wrapped("  note: " + note, 8) + "\n";
  return text;
}

nlohmann::json GraphEstimateJson(const Profile& profile, const Estimate& of) {
  const Profile::Graph& graph = profile.graphs[of.graph];
  nlohmann::json floors = nlohmann::json::array(), runs = nlohmann::json::array();
  for (const Estimate::Floor& floor : of.floors) floors.push_back({{"resource", floor.resource}, {"us", floor.us}});
  for (const Estimate::RunTime& run : of.runs) {
    runs.push_back({{"slots", run.slots}, {"stream_us", run.stream_us}, {"graph_us", run.graph_us}});
  }
  nlohmann::json json = {{"graph", of.graph},
                         {"graph_name", graph.name},
                         {"up_bytes", of.up_bytes},
                         {"down_bytes", of.down_bytes},
                         {"within_bytes", of.within_bytes},
                         {"flops", of.flops},
                         {"floors", std::move(floors)},
                         {"bound", nullptr},
                         {"unpinned_us", of.unpinned_us},
                         {"slot_device_bytes", of.slot_device_bytes},
                         {"slot_pinned_bytes", of.slot_pinned_bytes},
                         {"device_memory_bytes", of.device_memory_bytes},
                         {"slots", graph.slots},
                         {"most_slots", of.most_slots()},
                         {"runs", std::move(runs)},
                         {"latency_us", of.latency_us},
                         {"overhead_us", of.overhead_us},
                         {"host_us", of.host_us},
                         {"too_small", of.is_too_small()},
                         {"notes", of.notes}};
  if (!of.floors.empty()) json["bound"] = of.floors[of.bound].resource;
  return json;
}

}  // namespace

Estimates EstimateAll(const Profile& profile, const analysis::Machine* known, const std::string& file) {
  analysis::AssumedMachine machine = analysis::AssumeMissing(profile, known);
  Estimates all{.machine = file, .assumed = std::move(machine.assumed), .graphs = {}, .notes = {}};
  const auto graphs = static_cast<int64_t>(profile.graphs.size());
  for (size_t g = 0; g < profile.graphs.size(); ++g) {
    absl::StatusOr<Estimate> estimate =
        analysis::EstimateOf(profile, g, machine.machine, analysis::kMostSimulatedNodes / graphs);
    if (estimate.ok()) {
      all.graphs.push_back(*std::move(estimate));
    } else {
      all.notes.push_back(absl::StrCat(analysis::GraphText(profile.graphs[g]), " has no estimate: ",
                                       graph::OneLine(base::Str(estimate.status().message())), "."));
    }
  }
  return all;
}

std::string TextOf(const Profile& profile, const Estimates& all) {
  std::string text = MachineLine(all);
  for (const std::string& note : all.notes) text += Wrapped("note: " + note, 6) + "\n";
  for (size_t e = 0; e < std::min(kMostGraphsShown, all.graphs.size()); ++e) {
    text += GraphEstimateText(profile, all.graphs[e]);
  }
  if (all.graphs.size() > kMostGraphsShown) {
    absl::StrAppend(&text, "\nand ", all.graphs.size() - kMostGraphsShown, " more graphs (--json)\n");
  }
  return text;
}

nlohmann::json JsonOf(const Profile& profile, const Estimates& all) {
  nlohmann::json graphs = nlohmann::json::array();
  for (const Estimate& of : all.graphs) graphs.push_back(GraphEstimateJson(profile, of));
  return {{"machine", all.machine}, {"assumed", all.assumed}, {"estimates", std::move(graphs)}, {"notes", all.notes}};
}

}  // namespace penstock::cli
