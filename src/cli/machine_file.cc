#include "src/cli/machine_file.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "nlohmann/json.hpp"
#include "penstock/status_macros.h"
#include "src/base/file.h"
#include "src/base/status.h"
#include "src/cli/json_object.h"
#include "src/cli/read_file.h"

namespace penstock::cli {
namespace {

using analysis::Machine;

constexpr const char* kMachineFormat = "penstock machine";
constexpr size_t kMostMachineBytes = size_t{1} << 20;  // far more than any machine's, and soon read
constexpr const char* kCalibrateAgain = "; 'penstock calibrate' writes a new one";

struct NamedFigure {
  const char* name;
  double Machine::Device::* value;
};
constexpr NamedFigure kDeviceFigures[] = {
    {"upload", &Machine::Device::upload},
    {"download", &Machine::Device::download},
    {"upload_both_ways", &Machine::Device::upload_both_ways},
    {"download_both_ways", &Machine::Device::download_both_ways},
    {"staged_upload", &Machine::Device::staged_upload},
    {"staged_download", &Machine::Device::staged_download},
    {"memory", &Machine::Device::memory},
    {"fp32", &Machine::Device::fp32},
    {"copy_us", &Machine::Device::copy_us},
    {"stream_node_us", &Machine::Device::stream_node_us},
    {"graph_node_us", &Machine::Device::graph_node_us},
    {"launch_us", &Machine::Device::launch_us},
    {"host_node_us", &Machine::Device::host_node_us},
};

bool IsFigure(double value) { return value == 0 || (value >= 1e-6 && value <= 1e12); }

Machine::Device ReadDevice(JsonObject& from) {
  Machine::Device device;
  device.name = from.Text("name");
  device.description = from.Text("description");
  device.is_cuda = from.Flag("is_cuda");
  for (const NamedFigure& figure : kDeviceFigures) {
    const double value = from.AmountIfAny(figure.name);
    if (!IsFigure(value)) from.Refuse(figure.name, "is no figure of a machine");
    device.*figure.value = value;
  }
  return device;
}

int ReadCores(JsonObject& from) {
  const double cores = from.AmountIfAny("cores");
  if (cores <= 1e6 && cores == std::floor(cores)) return static_cast<int>(cores);
  from.Refuse("cores", "is not a number of cores");
  return 0;
}

// A square: a row and a column for each device.
void ReadPeers(const nlohmann::json& root, JsonObject& from, Machine& machine) {
  const size_t count = machine.devices.size();
  machine.peers.assign(count, std::vector<double>(count));
  const auto peers = root.find("peers");
  if (peers == root.end()) return;
  const std::string wanted = absl::StrCat("is not a list of ", count, ", the number of devices");
  if (!peers->is_array() || peers->size() != count) return from.Refuse("peers", wanted);
  for (size_t source = 0; source < count; ++source) {
    const nlohmann::json& row = (*peers)[source];
    const std::string place = absl::StrCat("peers[", source, "]");
    if (!row.is_array() || row.size() != count) return from.Refuse(place.c_str(), wanted);
    for (size_t target = 0; target < count; ++target) {
      double& rate = machine.peers[source][target];
      const std::string at = absl::StrCat(place, "[", target, "]");
      from.Refuse(at.c_str(), TakeAmount(row[target], rate));
      if (!IsFigure(rate)) from.Refuse(at.c_str(), "is no figure of a machine");
    }
  }
}

absl::StatusOr<Machine> MachineOf(const nlohmann::json& root) {
  absl::Status status;
  JsonObject from(root, "", status);
  Machine machine;
  machine.host = from.Text("host");
  machine.cores = ReadCores(from);
  machine.host_copy = from.AmountIfAny("host_copy");
  machine.host_fp32 = from.AmountIfAny("host_fp32");
  machine.quick = from.Has("quick") && from.Flag("quick");
  from.Objects("devices", [&](JsonObject& one) { machine.devices.push_back(ReadDevice(one)); });
  if (status.ok()) ReadPeers(root, from, machine);
  if (!status.ok()) return status;
  return machine;
}

// Empty: it is a machine file of a version that is read here.
std::string WhyForeign(const nlohmann::json& root) {
  if (!root.is_object() || root.value("format", nlohmann::json()) != kMachineFormat) {
    return absl::StrCat("it is not a machine file, which has \"format\": \"", kMachineFormat, "\"", kCalibrateAgain);
  }
  const nlohmann::json version = root.value("version", nlohmann::json());
  const uint64_t number = version.is_number_unsigned() ? version.get<uint64_t>() : 0;
  if (number == 0) {
    return absl::StrCat("version is not a number of at least 1", kCalibrateAgain);
  }
  if (number > kMachineVersion) {
    return absl::StrCat("its version is newer than ", kMachineVersion,
                        ", the newest that this command reads; use a newer penstock", kCalibrateAgain);
  }
  return "";
}

absl::Status ForeignMachine(const std::string& path, std::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("machine file '", path, "': ", absl::string_view(problem.data(), problem.size())));
}

// The directory of an environment variable, if it is absolute, as the XDG base directory specification demands.
std::optional<std::string> DirectoryIn(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || value[0] != '/') return std::nullopt;
  return value;
}

}  // namespace

std::string MachineText(const Machine& machine, std::string_view date) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const Machine::Device& device : machine.devices) {
    nlohmann::ordered_json json = {
        {"name", device.name}, {"description", device.description}, {"is_cuda", device.is_cuda}};
    for (const NamedFigure& figure : kDeviceFigures) json[figure.name] = device.*figure.value;
    devices.push_back(std::move(json));
  }
  nlohmann::ordered_json root = {
      {"format", kMachineFormat},       {"version", kMachineVersion},    {"date", date},
      {"host", machine.host},           {"cores", machine.cores},        {"host_copy", machine.host_copy},
      {"host_fp32", machine.host_fp32}, {"devices", std::move(devices)}, {"peers", machine.peers}};
  if (machine.quick) root["quick"] = true;
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::Status WriteMachine(const std::string& path, const Machine& machine, std::string_view date) {
  return base::WriteFile("machine file", path, MachineText(machine, date));
}

absl::StatusOr<Machine> ReadMachine(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile("machine file", path, kMostMachineBytes);
  if (!text.ok()) return base::Suffixed(text.status(), kCalibrateAgain);
  nlohmann::json root;
  try {
    root = nlohmann::json::parse(*text);
  } catch (const nlohmann::json::parse_error& e) {
    return ForeignMachine(
        path, absl::StrCat("it is not JSON from byte ", e.byte, " on; it may be incomplete", kCalibrateAgain));
  } catch (const nlohmann::json::exception&) {
    return ForeignMachine(path, absl::StrCat("it has a number that is too large", kCalibrateAgain));
  }
  if (const std::string why = WhyForeign(root); !why.empty()) return ForeignMachine(path, why);
  absl::StatusOr<Machine> machine = MachineOf(root);
  if (machine.ok()) return machine;
  return ForeignMachine(path, absl::StrCat(machine.status().message(), kCalibrateAgain));
}

absl::StatusOr<std::string> MachinePath() {
  if (const auto config = DirectoryIn("XDG_CONFIG_HOME")) return *config + "/penstock/machine.json";
  if (const auto home = DirectoryIn("HOME")) return *home + "/.config/penstock/machine.json";
  return absl::FailedPreconditionError(
      "machine file: there is no place for it, since neither XDG_CONFIG_HOME nor HOME is an absolute path; set one, or "
      "name the file");
}

namespace {

bool KnowsADevice(const Machine& machine, const Profile& profile) {
  for (size_t d = 0; d < profile.devices.size(); ++d) {
    if (analysis::DeviceOf(machine, profile, static_cast<int>(d)) != nullptr) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<KnownMachine> MachineFor(const Profile& profile, const std::string& option, std::ostream& err) {
  KnownMachine known{.path = option, .machine = {}};
  if (option.empty()) {
    absl::StatusOr<std::string> kept = MachinePath();
    std::error_code error;
    if (!kept.ok() || !std::filesystem::exists(*kept, error)) return known;
    known.path = *std::move(kept);
  }
  absl::StatusOr<Machine> machine = ReadMachine(known.path);
  if (!machine.ok() && !option.empty()) return machine.status();
  if (!machine.ok()) {
    err << "penstock: what calibrate has kept is left out: " << machine.status().message() << "\n";
    return KnownMachine();
  }
  known.machine = *std::move(machine);
  const bool fits = KnowsADevice(known.machine, profile);
  if (option.empty() && !fits) return KnownMachine();
  const std::string file = absl::StrCat("penstock: machine file '", graph::OneLine(known.path), "' ");
  if (!fits) err << file << "has measured none of the profile's devices; it is of another machine\n";
  if (known.machine.quick) err << file << "is of a quick run; its figures are worth little\n";
  return known;
}

}  // namespace penstock::cli
