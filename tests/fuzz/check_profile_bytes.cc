#include "tests/fuzz/check_profile_bytes.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "graph/simulate/simulate.h"
#include "src/analysis/doctor.h"
#include "src/analysis/over_devices.h"
#include "src/analysis/runs.h"
#include "src/analysis/sim_graph.h"
#include "src/analysis/summary.h"
#include "src/cli/findings_json.h"
#include "src/cli/over_devices_text.h"
#include "src/cli/plan_picture.h"
#include "src/cli/read_profile.h"
#include "src/cli/report_page.h"
#include "src/cli/trace_json.h"
#include "src/cli/trace_text.h"
#include "tests/support/status.h"

namespace penstock::fuzz {
namespace {

bool HasControls(const std::string& text, bool lines_allowed) {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    return (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) && !(lines_allowed && c == '\n');
  });
}

std::string ProblemOfRefusal(const absl::Status& refused) {
  const std::string text = Text(refused);
  if (!text.starts_with("profile 'fuzzed'")) return "a refusal does not name the profile: " + text;
  if (HasControls(text, false)) return "a refusal has control characters";
  if (text.size() > 500) return "a refusal is long: " + text;
  return "";
}

std::string ProblemOfSimulation(const Profile& profile, size_t graph) {
  auto simulated = analysis::SimulatedGraphOf(profile, graph, nullptr);
  if (!simulated.ok()) return "";
  simulated->options.runs = 3;
  const absl::Status refused = graph::Simulate(simulated->graph, simulated->options).status();
  if (HasControls(Text(refused), false)) return "a refused simulation has control characters";
  const Profile::Graph& of = profile.graphs[graph];
  const auto links = analysis::PeerLinksOf(profile, of, nullptr, /*peer_gbs=*/100);
  if (HasControls(Text(links.status()), false)) return "a graph that is not spread has control characters";
  if (!links.ok()) return "";
  const auto over = analysis::SimulateOverDevices(*simulated, of, *links, {1, 3});
  if (HasControls(Text(over.status()), false)) return "a graph that cannot be spread has control characters";
  if (!over.ok()) return "";
  return HasControls(cli::TextOf(*over), true) ? "a graph over devices is shown with control characters" : "";
}

std::string ProblemOfViews(const Profile& profile) {
  cli::GraphPlaces all;
  for (size_t g = 0; g < profile.graphs.size(); ++g) all.push_back(g);
  std::ostringstream text;
  cli::WritePlanText(profile, all, text);
  const std::vector<analysis::GraphRun> runs = analysis::RunsOf(profile);
  const analysis::Summary summary = analysis::SummaryOf(profile, runs);
  cli::WriteTraceText(profile, runs, summary, 3, text);
  text << cli::PlanDot(profile, all) << cli::PlanSvg(profile, all);
  if (HasControls(text.str(), true)) return "what is shown has control characters";
  const analysis::Diagnosis diagnosis = analysis::Diagnose(profile, nullptr);
  cli::ReportPage(profile, "fuzzed", cli::FindingsJson(diagnosis));
  for (const size_t g : all) {
    if (std::string problem = ProblemOfSimulation(profile, g); !problem.empty()) return problem;
  }
  return cli::TraceJson(profile, runs, summary, 3).dump().empty() ? "no JSON" : "";
}

}  // namespace

ProfileOutcome CheckProfileBytes(std::string_view bytes) {
  const auto read = cli::ParseProfile(bytes, "fuzzed");
  if (!read.ok()) return {ProblemOfRefusal(read.status()), false};
  const std::string written = read->Json();
  const auto again = cli::ParseProfile(written, "fuzzed");
  if (!again.ok()) return {"what was read is refused when it has been written: " + Text(again.status()), true};
  if (again->Json() != written) return {"what was read and written is another profile", true};
  return {ProblemOfViews(*read), true};
}

}  // namespace penstock::fuzz
