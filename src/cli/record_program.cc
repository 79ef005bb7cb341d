#include "src/cli/record_program.h"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "penstock/status_macros.h"
#include "src/cli/read_profile.h"
#include "src/cli/run_program.h"

namespace penstock::cli {
namespace {

constexpr char kProfile[] = "/profile";  // in the folder, without the number of its process

// What lies in the folder: a profile for each runtime of each process.
struct RecordedFiles {
  std::string chosen;  // empty: none
  int runtimes = 0, processes = 0;
};

// That of the program's first runtime, or if it has none, the largest first one of a process that it started.
absl::StatusOr<RecordedFiles> LookForProfiles(const ScratchFolder& folder, pid_t program) {
  const std::string profile = folder.path() + kProfile;
  RecordedFiles found;
  uintmax_t largest = 0;
  std::error_code error;
  const std::string own = absl::StrCat(profile, ".", program);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(), error)) {
    ++found.runtimes;
    const std::string path = entry.path().string();
    const bool is_first = path.rfind('.') == profile.size();  // "profile.PROCESS", and not "profile.PROCESS.2"
    if (!is_first) continue;
    ++found.processes;
    std::error_code gone;
    const uintmax_t size = path == own ? std::numeric_limits<uintmax_t>::max() : entry.file_size(gone);
    if (gone) continue;
    if (found.chosen.empty() || size > largest) found.chosen = path, largest = size;
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot look for the profile: ", error.message()));
  return found;
}

}  // namespace

absl::StatusOr<RecordedProgram> RecordProgram(const std::vector<std::string>& command) {
  const ProgramSignals signals;
  PENSTOCK_ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Make());
  const std::string pattern = absl::StrReplaceAll(folder.path() + kProfile, {{"%", "%%"}}) + ".%p";
  PENSTOCK_ASSIGN_OR_RETURN(
      const pid_t program,
      RunProgram({.command = command, .variables = {{"PENSTOCK_PROFILE", pattern}}, .may_end_by_interrupt = true},
                 signals));
  PENSTOCK_ASSIGN_OR_RETURN(const RecordedFiles files, LookForProfiles(folder, program));
  if (files.chosen.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOfProgram(command),
        " has recorded no profile: it made no Penstock runtime, or left it to the end of the process; destroy it in "
        "main, or call Runtime::Shutdown"));
  }
  RecordedProgram recorded;
  PENSTOCK_ASSIGN_OR_RETURN(recorded.profile, ReadProfile(files.chosen));
  recorded.runtimes = files.runtimes;
  recorded.processes = files.processes;
  return recorded;
}

}  // namespace penstock::cli
