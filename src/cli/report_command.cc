// penstock report: a page that shows a profile in a browser.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "src/analysis/doctor.h"
#include "src/base/file.h"
#include "src/cli/command_line.h"
#include "src/cli/findings_json.h"
#include "src/cli/machine_file.h"
#include "src/cli/output_file.h"
#include "src/cli/read_profile.h"
#include "src/cli/report_page.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

struct ReportOptions {
  std::string profile, out = "report.html";
};

// Nothing is written before all of the profile has been read and the page made.
ExitCode WriteReport(const ReportOptions& options, Console& console) {
  if (const absl::Status other = CheckIsNotInput("report", options.out, options.profile); !other.ok()) {
    return console.Fail(other);
  }
  const absl::StatusOr<Profile> profile = ReadProfile(options.profile);
  if (!profile.ok()) return console.Fail(profile.status());
  const absl::StatusOr<KnownMachine> known = MachineFor(*profile, "", console.err);
  if (!known.ok()) return console.Fail(known.status());
  const std::string name = std::filesystem::path(options.profile).filename().string();
  const std::string page = ReportPage(*profile, name, FindingsJson(analysis::Diagnose(*profile, known->get())));
  if (const absl::Status written = base::WriteFile("report", options.out, page); !written.ok()) {
    return console.Fail(written);
  }
  if (console.json) {
    console.out << nlohmann::json{{"report", options.out}, {"bytes", page.size()}, {"spans", profile->spans.size()}}
                << '\n';
  } else {
    console.out << "wrote " << options.out << ", " << CountText(static_cast<int64_t>(profile->spans.size()), "span")
                << "; open it in a browser\n";
  }
  return kDone;
}

}  // namespace

void AddReport(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* const command =
      app.add_subcommand("report", "Writes a profile as one HTML page: timeline, graphs, engines, memory, findings");
  command->add_option("FILE", options->profile, "The profile")->required();
  command->add_option("--out", options->out, "The page to write")->capture_default_str();
  command->callback(
      [&action, options] { action = [options](Console& console) { return WriteReport(*options, console); }; });
}

}  // namespace penstock::cli
