// penstock tune: finds the settings with which a program is fastest, and writes them to a file.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/analysis/propose_settings.h"
#include "src/base/file.h"
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/cli/command_line.h"
#include "src/cli/measure/progress.h"
#include "src/cli/output_file.h"
#include "src/cli/read_profile.h"
#include "src/cli/tune_program.h"
#include "src/cli/tune_text.h"
#include "src/tune/find_settings.h"
#include "src/tune/knobs.h"

namespace penstock::cli {
namespace {

struct TuneArguments {
  std::string file, out = "penstock.settings", from, measure;  // measure: empty: runs
  std::vector<std::string> knobs;
  double budget_s = 120;
  bool only_rounds = false;  // an option was given that a profile has no use for
  bool exec = false, force = false;
};

// Before anything runs, and again before the file is written: tuning takes minutes.
absl::Status CheckOut(const TuneArguments& arguments) {
  if (!arguments.force && std::filesystem::exists(std::filesystem::symlink_status(arguments.out))) {
    return absl::AlreadyExistsError(absl::StrCat("settings file '", graph::OneLine(arguments.out),
                                                 "' is there already; name another with --out, or add --force"));
  }
  return base::CheckWritable("settings file", arguments.out);
}

// Prints them first, so that they are not lost if the file cannot be written.
absl::Status WriteSettings(const Settings& settings, const TuneArguments& arguments, Console& console) {
  if (settings == Settings()) {
    if (!console.json) console.out << "Nothing to write: no setting was found that is better than none.\n";
    return absl::OkStatus();
  }
  if (!console.json) console.out << "\n" << settings.Text() << std::flush;
  PENSTOCK_RETURN_IF_ERROR(CheckOut(arguments));
  PENSTOCK_RETURN_IF_ERROR(settings.Write(arguments.out));
  if (console.json) return absl::OkStatus();
  console.out << "\nWritten to " << graph::OneLine(arguments.out)
              << ". Programs take it with PENSTOCK_SETTINGS=" << graph::OneLine(arguments.out)
              << ",\nor as RuntimeOptions::settings with Settings::Read.\n";
  return absl::OkStatus();
}

void WriteJson(const nlohmann::json& json, Console& console) {
  console.out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

absl::Status TuneByProfile(const TuneArguments& arguments, Console& console) {
  PENSTOCK_ASSIGN_OR_RETURN(const Profile profile, ReadProfile(arguments.file));
  const analysis::Proposal proposal = analysis::ProposeSettings(profile);
  if (console.json) WriteJson(JsonOfProposal(proposal), console);
  else WriteProposal(proposal, console.out);
  return WriteSettings(proposal.settings, arguments, console);
}

absl::Status CheckKnobs(const std::vector<tune::Knob>& knobs, const Measurement& first,
                        const TuneArguments& arguments) {
  if (!knobs.empty()) return absl::OkStatus();
  if (arguments.knobs.empty()) {
    return absl::FailedPreconditionError(
        "the program leaves no choice open: it states slots, mode and threads itself; penstock/settings.h says which "
        "values leave them open");
  }
  std::string open;
  for (const std::string& key : first.open) absl::StrAppend(&open, open.empty() ? "" : ", ", graph::OneLine(key));
  return absl::InvalidArgumentError(absl::StrCat("--knob names nothing that the program leaves open: ", open));
}

absl::Status TuneByRounds(const TuneArguments& arguments, Console& console) {
  const RoundCost cost = arguments.measure == "wall" ? RoundCost::kWall : RoundCost::kRuns;
  const auto begin = std::chrono::steady_clock::now();
  const auto now = [begin] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Settings from;
  if (!arguments.from.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(from, Settings::Read(arguments.from));
  }
  const ProgramSignals signals;
  PENSTOCK_ASSIGN_OR_RETURN(ProgramRounds rounds, ProgramRounds::Make(signals, console.program, cost));
  PENSTOCK_ASSIGN_OR_RETURN(const Measurement first, rounds.First(from));
  if (rounds.several() && cost == RoundCost::kRuns) {
    console.err << "penstock: the program made several runtimes; the first one counts, or all with --measure wall\n";
  }
  TuneResult result;
  {
    measure::Progress line(console);
    const tune::Search search{.first = from,
                              .knobs = tune::KnobsOf(first.open, arguments.knobs, base::UsableProcessors()),
                              .budget_s = std::max(1e-3, arguments.budget_s - now()),
                              .measure = [&](const Settings& settings) { return rounds.Run(settings); },
                              .now = now,
                              .progress =
                                  [&](const Progress& at) {
                                    line.Step(absl::StrCat(at.done, " % of the budget: ", graph::OneLine(at.what)));
                                    return true;
                                  }};
    PENSTOCK_RETURN_IF_ERROR(CheckKnobs(search.knobs, first, arguments));
    PENSTOCK_ASSIGN_OR_RETURN(result, tune::FindSettings(search));
  }
  ++result.rounds;  // the first one
  if (console.json) WriteJson(JsonOfTune(result), console);
  else WriteTuneResult(result, cost == RoundCost::kWall ? "a round" : "a run", console.out);
  return WriteSettings(result.settings, arguments, console);
}

absl::Status RunTune(const TuneArguments& arguments, Console& console) {
  if (arguments.exec == !arguments.file.empty()) {
    return absl::InvalidArgumentError("tune takes a profile's FILE, or --exec and a program");
  }
  if (!arguments.exec && arguments.only_rounds) {
    return absl::InvalidArgumentError(
        "--budget, --from, --knob and --measure are about rounds of a program, and a profile has none; use --exec");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckOut(arguments));
  PENSTOCK_RETURN_IF_ERROR(CheckIsNotInput("settings file", arguments.out, arguments.file));
  return arguments.exec ? TuneByRounds(arguments, console) : TuneByProfile(arguments, console);
}

}  // namespace

void AddTune(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<TuneArguments>();
  CLI::App* const tune = app.add_subcommand(
      "tune", "Finds the settings with which a program is fastest here, and writes them to a file that it takes");
  tune->add_option("FILE", arguments->file, "A profile: proposes slots and modes, by the simulator");
  tune->add_flag("--exec", arguments->exec, "Runs the program behind it again and again, and measures");
  tune->add_option("--budget", arguments->budget_s, "How many seconds it may take; 120 by default")
      ->check(CLI::Range(0.01, 1e6));
  tune->add_option("--out", arguments->out, "The settings file to write; penstock.settings by default");
  tune->add_flag("--force", arguments->force, "Replaces the file if it is there");
  tune->add_option("--from", arguments->from, "A settings file to begin with");
  tune->add_option("--knob", arguments->knobs, "Tries only this: slots, or graph \"NAME\".slots; may be given again");
  tune->add_option("--measure", arguments->measure,
                   "runs: the pace of its runs, without its start, the default; wall: all its time")
      ->check(CLI::IsMember({"runs", "wall"}));
  tune->callback([arguments, tune, &action] {
    for (const char* name : {"--budget", "--from", "--knob", "--measure"}) {
      arguments->only_rounds = arguments->only_rounds || tune->count(name) > 0;
    }
    action = [arguments](Console& console) {
      const absl::Status status = RunTune(*arguments, console);
      return status.ok() ? kDone : console.Fail(status);
    };
  });
}

}  // namespace penstock::cli
