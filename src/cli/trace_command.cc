// penstock trace: where the time of a profile went.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "src/analysis/critical_path.h"
#include "src/analysis/runs.h"
#include "src/analysis/summary.h"
#include "src/base/file.h"
#include "src/cli/command_line.h"
#include "src/cli/output_file.h"
#include "src/cli/read_profile.h"
#include "src/cli/trace_json.h"
#include "src/cli/trace_text.h"

namespace penstock::cli {
namespace {

struct TraceOptions {
  std::string file, chrome;
  size_t top = 10;
};

ExitCode ShowTrace(const TraceOptions& options, Console& console) {
  const absl::StatusOr<Profile> profile = ReadProfile(options.file);
  if (!profile.ok()) return console.Fail(profile.status());
  if (!options.chrome.empty()) {
    absl::Status written = CheckIsNotInput("trace", options.chrome, options.file);
    if (written.ok()) written = base::WriteFile("trace", options.chrome, profile->ChromeJson());
    if (!written.ok()) return console.Fail(written);
  }
  const std::vector<analysis::GraphRun> runs = analysis::RunsOf(*profile);
  const analysis::Summary summary = analysis::SummaryOf(*profile, runs);
  if (console.json) {
    console.out << TraceJson(*profile, runs, summary, options.top) << '\n';
  } else {
    WriteTraceText(*profile, runs, summary, options.top, console.out);
  }
  return kDone;
}

}  // namespace

void AddTrace(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TraceOptions>();
  CLI::App* const trace =
      app.add_subcommand("trace", "Where the time of a profile went: engines, nodes, waits, critical paths");
  trace->add_option("FILE", options->file, "A profile (PENSTOCK_PROFILE=FILE records one)")->required();
  trace->add_option("--top", options->top, "At most so many nodes, waits and graphs, and steps of a path")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  trace->add_option("--chrome", options->chrome, "Also write the spans for chrome://tracing and Perfetto to this file");
  trace->callback(
      [options, &action] { action = [options](Console& console) { return ShowTrace(*options, console); }; });
}

}  // namespace penstock::cli
