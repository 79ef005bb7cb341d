#include "src/analysis/propose_settings.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/rules/words.h"
#include "src/analysis/sim_graph.h"
#include "src/analysis/what_if.h"
#include "src/base/status.h"
#include "src/tune/settings_key.h"

namespace penstock::analysis {
namespace {

constexpr int kSlotsToTry[] = {1, 2, 3, 4, 8, 16};
constexpr double kWorthIt = 0.98, kAsGood = 1.01;

std::map<std::string, size_t> GraphsByName(const Profile& profile) {
  std::map<std::string, size_t> by_name;
  for (size_t g = 0; g < profile.graphs.size(); ++g) {
    const auto [at, is_new] = by_name.try_emplace(profile.graphs[g].name, g);
    if (!is_new && profile.graphs[g].launches > profile.graphs[at->second].launches) at->second = g;
  }
  return by_name;
}

absl::StatusOr<double> RunMicros(const SimulatedGraph& simulated, const Profile::Graph& of, const Changes& changes) {
  const auto changed = WithChanges(simulated, of, changes);
  if (!changed.ok()) return changed.status();
  const auto result = graph::Simulate(changed->graph, changed->options);
  if (!result.ok()) return result.status();
  return result->run_us;
}

// Which choices of a graph may be proposed.
struct Choices {
  bool slots = true, mode = true;
};

bool IsOpen(const Profile& profile, const Profile::Graph& graph, const char* field) {
  const std::string key = tune::SettingsKey{"graph", graph.name, field}.Text();
  return !profile.open || std::find(profile.open->begin(), profile.open->end(), key) != profile.open->end();
}

bool IsOnHostDevices(const Profile& profile, const Profile::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Profile::Node& node) {
    return node.device >= 0 && !profile.devices[static_cast<size_t>(node.device)].is_cuda;
  });
}

Choices ChoicesOf(const Profile& profile, const Profile::Graph& graph, std::vector<std::string>& notes) {
  Choices choices{.slots = IsOpen(profile, graph, "slots"), .mode = IsOpen(profile, graph, "mode")};
  const auto note = [&](std::string_view text) {
    notes.push_back(absl::StrCat("graph '", graph::OneLine(graph.name), "': ", base::Av(text)));
  };
  if (!choices.slots || !choices.mode) {
    note(choices.slots  ? "its mode is not open: the program states it, or PENSTOCK_MODE does"
         : choices.mode ? "the program states its slots"
                        : "neither its slots nor its mode are open: the program states them");
  }
  if (choices.slots && WaitsForStates(profile, graph.executable)) {
    choices.slots = false;
    note("no slots are proposed, since its runs wait for a State, which the simulator does not know");
  }
  if (choices.mode && IsOnHostDevices(profile, graph)) {
    choices.mode = false;
    note("no mode is proposed, since the simulator does not know what host devices take to submit");
  }
  if (const std::string why = WhyNoGraphs(graph.report); choices.mode && !why.empty()) {
    choices.mode = false;
    note("mode graph is not proposed, since there are no graphs: " + why);
  }
  return choices;
}

// The first of them is how the profile's runs were.
absl::StatusOr<std::vector<Proposal::Way>> WaysOf(const Profile& profile, size_t g, const Choices& choices) {
  const Profile::Graph& of = profile.graphs[g];
  const auto simulated = SimulatedGraphOf(profile, g, nullptr);
  if (!simulated.ok()) return simulated.status();
  if (simulated->measured_runs < kFewestRunsOfAPace) {
    return absl::FailedPreconditionError(
        absl::StrCat("fewer than ", kFewestRunsOfAPace, " runs of it can be compared"));
  }
  const bool as_graphs = simulated->options.as_graphs;
  std::vector<Proposal::Way> ways;
  const auto add = [&](int slots, bool graphs, bool as_measured) -> absl::Status {
    Changes changes;
    if (!as_measured) changes = {.slots = slots, .as_graphs = graphs};
    const auto run_us = RunMicros(*simulated, of, changes);
    if (!run_us.ok()) return run_us.status();
    ways.push_back({of.name, slots, graphs ? Mode::kGraph : Mode::kStream, *run_us, as_measured});
    return absl::OkStatus();
  };
  if (absl::Status added = add(simulated->options.slots, as_graphs, true); !added.ok()) return added;
  std::vector<int> slots_to_try{ways[0].slots};
  if (choices.slots) slots_to_try.assign(std::begin(kSlotsToTry), std::end(kSlotsToTry));
  for (const bool graphs : {as_graphs, !as_graphs}) {
    if (graphs != as_graphs && !choices.mode) continue;
    for (const int slots : slots_to_try) {
      if (slots == ways[0].slots && graphs == as_graphs) continue;
      if (absl::Status added = add(slots, graphs, false); !added.ok()) return added;
    }
  }
  return ways;
}

void ProposeOne(std::vector<Proposal::Way>& ways, Settings& settings) {
  double best = ways[0].run_us;
  for (const Proposal::Way& way : ways) best = std::min(best, way.run_us);
  if (best > kWorthIt * ways[0].run_us) return;
  const auto rank = [&](const Proposal::Way& way) {  // lower is better
    const bool good = way.run_us <= kAsGood * best;
    return std::tuple(!good, way.mode != ways[0].mode, way.slots);
  };
  Proposal::Way& chosen =
      *std::min_element(ways.begin(), ways.end(), [&](const auto& x, const auto& y) { return rank(x) < rank(y); });
  chosen.proposed = true;
  Settings::Graph& set = settings.graphs[chosen.graph];
  if (chosen.slots != ways[0].slots) set.slots = chosen.slots;
  if (chosen.mode != ways[0].mode) set.mode = chosen.mode;
}

}  // namespace

Proposal ProposeSettings(const Profile& profile) {
  Proposal proposal;
  for (const auto& [name, g] : GraphsByName(profile)) {
    const Choices choices = ChoicesOf(profile, profile.graphs[g], proposal.notes);
    if (!choices.slots && !choices.mode) continue;
    absl::StatusOr<std::vector<Proposal::Way>> ways = WaysOf(profile, g, choices);
    if (!ways.ok()) {
      proposal.notes.push_back(
          absl::StrCat("graph '", graph::OneLine(name), "' is left out: ", ways.status().message()));
      continue;
    }
    ProposeOne(*ways, proposal.settings);
    proposal.ways.insert(proposal.ways.end(), ways->begin(), ways->end());
  }
  return proposal;
}

}  // namespace penstock::analysis
