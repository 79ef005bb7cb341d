// penstock plan: the plans of a profile.
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/profile.h"
#include "src/base/file.h"
#include "src/cli/command_line.h"
#include "src/cli/find_graphs.h"
#include "src/cli/output_file.h"
#include "src/cli/plan_picture.h"
#include "src/cli/read_profile.h"

namespace penstock::cli {
namespace {

struct PlanOptions {
  std::string file, graph, out;
  bool dot = false, svg = false;
};

std::string PlansJson(const Profile& profile, const GraphPlaces& places) {
  Profile plans;
  plans.devices = profile.devices;
  plans.length_us = profile.length_us;
  plans.lost_graphs = profile.lost_graphs;
  for (const size_t place : places) plans.graphs.push_back(profile.graphs[place]);
  return plans.Json();
}

ExitCode ShowPlan(const PlanOptions& options, Console& console) {
  if (console.json && (options.dot || options.svg)) {
    return console.Fail(absl::InvalidArgumentError("--json writes the plan in place of --dot and --svg; name one"));
  }
  const absl::StatusOr<Profile> profile = ReadProfile(options.file);
  if (!profile.ok()) return console.Fail(profile.status());
  const absl::StatusOr<GraphPlaces> graphs = GraphsNamed(*profile, options.graph);
  if (!graphs.ok()) return console.Fail(graphs.status());
  std::ostringstream text;
  if (console.json) {
    text << PlansJson(*profile, *graphs);
  } else if (options.dot) {
    text << PlanDot(*profile, *graphs);
  } else if (options.svg) {
    text << PlanSvg(*profile, *graphs);
  } else {
    WritePlanText(*profile, *graphs, text);
  }
  if (options.out.empty()) {
    console.out << text.str();
    return kDone;
  }
  absl::Status written = CheckIsNotInput("plan", options.out, options.file);
  if (written.ok()) written = base::WriteFile("plan", options.out, text.str());
  return written.ok() ? kDone : console.Fail(written);
}

}  // namespace

void AddPlan(CLI::App& app, Action& action) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* const plan = app.add_subcommand("plan", "The plans of a profile: nodes, lanes, edges, bytes");
  plan->add_option("FILE", options->file, "A profile (PENSTOCK_PROFILE=FILE records one)")->required();
  CLI::Option* const dot = plan->add_flag("--dot", options->dot, "Write a Graphviz digraph in place of text");
  plan->add_flag("--svg", options->svg, "Write a picture in place of text")->excludes(dot);
  plan->add_option("--graph", options->graph, "Only the graphs of this name, or the one of this number");
  plan->add_option("--out", options->out, "Write to this file; an old one is replaced as a whole");
  plan->callback([options, &action] { action = [options](Console& console) { return ShowPlan(*options, console); }; });
}

}  // namespace penstock::cli
