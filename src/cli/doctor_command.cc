// penstock doctor: why a program takes as long as it does, and what to change.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/common/message.h"
#include "nlohmann/json.hpp"
#include "penstock/status_macros.h"
#include "src/analysis/doctor.h"
#include "src/analysis/rules/rules.h"
#include "src/cli/command_line.h"
#include "src/cli/estimate_text.h"
#include "src/cli/findings_json.h"
#include "src/cli/machine_file.h"
#include "src/cli/read_profile.h"
#include "src/cli/record_program.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

using analysis::Diagnosis;
using analysis::Finding;

struct DoctorOptions {
  std::string file, machine;  // machine: empty: the one that is kept
  bool exec = false;
  bool before = false;  // estimates, though there are runs
  std::optional<double> fail_under;  // percent
  std::string rule;  // only that; empty: all
};

std::string FindingHeading(const Finding& finding) {
  std::string text = finding.rule;
  if (finding.graph >= 0) absl::StrAppend(&text, ", graph '", finding.graph_name, "'");
  if (finding.node >= 0) absl::StrAppend(&text, ", node '", finding.node_name, "'");
  if (!finding.where.empty()) absl::StrAppend(&text, " (", finding.where, ")");
  absl::StrAppend(&text, ": ", PercentText(finding.share), " of the time");
  if (finding.gain) absl::StrAppend(&text, ", expected gain ", PercentText(*finding.gain));
  return text;
}

std::string FindingText(const Finding& finding, size_t number) {
  std::string text = Wrapped(absl::StrFormat("%2d. %s", number, FindingHeading(finding)), 4) + "\n";
  for (const std::string& sentence : finding.evidence) text += Wrapped("    " + sentence, 4) + "\n";
  text += Wrapped("    fix: " + finding.fix, 9) + "\n";
  text += Wrapped("    gain: " + finding.gain_how, 10) + "\n";
  if (finding.end_us > finding.begin_us) {
    text +=
        absl::StrFormat("    see: %.3f ms to %.3f ms of the profile\n", finding.begin_us / 1e3, finding.end_us / 1e3);
  }
  return text;
}

const char* WordsForNothing(const Diagnosis& diagnosis, const DoctorOptions& options) {
  if (!options.rule.empty()) return "that rule found nothing\n";
  return diagnosis.efficiency >= analysis::kGoodEfficiency ? "all is well: no rule found anything to change\n"
                                                           : "no rule found a cause for the time beyond the floor\n";
}

// What a finding says that is no fault: the device is at work all the time.
bool IsNoFault(const Finding& finding) { return finding.rule == "compute-bound"; }

void WriteDiagnosis(const Diagnosis& diagnosis, const DoctorOptions& options, std::ostream& out) {
  if (diagnosis.wall_us <= 0) {
    out << "nothing to look at: no graph ran often enough\n";
  } else {
    out << "wall " << TimeText(diagnosis.wall_us) << ", floor " << TimeText(diagnosis.floor_us);
    if (!diagnosis.busiest.empty()) out << " (" << diagnosis.busiest << ")";
    out << ", efficiency " << absl::StrFormat("%.1f %%", diagnosis.efficiency) << "\n";
  }
  for (const std::string& note : diagnosis.notes) out << Wrapped("note: " + note, 6) << "\n";
  const bool is_well = std::all_of(diagnosis.findings.begin(), diagnosis.findings.end(), IsNoFault);
  if (diagnosis.wall_us > 0 && is_well && (options.rule.empty() || diagnosis.findings.empty())) {
    out << WordsForNothing(diagnosis, options);
  }
  for (size_t f = 0; f < diagnosis.findings.size(); ++f) out << "\n" << FindingText(diagnosis.findings[f], f + 1);
}

void WriteDiagnosisJson(const Diagnosis& diagnosis, std::ostream& out) {
  const nlohmann::json json = {{"wall_us", diagnosis.wall_us},        {"floor_us", diagnosis.floor_us},
                               {"busiest", diagnosis.busiest},        {"efficiency", diagnosis.efficiency},
                               {"findings", FindingsJson(diagnosis)}, {"notes", diagnosis.notes}};
  out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

absl::StatusOr<Profile> ProfileFor(const DoctorOptions& options, Console& console) {
  if (!options.exec) return ReadProfile(options.file);
  PENSTOCK_ASSIGN_OR_RETURN(RecordedProgram recorded, RecordProgram(console.program));
  if (recorded.processes > 1) {
    console.err << "penstock: " << recorded.processes
                << " processes have recorded profiles; this is about one of them; "
                << "PENSTOCK_PROFILE=FILE.%p keeps all\n";
  } else if (recorded.runtimes > 1) {
    console.err << "penstock: the program made several runtimes; this is about the first one\n";
  }
  return std::move(recorded.profile);
}

// Whether there are graphs, of which none has been launched.
bool HasNotRun(const Profile& profile) {
  return !profile.graphs.empty() && std::all_of(profile.graphs.begin(), profile.graphs.end(),
                                                [](const Profile::Graph& graph) { return graph.launches == 0; });
}

ExitCode WriteEstimates(const Profile& profile, const KnownMachine& known, const DoctorOptions& options,
                        Console& console) {
  const Estimates estimates = EstimateAll(profile, known.get(), known.path);
  if (console.json) {
    console.out << JsonOf(profile, estimates).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    console.out << TextOf(profile, estimates);
  }
  if (!options.fail_under) return kDone;
  return console.Fail(absl::FailedPreconditionError("--fail-under needs runs, and these are estimates before any"));
}

ExitCode RunDoctor(const DoctorOptions& options, Console& console) {
  if (options.exec == !options.file.empty()) {
    return console.Fail(absl::InvalidArgumentError("doctor takes a profile's FILE, or --exec and a program"));
  }
  const absl::StatusOr<Profile> profile = ProfileFor(options, console);
  if (!profile.ok()) return console.Fail(profile.status());
  const absl::StatusOr<KnownMachine> known = MachineFor(*profile, options.machine, console.err);
  if (!known.ok()) return console.Fail(known.status());
  if (options.before || HasNotRun(*profile)) return WriteEstimates(*profile, *known, options, console);
  Diagnosis diagnosis = analysis::Diagnose(*profile, known->get());
  if (known->get() != nullptr) {
    diagnosis.notes.push_back(absl::StrCat("Figures of the machine are those of '", graph::OneLine(known->path), "'."));
  }
  if (!options.rule.empty()) {
    std::erase_if(diagnosis.findings, [&](const Finding& finding) { return finding.rule != options.rule; });
  }
  console.json ? WriteDiagnosisJson(diagnosis, console.out) : WriteDiagnosis(diagnosis, options, console.out);
  if (!options.fail_under) return kDone;
  if (diagnosis.wall_us <= 0) {
    return console.Fail(absl::FailedPreconditionError("--fail-under needs a graph that ran at least twice"));
  }
  if (diagnosis.efficiency >= *options.fail_under) return kDone;
  console.err << "penstock: "
              << absl::StrFormat("the efficiency is %.1f %%, below %g %%\n", diagnosis.efficiency, *options.fail_under);
  return kFinding;
}

}  // namespace

void AddDoctor(CLI::App& app, Action& action) {
  std::vector<std::string> rules;
  for (const analysis::Rule& rule : analysis::AllRules()) rules.emplace_back(rule.name);
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor = app.add_subcommand("doctor", "Why a program takes as long as it does, and what to change");
  doctor->add_option("FILE", options->file, "A profile (PENSTOCK_PROFILE=FILE makes one)");
  doctor->add_flag("--exec", options->exec,
                   "Run the program that follows, with all arguments behind it, and look at that");
  doctor->add_flag("--before", options->before,
                   "Estimate what runs cost, from what nodes declare; as for a program that has launched nothing");
  doctor
      ->add_option("--fail-under", options->fail_under,
                   "End with exit code 1 if the efficiency is below that percentage")
      ->check(CLI::Range(0.0, 100.0));
  doctor->add_option("--machine", options->machine,
                     "What the machine can do (penstock calibrate makes the file); by default the file that it keeps, "
                     "if there is one");
  doctor->add_option("--rule", options->rule, "Show findings of that rule only")->check(CLI::IsMember(rules));
  doctor->callback(
      [options, &action] { action = [options](Console& console) { return RunDoctor(*options, console); }; });
}

}  // namespace penstock::cli
