// Runs a program so that it records itself (docs/howto/profile.md), and reads what it recorded.
//
// The program gets PENSTOCK_PROFILE, this process's input, and its standard error as output and error, so that what it
// prints does not mix with results. Each process that it starts writes a profile of its own. The temporary files are
// gone when the call returns, and when a signal ends this process.
//
// Threads: one thread; no other may change the environment meanwhile.
// Errors:  RunProgram's (run_program.h). FailedPrecondition: it has ended well and has not written a profile. What
//          ReadProfile returns.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/profile.h"

namespace penstock::cli {

struct RecordedProgram {
  // This is the profile of the program's first runtime; if it made none, of the first one of the process that it
  // started and that recorded most.
  Profile profile;
  int runtimes = 0, processes = 0;  // that have recorded
};

// `command` is the program, looked up in PATH, with its arguments.
absl::StatusOr<RecordedProgram> RecordProgram(const std::vector<std::string>& command);

}  // namespace penstock::cli
