// penstock calibrate: measures this machine, for the commands that estimate.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/status_macros.h"
#include "src/base/file.h"
#include "src/cli/command_line.h"
#include "src/cli/machine_file.h"
#include "src/cli/measure/calibrate.h"
#include "src/cli/measure/figures.h"
#include "src/cli/measure/progress.h"

namespace penstock::cli {
namespace {

using analysis::Machine;

struct CalibrateArguments {
  std::string out, devices;
  bool quick = false;
};

struct MachineColumn {
  measure::Column heading;
  double Machine::Device::* value;
};

std::string DateOfToday() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

// The file to write, which can be written. So nothing is measured in vain.
absl::StatusOr<std::string> PathToWrite(const CalibrateArguments& arguments) {
  std::string path = arguments.out;
  if (path.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(path, MachinePath());
    std::error_code error;
    const absl::StatusOr<Machine> kept = ReadMachine(path);
    if (arguments.quick && kept.ok() && !kept->quick) {
      return absl::AlreadyExistsError(absl::StrCat(
          "machine file '", path, "' has better figures than a quick run's; name another file with --out"));
    }
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (error) {
      return absl::UnavailableError(absl::StrCat("machine file '", path, "': its directory cannot be made: ",
                                                 error.message(), "; name another file with --out"));
    }
  }
  PENSTOCK_RETURN_IF_ERROR(base::CheckWritable("machine file", path));
  return path;
}

// A table with a row for each device.
std::string MachineTable(const std::string& title, const std::vector<MachineColumn>& shown, const Machine& machine) {
  std::vector<measure::Column> columns;
  for (const MachineColumn& column : shown) columns.push_back(column.heading);
  std::vector<measure::Row> rows;
  for (const Machine::Device& device : machine.devices) {
    measure::Row row{device.name, {}};
    for (const MachineColumn& column : shown) row.values.push_back(device.*column.value);
    rows.push_back(std::move(row));
  }
  return "\n" + measure::TableText(title, "device", columns, rows);
}

std::string PeersTable(const Machine& machine) {
  if (machine.devices.size() < 2) return "";
  std::vector<measure::Column> columns;
  std::vector<measure::Row> rows;
  for (size_t d = 0; d < machine.devices.size(); ++d) {
    columns.push_back({"", machine.devices[d].name});
    rows.push_back({machine.devices[d].name, machine.peers[d]});
  }
  return "\n" + measure::TableText("Copies from a row's device to a column's, in GB/s", "from", columns, rows);
}

void WriteSummary(const Machine& machine, const std::string& path, std::ostream& out) {
  using Device = Machine::Device;
  if (std::none_of(machine.devices.begin(), machine.devices.end(), [](const Device& d) { return d.is_cuda; })) {
    out << measure::kHostDevicesOnly << '\n';
  }
  out << absl::StrFormat("%s, %d cores, which copy memory at %.1f GB/s and compute at %.1f GFLOP/s\n", machine.host,
                         machine.cores, machine.host_copy, machine.host_fp32)
      << MachineTable("Copies and memory of devices, in GB/s",
                      {{{"pinned", "H2D"}, &Device::upload},
                       {{"pinned", "D2H"}, &Device::download},
                       {{"both ways", "H2D"}, &Device::upload_both_ways},
                       {{"both ways", "D2H"}, &Device::download_both_ways},
                       {{"not pinned", "H2D"}, &Device::staged_upload},
                       {{"not pinned", "D2H"}, &Device::staged_download},
                       {{"", "memory"}, &Device::memory}},
                      machine)
      << MachineTable("Computing without tensor cores, in GFLOP/s", {{{"", "FP32"}, &Device::fp32}}, machine)
      << MachineTable("Launches, in us",
                      {{{"", "launch"}, &Device::launch_us},
                       {{"stream", "node"}, &Device::stream_node_us},
                       {{"graph", "node"}, &Device::graph_node_us},
                       {{"host", "node"}, &Device::host_node_us},
                       {{"small", "copy"}, &Device::copy_us}},
                      machine)
      << PeersTable(machine) << "\nWritten to " << path << '\n';
}

absl::Status RunCalibrate(const CalibrateArguments& arguments, Console& console) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string path, PathToWrite(arguments));
  Machine machine;
  {
    measure::Progress progress(console);
    const auto step = [&](const std::string& what) { progress.Step(what); };
    PENSTOCK_ASSIGN_OR_RETURN(machine, measure::Calibrate({arguments.devices, arguments.quick, step}));
  }
  machine.quick = arguments.quick;
  const std::string date = DateOfToday();
  PENSTOCK_RETURN_IF_ERROR(WriteMachine(path, machine, date));
  if (console.json) {
    console.out << MachineText(machine, date);
  } else {
    WriteSummary(machine, path, console.out);
  }
  return absl::OkStatus();
}

}  // namespace

void AddCalibrate(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* const calibrate =
      app.add_subcommand("calibrate", "Measures this machine, for the commands that estimate, and keeps the figures");
  calibrate->add_option("--out", arguments->out, "The file to write; penstock/machine.json in ~/.config by default");
  calibrate->add_option("--devices", arguments->devices,
                        "As in \"cuda:0,1\" or \"host:2\"; all CUDA devices by default");
  calibrate->add_flag("--quick", arguments->quick, "A smoke run of a second, whose figures are worth nothing");
  calibrate->callback([arguments, &action] {
    action = [arguments](Console& console) {
      const absl::Status status = RunCalibrate(*arguments, console);
      return status.ok() ? kDone : console.Fail(status);
    };
  });
}

}  // namespace penstock::cli
