// Runs the command penstock within the test.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "src/cli/command_line.h"

namespace penstock::cli {

// Tests do not depend on what calibrate has kept.
inline const int kWithoutConfiguration = setenv("XDG_CONFIG_HOME", "/no configuration", 1);

struct Ran {
  ExitCode code;
  std::string out, err;
};

inline Ran RunPenstock(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const ExitCode code = RunCommandLine(arguments, out, err);
  return {code, out.str(), err.str()};
}

}  // namespace penstock::cli
