#include "src/cli/tune_text.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/common/message.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

const char* WordOfVerdict(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTaken: return "taken";
    case Verdict::kNotTaken: return "not taken";
    case Verdict::kRefused: return "refused";
    case Verdict::kUnfinished: return "unfinished";
  }
  return "";
}

const char* WordOfMode(Mode mode) { return mode == Mode::kGraph ? "graph" : "stream"; }

std::string IntervalText(const TuneResult::Trial& trial) {
  return trial.high > 0 ? absl::StrFormat("%.3f to %.3f", trial.low, trial.high) : "";
}

std::string GainText(double before, double after) {
  return after < before ? absl::StrFormat("%.1f %% less", 100 * (1 - after / before)) : "no less";
}

}  // namespace

void WriteTuneResult(const TuneResult& result, const std::string& cost, std::ostream& out) {
  out << CountText(result.rounds, "round") << ": " << TimeText(result.before) << " " << cost << " before, "
      << TimeText(result.after) << " with what was found, " << GainText(result.before, result.after) << "\n";
  if (!result.tried.empty()) {
    TextTable table({"<setting", "value", "rounds", "cost", "interval", "<verdict"});
    for (const TuneResult::Trial& trial : result.tried) {
      const bool measured = trial.verdict != Verdict::kRefused;
      table.Add({Shown(trial.key, 44), trial.value.empty() ? "(open)" : trial.value, absl::StrCat(trial.rounds),
                 measured ? absl::StrFormat("%.3f", trial.ratio) : "", IntervalText(trial),
                 WordOfVerdict(trial.verdict)});
    }
    out << "\nWhat was tried: its cost over that of what was in use, and an interval of 95 % confidence\n";
    table.Write(out);
  }
  for (const TuneResult::Trial& trial : result.tried) {
    if (trial.why.empty()) continue;
    out << Wrapped(absl::StrCat("refused: ", graph::OneLine(trial.key), " = ", trial.value, ": ",
                                graph::OneLine(trial.why)),
                   4)
        << "\n";
  }
  out << "\nstopped: " << result.stopped << "\n";
}

nlohmann::json JsonOfTune(const TuneResult& result) {
  nlohmann::json tried = nlohmann::json::array();
  for (const TuneResult::Trial& trial : result.tried) {
    tried.push_back({{"key", trial.key},
                     {"value", trial.value},
                     {"ratio", trial.ratio},
                     {"low", trial.low},
                     {"high", trial.high},
                     {"rounds", trial.rounds},
                     {"verdict", WordOfVerdict(trial.verdict)},
                     {"why", trial.why}});
  }
  return {{"settings", result.settings.Text()}, {"before_us", result.before},
          {"after_us", result.after},           {"rounds", result.rounds},
          {"stopped", result.stopped},          {"tried", std::move(tried)}};
}

void WriteProposal(const analysis::Proposal& proposal, std::ostream& out) {
  out << "Predictions of the simulator; 'penstock tune --exec PROGRAM' measures\n";
  if (!proposal.ways.empty()) {
    TextTable table({"<graph", "slots", "mode", "a run", "<"});
    for (const analysis::Proposal::Way& way : proposal.ways) {
      table.Add({Shown(way.graph), absl::StrCat(way.slots), WordOfMode(way.mode), TimeText(way.run_us),
                 way.as_measured ? "as it was"
                 : way.proposed  ? "proposed"
                                 : ""});
    }
    table.Write(out);
  }
  for (const std::string& note : proposal.notes) out << Wrapped("note: " + note, 6) << "\n";
}

nlohmann::json JsonOfProposal(const analysis::Proposal& proposal) {
  nlohmann::json ways = nlohmann::json::array();
  for (const analysis::Proposal::Way& way : proposal.ways) {
    ways.push_back({{"graph", way.graph},
                    {"slots", way.slots},
                    {"mode", WordOfMode(way.mode)},
                    {"run_us", way.run_us},
                    {"as_measured", way.as_measured},
                    {"proposed", way.proposed}});
  }
  return {{"settings", proposal.settings.Text()},
          {"predicted", true},
          {"ways", std::move(ways)},
          {"notes", proposal.notes}};
}

}  // namespace penstock::cli
