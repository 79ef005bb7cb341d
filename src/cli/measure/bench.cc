#include "src/cli/measure/bench.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/limits.h"
#include "src/cli/measure/copy_rig.h"
#include "src/cli/measure/launch_costs.h"
#include "src/cli/measure/peers.h"

namespace penstock::cli::measure {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

struct NamedRoute {
  Route route;
  const char* name;
};
constexpr NamedRoute kRoutes[] = {
    {Route::kUpload, "H2D pinned"},
    {Route::kDownload, "D2H pinned"},
    {Route::kUploadBothWays, "H2D both ways"},
    {Route::kDownloadBothWays, "D2H both ways"},
    {Route::kStagedUpload, "H2D not pinned"},
    {Route::kStagedDownload, "D2H not pinned"},
    {Route::kWithin, "D2D"},
};

// Copies between devices take eight times as much on each, and others three times as much on the host.
int64_t WhatFits(const Device& device) {
  return std::min(device.memory_bytes / 16, base::MemoryOfProcess().bytes / 16);
}

// Each four times the one before. Host devices copy as any program does, which needs no GiB to be seen.
std::vector<int64_t> SizesFor(const Device& device, const BenchOptions& options) {
  if (!options.sizes.empty()) return options.sizes;
  const int64_t most = options.quick ? kMiB : device.is_cuda ? 1024 * kMiB : 16 * kMiB;
  std::vector<int64_t> sizes;
  for (int64_t bytes = 4 * kKiB; bytes <= std::min(most, WhatFits(device)); bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

int64_t LargestFor(const Device& device, const BenchOptions& options) {
  if (options.sizes.empty()) return LargeCopy(device, options.quick);
  return *std::max_element(options.sizes.begin(), options.sizes.end());
}

absl::Status MeasureCopies(Runtime& runtime, int index, const BenchOptions& options, std::vector<Figure>& figures) {
  const Device& device = runtime.devices()[static_cast<size_t>(index)];
  const std::vector<int64_t> sizes = SizesFor(device, options);
  if (sizes.empty()) return absl::ResourceExhaustedError(absl::StrCat(device.name, " has too little memory"));
  const int64_t most = std::max(LargeCopy(device, options.quick), *std::max_element(sizes.begin(), sizes.end()));
  PENSTOCK_ASSIGN_OR_RETURN(CopyRig rig, CopyRig::Make(runtime, index, most));
  for (const int64_t bytes : sizes) {
    for (const NamedRoute& route : kRoutes) {
      options.step(absl::StrCat(device.name, ": ", route.name, ", ", BytesText(bytes)));
      PENSTOCK_ASSIGN_OR_RETURN(const double rate, rig.Rate(route.route, bytes, options.effort));
      figures.push_back({.part = Part::kCopies,
                         .device = device.name,
                         .what = route.name,
                         .bytes = bytes,
                         .unit = "GB/s",
                         .value = rate});
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureMemory(Runtime& runtime, int index, const BenchOptions& options, std::vector<Figure>& figures) {
  const Device& device = runtime.devices()[static_cast<size_t>(index)];
  const int64_t bytes = LargestFor(device, options);
  options.step(absl::StrCat(device.name, ": memory"));
  PENSTOCK_ASSIGN_OR_RETURN(CopyRig rig, CopyRig::Make(runtime, index, bytes));
  PENSTOCK_ASSIGN_OR_RETURN(const double copy, rig.Rate(Route::kWithin, bytes, options.effort));
  PENSTOCK_ASSIGN_OR_RETURN(const double fill, rig.FillRate(bytes, options.effort));
  const auto add = [&](const char* what, double rate) {
    figures.push_back(
        {.part = Part::kMemory, .device = device.name, .what = what, .bytes = bytes, .unit = "GB/s", .value = rate});
  };
  add("copy", 2 * copy);  // it reads as much as it writes
  add("fill", fill);
  return absl::OkStatus();
}

absl::Status MeasureLaunchesOf(Runtime& runtime, int index, const BenchOptions& options, std::vector<Figure>& figures) {
  const Device& device = runtime.devices()[static_cast<size_t>(index)];
  options.step(absl::StrCat(device.name, ": launches"));
  PENSTOCK_ASSIGN_OR_RETURN(const LaunchCosts costs, MeasureLaunches(runtime, index, options.effort));
  const std::pair<const char*, double> rows[] = {{"launch", costs.launch},           {"empty run", costs.empty_run},
                                                 {"stream node", costs.stream_node}, {"graph node", costs.graph_node},
                                                 {"host node", costs.host_node},     {"small copy", costs.small_copy}};
  for (const auto& [what, us] : rows) {
    figures.push_back({.part = Part::kLaunches, .device = device.name, .what = what, .unit = "us", .value = us});
  }
  return absl::OkStatus();
}

absl::Status MeasurePeers(Runtime& runtime, const BenchOptions& options, std::vector<Figure>& figures) {
  const std::vector<Device>& devices = runtime.devices();
  int64_t bytes = LargestFor(devices[0], options);
  for (const Device& device : devices) bytes = std::min(bytes, LargestFor(device, options));
  PENSTOCK_ASSIGN_OR_RETURN(const auto rates, PeerRates(runtime, bytes, options.effort, options.step));
  for (size_t from = 0; from < devices.size(); ++from) {
    for (size_t to = 0; to < devices.size(); ++to) {
      if (from == to) continue;
      figures.push_back({.part = Part::kPeers,
                         .device = devices[from].name,
                         .to = devices[to].name,
                         .what = "peer",
                         .bytes = bytes,
                         .unit = "GB/s",
                         .value = rates[from][to]});
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t LargeCopy(const Device& device, bool quick) {
  return std::min(quick ? kMiB : device.is_cuda ? 256 * kMiB : 64 * kMiB, WhatFits(device));
}

absl::Status MeasurePart(Runtime& runtime, Part part, const BenchOptions& options, std::vector<Figure>& figures) {
  if (part == Part::kPeers) return MeasurePeers(runtime, options, figures);
  const auto measure = part == Part::kCopies     ? MeasureCopies
                       : part == Part::kLaunches ? MeasureLaunchesOf
                                                 : MeasureMemory;
  for (size_t d = 0; d < runtime.devices().size(); ++d) {
    PENSTOCK_RETURN_IF_ERROR(measure(runtime, static_cast<int>(d), options, figures));
  }
  return absl::OkStatus();
}

}  // namespace penstock::cli::measure
