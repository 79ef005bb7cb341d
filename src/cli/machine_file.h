// The machine file: what `penstock calibrate` measured (src/analysis/machine.h), as JSON.
//
//   {"format": "penstock machine", "version": 1, "date": "2026-11-28", "host": ..., "cores": ..., "host_copy": ...,
//    "host_fp32": ..., "devices": [{"name": "cuda:0", "upload": 55.4, ...}], "peers": [[0]]}
//
// Members are named as those of Machine, and in its units. A figure that is missing is unknown (0), and unknown members
// are ignored. "quick" is there if it is true. A version counts up if a change would mislead older readers, which
// therefore refuse it.
//
// Threads: free functions. MachinePath reads the environment, which no thread may change meanwhile.
// Errors:  InvalidArgument: it is no machine file, with the place and the reason. Those of ReadFile.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/profile.h"
#include "src/analysis/machine.h"

namespace penstock::cli {

constexpr unsigned kMachineVersion = 1;

// The file's text; `date` as in 2026-11-28.
std::string MachineText(const analysis::Machine& machine, std::string_view date);
// Writes it, whole or not at all.
absl::Status WriteMachine(const std::string& path, const analysis::Machine& machine, std::string_view date);

absl::StatusOr<analysis::Machine> ReadMachine(const std::string& path);

// Where the machine file is unless an option says otherwise: penstock/machine.json in $XDG_CONFIG_HOME or ~/.config.
// FailedPrecondition: neither XDG_CONFIG_HOME nor HOME names a directory.
absl::StatusOr<std::string> MachinePath();

// What is known of the machine of a profile.
struct KnownMachine {
  std::string path;  // of the file; empty: nothing is known
  analysis::Machine machine;
  const analysis::Machine* get() const { return path.empty() ? nullptr : &machine; }
};
// From the file `option`, or if that is empty, from the file at MachinePath, if it is there and has measured a device
// of the profile. Warns on `err` of a file that has measured none, of a quick run's, and of a kept one that cannot be
// read.
absl::StatusOr<KnownMachine> MachineFor(const Profile& profile, const std::string& option, std::ostream& err);

}  // namespace penstock::cli
