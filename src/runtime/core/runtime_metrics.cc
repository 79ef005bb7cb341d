#include "src/runtime/core/runtime_metrics.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/thread_role.h"
#include "src/observe/shown_name.h"

namespace penstock::runtime {
namespace {

std::vector<Metrics::Device> DeviceMetrics(const std::vector<driver::DeviceRef>& devices) {
  std::vector<Metrics::Device> all;
  for (const driver::DeviceRef& device : devices) {
    all.push_back({device.info.name, device.info.memory_bytes, device.driver->AllocatedOn(device.local)});
  }
  return all;
}

// Stages of pipelines have the names that the program gave them, so kinds may come to the same name.
std::vector<Metrics::Threads> ThreadMetrics() {
  std::map<std::string, Metrics::Threads> by_name;
  for (const base::ThreadRole::Kind& kind : base::ThreadRole::Kinds()) {
    Metrics::Threads& threads = by_name[observe::ShownName(kind.name)];
    threads.count += kind.threads;
    threads.cpu_seconds += static_cast<double>(kind.cpu_ns) / 1e9;
  }
  std::vector<Metrics::Threads> all;
  for (auto& [name, threads] : by_name) {
    all.push_back(std::move(threads));
    all.back().name = name;
  }
  return all;
}

}  // namespace

Metrics MetricsOf(RuntimeCore& runtime) {
  observe::Observed& observed = runtime.observed();
  Metrics metrics;
  metrics.graphs = observed.graphs.Read();
  metrics.devices = DeviceMetrics(runtime.devices());
  metrics.threads = ThreadMetrics();
  metrics.pinned = runtime.device_set().pinned_gauges();
  const memory::StagedBytes staged = runtime.staging().posted();
  metrics.staged_upload_bytes = staged.up;
  metrics.staged_download_bytes = staged.down;
  metrics.hostcalls = observed.counts.hostcalls.get();
  metrics.graph_instantiations = observed.counts.instantiations.get();
  metrics.captures = observed.counts.captures.get();
  metrics.lost_spans = observed.profile.trace()->lost_spans();
  metrics.lost = runtime.admission().failed();
  return metrics;
}

}  // namespace penstock::runtime
