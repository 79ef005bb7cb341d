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
#include "src/analysis/what_if.h"
#include "src/cli/command_line.h"
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
  int32_t runs = 64, slots = 0;
  double upload_gbs = 0, download_gbs = 0;
};

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

absl::StatusOr<Simulations> SimulateAll(const Profile& profile, const SimulateArguments& arguments, std::ostream& err) {
  const auto at = GraphNamed(profile, arguments.graph);
  if (!at.ok()) return at.status();
  Simulations all{.profile = &profile, .graph = &profile.graphs[*at]};
  const auto known = MachineFor(profile, arguments.machine, err);
  if (!known.ok()) return known.status();
  auto simulated = analysis::SimulatedGraphOf(profile, *at, known->get());
  if (!simulated.ok()) return simulated.status();
  simulated->options.runs = arguments.runs;
  const auto changes = ChangesOf(arguments);
  if (!changes.ok()) return changes.status();
  auto changed = analysis::WithChanges(*simulated, *all.graph, *changes);
  if (!changed.ok()) return changed.status();

  auto measured = Predict(*std::move(simulated));
  if (!measured.ok()) return measured.status();
  all.as_measured = *std::move(measured);
  for (int32_t slots = 1; slots <= kMostSlotsShown; ++slots) {
    auto with_slots = analysis::WithChanges(*changed, *all.graph, {.slots = slots});
    if (!with_slots.ok()) return with_slots.status();
    auto prediction = Predict(*std::move(with_slots));
    if (!prediction.ok()) return prediction.status();
    all.slots.push_back(*std::move(prediction));
  }
  if (changes->empty()) return all;
  auto prediction = Predict(*std::move(changed));
  if (!prediction.ok()) return prediction.status();
  all.changed = *std::move(prediction);
  return all;
}

ExitCode RunSimulate(const SimulateArguments& arguments, Console& console) {
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
  command->add_option("--runs", arguments->runs, "How many runs to simulate")->check(CLI::Range(1, 100'000));
  command->add_option("--slots", arguments->slots, "With so many slots")->check(CLI::Range(1, 4096));
  command->add_option("--mode", arguments->mode, "Submitted on streams, or as graphs")
      ->check(CLI::IsMember({"stream", "graph"}));
  command->add_option("--upload-gbs", arguments->upload_gbs, "With uploads of so many GB/s")
      ->check(CLI::Range(1e-3, 1e6));
  command->add_option("--download-gbs", arguments->download_gbs, "With downloads of so many GB/s")
      ->check(CLI::Range(1e-3, 1e6));
  command->add_option("--machine", arguments->machine,
                      "For a graph that has not run: what the machine can do (penstock calibrate makes the file); by "
                      "default the file that it keeps, if there is one");
  command->add_option("--scale", arguments->scale, "NODE=FACTOR: with a node that takes its time times a factor");
  command->callback(
      [arguments, &action] { action = [arguments](Console& console) { return RunSimulate(*arguments, console); }; });
}

}  // namespace penstock::cli
