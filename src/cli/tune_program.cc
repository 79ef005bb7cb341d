#include "src/cli/tune_program.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/cli/read_file.h"
#include "src/tune/measurement_text.h"

namespace penstock::cli {
namespace {

constexpr size_t kMostMeasurementBytes = size_t{16} << 20;
constexpr size_t kMostShownOutput = 400;
constexpr double kTimesTheFirst = 5, kLeastLimitSeconds = 10;  // how long a later round may take

// The files of a round, whose paths begin with `begin`: "BEGIN12" is that of process 12, and "BEGIN12.2" that of its
// second runtime.
std::vector<std::string> FilesOfRound(const std::string& folder, const std::string& begin) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::string path = entry->path().string();
    if (path.starts_with(begin)) files.push_back(std::move(path));
  }
  return files;
}

// The last characters of a file, as one line.
std::string EndOfFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile("output", path, kMostMeasurementBytes);
  if (!text.ok()) return "";
  std::string_view shown = *text;
  while (!shown.empty() && (shown.back() == '\n' || shown.back() == ' ')) shown.remove_suffix(1);
  const bool cut = shown.size() > kMostShownOutput;
  if (cut) shown.remove_prefix(shown.size() - kMostShownOutput);
  return absl::StrCat(cut ? "..." : "", graph::OneLine(shown));
}

}  // namespace

absl::StatusOr<ProgramRounds> ProgramRounds::Make(const ProgramSignals& signals, std::vector<std::string> command,
                                                  RoundCost cost) {
  PENSTOCK_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make());
  return ProgramRounds(signals, std::move(folder), std::move(command), cost);
}

absl::Status ProgramRounds::WithOutput(const absl::Status& status) const {
  const std::string end = EndOfFile(File("output"));
  return end.empty() ? status : base::Suffixed(status, absl::StrCat("; its output ends with: ", end));
}

// That of the program's first runtime, or if it has none, of the only process with one that it started.
absl::StatusOr<std::string> ProgramRounds::MeasuredBy(pid_t program, const std::string& begin) const {
  std::string own = absl::StrCat(begin, program);
  std::vector<std::string> firsts = FilesOfRound(folder_.path(), begin);
  if (std::find(firsts.begin(), firsts.end(), own) != firsts.end()) return own;
  std::erase_if(firsts, [&](const std::string& path) { return path.find('.', begin.size()) != std::string::npos; });
  if (firsts.size() == 1) return firsts[0];
  if (firsts.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOfProgram(command_),
        " has measured nothing: it made no Penstock runtime, or left it to the end of the process; destroy it in "
        "main, or call Runtime::Shutdown"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(NameOfProgram(command_), " made no Penstock runtime itself, and ", firsts.size(),
                   " processes that it started measured; name the program itself behind --exec"));
}

absl::StatusOr<Measurement> ProgramRounds::ReadMeasurement(pid_t program, const std::string& begin) {
  const absl::StatusOr<std::string> file = MeasuredBy(program, begin);
  if (!file.ok()) return WithOutput(file.status());
  several_ = std::filesystem::exists(*file + ".2");
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, ReadFile("measurement", *file, kMostMeasurementBytes));
  return tune::MeasurementFrom(text);
}

absl::StatusOr<Measurement> ProgramRounds::RunOnce(const Settings& settings) {
  // No other round's, which a process may write that outlives its round.
  const std::string begin = File(absl::StrCat("measurement-", ++rounds_, "."));
  PENSTOCK_RETURN_IF_ERROR(settings.Write(File("settings")));
  const auto started = std::chrono::steady_clock::now();
  const absl::StatusOr<pid_t> ran =
      RunProgram({.command = command_,
                  .variables = {{"PENSTOCK_SETTINGS", File("settings")},
                                {"PENSTOCK_MEASURE", absl::StrReplaceAll(begin, {{"%", "%%"}}) + "%p"},
                                {"PENSTOCK_PROFILE", ""}},
                  .output = File("output"),
                  .most_seconds = most_s_},
                 *signals_);
  wall_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  absl::StatusOr<Measurement> measured = ran.ok() ? ReadMeasurement(*ran, begin) : WithOutput(ran.status());
  std::error_code ignored;
  for (const std::string& file : FilesOfRound(folder_.path(), begin)) std::filesystem::remove(file, ignored);
  return measured;
}

absl::StatusOr<Measurement> ProgramRounds::First(const Settings& settings) {
  PENSTOCK_ASSIGN_OR_RETURN(Measurement measured, RunOnce(settings));
  most_s_ = std::max(kLeastLimitSeconds, kTimesTheFirst * wall_s_);
  if (measured.runs > 0 || cost_ == RoundCost::kWall) return measured;
  return WithOutput(absl::FailedPreconditionError(absl::StrCat(
      NameOfProgram(command_), " has run no graph with its first runtime; with --measure wall its whole time counts")));
}

absl::StatusOr<double> ProgramRounds::Run(const Settings& settings) {
  PENSTOCK_ASSIGN_OR_RETURN(const Measurement measured, RunOnce(settings));
  return cost_ == RoundCost::kWall ? wall_s_ * 1e6 : measured.run_us;
}

}  // namespace penstock::cli
