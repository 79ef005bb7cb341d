#include "src/cli/measure/calibrate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/ps.h"
#include "src/base/limits.h"
#include "src/cli/measure/bench.h"
#include "src/cli/measure/copy_rig.h"
#include "src/cli/measure/flop_rate.h"
#include "src/cli/measure/launch_costs.h"
#include "src/cli/measure/peers.h"
#include "src/cli/measure/processor.h"

namespace penstock::cli::measure {
namespace {

using analysis::Machine;

constexpr double kBudgetUs = 15e6;  // of all figures; as much again goes into memory, the first runs and the checks

struct RateOfRoute {
  Route route;
  double Machine::Device::* rate;
};
constexpr RateOfRoute kCalibratedRoutes[] = {
    {Route::kUpload, &Machine::Device::upload},
    {Route::kDownload, &Machine::Device::download},
    {Route::kUploadBothWays, &Machine::Device::upload_both_ways},
    {Route::kDownloadBothWays, &Machine::Device::download_both_ways},
    {Route::kStagedUpload, &Machine::Device::staged_upload},
    {Route::kStagedDownload, &Machine::Device::staged_download},
    {Route::kWithin, &Machine::Device::memory},
};

// So that the more there is to measure, the less time each figure has.
Effort EffortFor(size_t devices) {
  constexpr size_t kOfLaunches = 6, kOfFlops = 1, kOfHost = 9;
  const size_t figures = devices * (std::size(kCalibratedRoutes) + kOfLaunches + kOfFlops + devices - 1) + kOfHost;
  Effort effort;
  effort.budget_us = std::min(effort.budget_us, kBudgetUs / static_cast<double>(figures));
  return effort;
}

absl::Status CalibrateDevice(Runtime& runtime, int index, const CalibrateOptions& options, const Effort& effort,
                             Machine::Device& to) {
  const Device& device = runtime.devices()[static_cast<size_t>(index)];
  to.name = device.name;
  to.description = device.description;
  to.is_cuda = device.is_cuda;
  options.step(absl::StrCat(device.name, ": launches"));
  PENSTOCK_ASSIGN_OR_RETURN(const LaunchCosts costs, MeasureLaunches(runtime, index, effort));
  to.copy_us = costs.small_copy;
  to.stream_node_us = costs.stream_node;
  to.graph_node_us = costs.graph_node;
  to.launch_us = costs.launch;
  to.host_node_us = costs.host_node;
  options.step(absl::StrCat(device.name, ": copies"));
  const int64_t bytes = LargeCopy(device, options.quick);
  PENSTOCK_ASSIGN_OR_RETURN(CopyRig rig, CopyRig::Make(runtime, index, bytes));
  for (const RateOfRoute& route : kCalibratedRoutes) {
    PENSTOCK_ASSIGN_OR_RETURN(to.*route.rate, rig.Rate(route.route, bytes, effort));
  }
  to.memory *= 2;  // a copy within the device reads as much as it writes
  options.step(absl::StrCat(device.name, ": multiply-adds"));
  PENSTOCK_ASSIGN_OR_RETURN(to.fp32, FlopRate(runtime, index, options.quick, effort));
  return absl::OkStatus();
}

// A host device copies with all of its threads: with how many is it fastest?
absl::StatusOr<double> HostCopyRate(const CalibrateOptions& options, const Effort& effort, int cores) {
  double best = 0;
  for (int threads = 1;; threads = std::min(2 * threads, cores)) {
    options.step(absl::StrCat("copies by ", threads, threads == 1 ? " thread" : " threads"));
    PENSTOCK_ASSIGN_OR_RETURN(Runtime runtime, Runtime::Create({.devices = "host", .host_device_threads = threads}));
    const int64_t bytes = LargeCopy(runtime.devices()[0], options.quick);
    PENSTOCK_ASSIGN_OR_RETURN(CopyRig rig, CopyRig::Make(runtime, 0, bytes));
    PENSTOCK_ASSIGN_OR_RETURN(const double rate, rig.Rate(Route::kWithin, bytes, effort));
    best = std::max(best, 2 * rate);
    if (threads == cores) return best;
  }
}

absl::StatusOr<double> HostFlopRate(const CalibrateOptions& options, const Effort& effort, int cores) {
  options.step("multiply-adds by all cores");
  PENSTOCK_ASSIGN_OR_RETURN(Runtime runtime, Runtime::Create({.devices = "host", .host_device_threads = cores}));
  return FlopRate(runtime, 0, options.quick, effort);
}

}  // namespace

absl::StatusOr<Machine> Calibrate(const CalibrateOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(Runtime runtime, Runtime::Create({.devices = options.devices}));
  const std::vector<Device>& devices = runtime.devices();
  const Effort effort = options.quick ? kQuickEffort : EffortFor(devices.size());
  Machine machine;
  machine.host = ProcessorName();
  machine.cores = base::UsableProcessors();
  machine.devices.resize(devices.size());
  int64_t peer_bytes = INT64_MAX;
  for (size_t d = 0; d < devices.size(); ++d) {
    PENSTOCK_RETURN_IF_ERROR(CalibrateDevice(runtime, static_cast<int>(d), options, effort, machine.devices[d]));
    peer_bytes = std::min(peer_bytes, LargeCopy(devices[d], options.quick));
  }
  PENSTOCK_ASSIGN_OR_RETURN(machine.peers, PeerRates(runtime, peer_bytes, effort, options.step));
  PENSTOCK_ASSIGN_OR_RETURN(machine.host_copy, HostCopyRate(options, effort, machine.cores));
  PENSTOCK_ASSIGN_OR_RETURN(machine.host_fp32, HostFlopRate(options, effort, machine.cores));
  return machine;
}

}  // namespace penstock::cli::measure
