// penstock simulate: how long a profile's runs would take, as they are and with changes.
#include <charconv>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/profile.h"
#include "penstock/status_macros.h"
#include "src/analysis/over_devices.h"
#include "src/analysis/what_if.h"
#include "src/cli/command_line.h"
#include "src/cli/device_list.h"
#include "src/cli/find_graphs.h"
#include "src/cli/machine_file.h"
#include "src/cli/read_profile.h"
#include "src/cli/simulate_text.h"

namespace penstock::cli {
namespace {

constexpr int32_t kMostSlotsShown = 4;

struct SimulateArguments {
  std::string file, graph, mode, machine;  // machine: empty: the one that is kept
  std::vector<std::string> scale;
  std::string devices;  // empty: as it is
  int32_t runs = 0, slots = 0;  // 0: not said
  double upload_gbs = 0, download_gbs = 0;
  double peer_gbs = 0, crossing_us = -1;  // 0 and -1: not said
};

constexpr int32_t kUsualRuns = 64;

absl::Status WrongArgument(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// "NODE=FACTOR": names may have a '=' too.
absl::StatusOr<std::pair<std::string, double>> ParseScale(const std::string& text) {
  const size_t at = text.rfind('=');
  double factor = -1;
  if (at != std::string::npos) {
    const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), factor);
    if (error != std::errc() || end != text.data() + text.size()) factor = -1;
  }
  if (!std::isfinite(factor) || factor <= 0) {
    return WrongArgument(absl::StrCat("--scale ", graph::OneLine(text), " is not NODE=FACTOR with a factor above 0"));
  }
  return std::pair(text.substr(0, at), factor);
}

absl::StatusOr<analysis::Changes> ChangesOf(const SimulateArguments& arguments) {
  analysis::Changes changes{.upload_gbs = arguments.upload_gbs, .download_gbs = arguments.download_gbs};
  if (arguments.slots > 0) changes.slots = arguments.slots;
  if (!arguments.mode.empty()) changes.as_graphs = arguments.mode == "graph";
  for (const std::string& text : arguments.scale) {
    auto scale = ParseScale(text);
    if (!scale.ok()) return scale.status();
    changes.scale.push_back(*std::move(scale));
  }
  return changes;
}

absl::StatusOr<Prediction> Predict(analysis::SimulatedGraph simulated) {
  auto result = graph::Simulate(simulated.graph, simulated.options);
  if (!result.ok()) return result.status();
  return Prediction{std::move(simulated), *std::move(result)};
}

absl::Status AddSlots(const analysis::SimulatedGraph& changed, Simulations& all) {
  for (int32_t slots = 1; slots <= kMostSlotsShown; ++slots) {
    PENSTOCK_ASSIGN_OR_RETURN(analysis::SimulatedGraph simulated,
                              analysis::WithChanges(changed, *all.graph, {.slots = slots}));
    PENSTOCK_ASSIGN_OR_RETURN(Prediction prediction, Predict(std::move(simulated)));
    all.slots.push_back(std::move(prediction));
  }
  return absl::OkStatus();
}

absl::Status AddDevices(const analysis::SimulatedGraph& changed, const SimulateArguments& arguments,
                        const analysis::Machine* machine, Simulations& all) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<int32_t> counts, ParseDeviceList(arguments.devices));
  PENSTOCK_ASSIGN_OR_RETURN(analysis::PeerLinks links,
                            analysis::PeerLinksOf(*all.profile, *all.graph, machine, arguments.peer_gbs));
  if (arguments.crossing_us >= 0) links.crossing_us = arguments.crossing_us;
  PENSTOCK_ASSIGN_OR_RETURN(all.devices, analysis::SimulateOverDevices(changed, *all.graph, std::move(links), counts));
  return absl::OkStatus();
}

absl::StatusOr<Simulations> SimulateAll(const Profile& profile, const SimulateArguments& arguments, std::ostream& err) {
  const auto at = GraphNamed(profile, arguments.graph);
  if (!at.ok()) return at.status();
  Simulations all{.profile = &profile, .graph = &profile.graphs[*at]};
  const auto known = MachineFor(profile, arguments.machine, err);
  if (!known.ok()) return known.status();
  auto simulated = analysis::SimulatedGraphOf(profile, *at, known->get());
  if (!simulated.ok()) return simulated.status();
  const size_t nodes = all.graph->nodes.size();
  simulated->options.runs = arguments.devices.empty() ? kUsualRuns : analysis::RunsOverDevices(nodes);
  if (arguments.runs > 0) simulated->options.runs = arguments.runs;
  const auto changes = ChangesOf(arguments);
  if (!changes.ok()) return changes.status();
  auto changed = analysis::WithChanges(*simulated, *all.graph, *changes);
  if (!changed.ok()) return changed.status();

  auto measured = Predict(*std::move(simulated));
  if (!measured.ok()) return measured.status();
  all.as_measured = *std::move(measured);
  PENSTOCK_RETURN_IF_ERROR(arguments.devices.empty() ? AddSlots(*changed, all)
                                                     : AddDevices(*changed, arguments, known->get(), all));
  if (changes->empty()) return all;
  auto prediction = Predict(*std::move(changed));
  if (!prediction.ok()) return prediction.status();
  all.changed = *std::move(prediction);
  return all;
}

ExitCode RunSimulate(const SimulateArguments& arguments, Console& console) {
  if (arguments.devices.empty() && (arguments.peer_gbs > 0 || arguments.crossing_us >= 0)) {
    return console.Fail(WrongArgument("--peer-gbs and --crossing-us count with --devices only; say --devices too"));
  }
  const auto profile = ReadProfile(arguments.file);
  if (!profile.ok()) return console.Fail(profile.status());
  const auto all = SimulateAll(*profile, arguments, console.err);
  if (!all.ok()) return console.Fail(all.status());
  if (console.json) {
    console.out << JsonOf(*all).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    console.out << TextOf(*all);
  }
  return kDone;
}

}  // namespace

void AddSimulate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("simulate", "How long the runs of a profile would take, with changes");
  const auto arguments = std::make_shared<SimulateArguments>();
  command->add_option("FILE", arguments->file, "The profile")->required();
  command->add_option("--graph", arguments->graph,
                      "A graph by its name or its executable's number; else the one launched most often");
  command
      ->add_option("--runs", arguments->runs,
                   "How many runs to simulate; else 64, or fewer of large graphs with --devices")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--slots", arguments->slots, "With so many slots")->check(CLI::Range(1, 4096));
  command->add_option("--mode", arguments->mode, "Submitted on streams, or as graphs")
      ->check(CLI::IsMember({"stream", "graph"}));
  command->add_option("--upload-gbs", arguments->upload_gbs, "With uploads of so many GB/s")
      ->check(CLI::Range(1e-3, 1e6));
  command->add_option("--download-gbs", arguments->download_gbs, "With downloads of so many GB/s")
      ->check(CLI::Range(1e-3, 1e6));
  command->add_option(
      "--machine", arguments->machine,
      "For a graph that has not run, and for --devices: what the machine can do (penstock calibrate makes "
      "the file); by default the file that it keeps, if there is one");
  command->add_option(
      "--devices", arguments->devices,
      "1,2,4 or 1..1024: spread over so many devices that are like the graph's, by affinity and by HEFT; "
      "a node takes the fewer of the bytes that the one before it writes and it reads");
  command
      ->add_option("--peer-gbs", arguments->peer_gbs,
                   "With --devices: copies between devices at so many GB/s, instead of what the machine file says")
      ->check(CLI::Range(1e-3, 1e6));
  command
      ->add_option("--crossing-us", arguments->crossing_us,
                   "With --devices: from the end of a node until one on another device may begin; else 6")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--scale", arguments->scale, "NODE=FACTOR: with a node that takes its time times a factor");
  command->callback(
      [arguments, &action] { action = [arguments](Console& console) { return RunSimulate(*arguments, console); }; });
}

}  // namespace penstock::cli
