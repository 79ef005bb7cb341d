// penstock info: the devices and the machine, and what works on them, found out by trying it.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/cli/command_line.h"
#include "src/cli/host_facts.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

// What a graph of a fill, a call of the host and a download did on a device.
struct Tried {
  absl::Status status;  // of compiling and running it; unless OK, nothing below is known
  bool graphs = false;  // it ran as a CUDA graph, on host devices as one that follows the same rules
  bool hostcalls = false;  // the device called the host within it
  std::vector<std::string> notes;  // why not
};

struct Info {
  HostFacts host;
  absl::Status status;  // of making a runtime
  std::vector<Device> devices;
  std::vector<Tried> tried;  // for each device
  PinnedGauges pinned;
  std::string why_host;  // why host devices take the place of CUDA devices; empty: they do not
};

absl::Status TryGraph(Runtime& runtime, int device, Tried& tried) {
  constexpr int64_t kWords = 4;
  constexpr int32_t kFilled = 7;
  Graph graph("penstock info");
  const BufferHandle<int32_t> x = graph.InOut<int32_t>("x", kWords);
  graph.Fill("fill", Write(x), kFilled);
  const auto seen = std::make_shared<int32_t>(0);
  graph.Host("look", [seen](std::span<const int32_t> words) { *seen = words[0]; }, Read(x)).Infallible();
  PENSTOCK_ASSIGN_OR_RETURN(
      Executable exec,
      runtime.Compile(graph,
                      {.slots = 1, .device = device, .devices = {device}, .mode = Mode::kGraph, .profile = true}));
  std::vector<int32_t> words(kWords);
  PENSTOCK_ASSIGN_OR_RETURN(Run run, exec.Launch(exec.bindings().Set(x, words)));
  PENSTOCK_RETURN_IF_ERROR(run.Wait());
  if (*seen != kFilled || words[0] != kFilled)
    return absl::DataLossError("a graph that fills a buffer left it as it was");
  tried.graphs = exec.submission_report().mode == Mode::kGraph;
  tried.notes = exec.submission_report().notes;
  const Profile profile = runtime.Profile();
  for (const Profile::Node& node : profile.graphs.back().nodes) tried.hostcalls |= node.kind == "hostcall";
  return absl::OkStatus();
}

// Empty unless devices were left to choose and none is a CUDA device.
std::string WhyHost(const std::vector<Device>& devices) {
  const char* const named = std::getenv("PENSTOCK_DEVICES");
  if (devices.empty() || devices[0].is_cuda || (named != nullptr && *named != '\0')) return "";
  const absl::Status refused = Runtime::Create({.devices = "cuda", .log_level = LogLevel::kOff}).status();
  std::string why = base::Str(refused.message());
  why = why.substr(0, why.find("; name host devices"));  // nobody has asked for CUDA devices
  constexpr std::string_view kPrefix = "device 'cuda': ";
  return why.starts_with(kPrefix) ? why.substr(kPrefix.size()) : why;
}

Info Look() {
  Info info;
  info.host = LookAtHost();
  absl::StatusOr<Runtime> runtime = Runtime::Create();
  info.status = runtime.status();
  if (!info.status.ok()) return info;
  info.devices = runtime->devices();
  info.why_host = WhyHost(info.devices);
  for (size_t d = 0; d < info.devices.size(); ++d) {
    Tried& tried = info.tried.emplace_back();
    tried.status = TryGraph(*runtime, static_cast<int>(d), tried);
  }
  info.pinned = runtime->pinned_memory();
  return info;
}

nlohmann::ordered_json InfoJson(const Info& info) {
  using nlohmann::ordered_json;
  ordered_json json{{"processor", info.host.processor},          {"cores", info.host.cores},
                    {"numa_nodes", info.host.numa_nodes},        {"memory_bytes", info.host.memory_bytes},
                    {"nvidia_driver", info.host.nvidia_driver},  {"cuda_build", info.host.cuda_build},
                    {"error", base::Str(info.status.message())}, {"why_host_devices", info.why_host},
                    {"pinned_budget_bytes", info.pinned.budget}, {"devices", ordered_json::array()}};
  for (size_t d = 0; d < info.devices.size(); ++d) {
    const Device& device = info.devices[d];
    const Tried& tried = info.tried[d];
    json["devices"].push_back({{"name", device.name},
                               {"description", device.description},
                               {"is_cuda", device.is_cuda},
                               {"memory_bytes", device.memory_bytes},
                               {"error", base::Str(tried.status.message())},
                               {"graphs", tried.graphs},
                               {"hostcalls", tried.hostcalls},
                               {"notes", tried.notes}});
  }
  return json;
}

void WriteDevices(const Info& info, std::ostream& out) {
  TextTable table({"<device", "<", "memory", "graphs", "hostcalls"});
  const auto works = [](const Tried& tried, bool it) { return !tried.status.ok() ? "?" : it ? "yes" : "no"; };
  for (size_t d = 0; d < info.devices.size(); ++d) {
    const Device& device = info.devices[d];
    const Tried& tried = info.tried[d];
    table.Add({Shown(device.name, 16), Shown(device.description), SizeText(device.memory_bytes),
               works(tried, tried.graphs), works(tried, tried.hostcalls)});
  }
  table.Write(out);
  for (size_t d = 0; d < info.devices.size(); ++d) {
    const std::string prefix = "  " + Shown(info.devices[d].name, 16) + ": ";
    if (!info.tried[d].status.ok()) {
      out << Wrapped(prefix + "a graph does not run: " + Shown(base::Str(info.tried[d].status.message()), 1000), 8)
          << '\n';
    }
    for (const std::string& note : info.tried[d].notes) out << Wrapped(prefix + Shown(note, 1000), 8) << '\n';
  }
}

void WriteInfo(const Info& info, std::ostream& out) {
  const HostFacts& host = info.host;
  out << "processor  " << Shown(host.processor, 60) << '\n'
      << "           " << CountText(host.cores, "core") << ", "
      << (host.numa_nodes == 0 ? "" : CountText(host.numa_nodes, "NUMA node") + ", ") << SizeText(host.memory_bytes)
      << " of memory for this process\n"
      << "CUDA       "
      << (host.cuda_build.empty() ? "this command was built without it" : "built with " + host.cuda_build) << ", "
      << (host.nvidia_driver.empty() ? "no driver of NVIDIA is loaded" : "driver " + host.nvidia_driver) << '\n';
  if (!info.status.ok()) return;
  out << "pinned     at most " << SizeText(info.pinned.budget) << '\n';
  if (!info.why_host.empty()) {
    out << Wrapped("Host devices, CPU threads that follow the rules of CUDA devices, take the place of CUDA devices: " +
                       Shown(info.why_host, 500) + ".",
                   0)
        << '\n';
  }
  WriteDevices(info, out);
}

ExitCode ShowInfo(Console& console) {
  const Info info = Look();
  if (console.json) {
    console.out << InfoJson(info) << '\n';
  } else {
    WriteInfo(info, console.out);
  }
  if (!info.status.ok()) return console.Fail(info.status);
  for (const Tried& tried : info.tried) {
    if (!tried.status.ok()) return console.Fail(tried.status);
  }
  return kDone;
}

}  // namespace

void AddInfo(CLI::App& app, Action& action) {
  app.add_subcommand("info", "The devices and the machine, and what works on them")->callback([&action] {
    action = ShowInfo;
  });
}

}  // namespace penstock::cli
