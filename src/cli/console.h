// Console: where a command writes, and how its run ends.
//
// Results go to `out`, as text or, with --json, as one JSON value; what is wrong and what is in progress go to `err`.
//
// Threads: single-threaded.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace penstock::cli {

// How a command ends: the exit code of the process.
//   kDone     it did what it was asked to
//   kFinding  it did, and the answer is no: a limit of --fail-under is missed
//   kFailed   it could not: a file that cannot be read, a wrong option, a device that fails
enum ExitCode { kDone = 0, kFinding = 1, kFailed = 2 };

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool json = false;  // --json
  std::vector<std::string> program = {};  // the program behind --exec, with its arguments

  // Says why nothing came of it.
  ExitCode Fail(const absl::Status& status) {
    err << "penstock: " << status.message() << '\n';
    return kFailed;
  }
};

}  // namespace penstock::cli
