// penstock version: which version this is.
#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "penstock/version.h"
#include "src/cli/command_line.h"

namespace penstock::cli {
namespace {

ExitCode WriteVersion(Console& console) {
  if (console.json) {
    console.out << nlohmann::json{{"version", PENSTOCK_VERSION}, {"profile_version", Profile::kVersion}} << '\n';
  } else {
    console.out << "penstock " PENSTOCK_VERSION << ", profiles of version " << Profile::kVersion << '\n';
  }
  return kDone;
}

}  // namespace

void AddVersion(CLI::App& app, Action& action) {
  app.add_subcommand("version", "The version of this command, and of the profiles that it reads")->callback([&action] {
    action = WriteVersion;
  });
}

}  // namespace penstock::cli
