// Devices: the drivers and devices of a runtime, the pinned pool of each driver, and the NUMA node near each device.
//
// Ownership: owns the drivers and pools; borrows the logger and the event count.
// Threads:   constant after Make; pools are thread-safe.
// Errors:    Make returns InvalidArgument for a list that names no devices, NotFound without CUDA, or a driver's error.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/runtime.h"
#include "src/base/log.h"
#include "src/driver/device_ref.h"
#include "src/host/event_count.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/topology.h"

namespace penstock::runtime {

class Devices {
 public:
  // `cores`: the number of cores that the process may use.
  Devices(const base::Logger& logger, host::EventCount& event_count, int cores)
      : logger_(logger), event_count_(event_count), cores_(cores) {}
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // With `checked`, a checked driver is put in front of each driver.
  absl::Status Make(const RuntimeOptions& options, int64_t pinned_bytes, bool checked);

  const std::vector<driver::DeviceRef>& refs() const { return refs_; }
  const driver::DeviceRef& ref(int device) const { return refs_[device]; }
  const std::vector<Device>& public_devices() const { return public_devices_; }
  int cores() const { return cores_; }
  // Whether every driver notifies the event count.
  bool notifies_completion() const { return notifies_; }

  memory::PinnedPool& pinned(int driver_index) { return *pools_[driver_index]; }
  int64_t pinned_budget() const { return pinned_bytes_; }
  PinnedGauges pinned_gauges() const;
  void TrimPools();
  void EndPoolThreads();
  void DropPools() { pools_.clear(); }

  // The NUMA node near a device; -1 if it has none or the machine has only one.
  int NodeOf(const driver::DeviceInfo& device) const;
  // Whether the machine has several NUMA nodes, so that it matters where a thread runs.
  bool HasNodes() const { return topology_ != nullptr && topology_->nodes() > 1; }
  // Binds the calling thread, number `number` of those named `what`, to the node. Threads in excess of the node's
  // processors are left unbound, since the node could not run them all at once.
  void BindToNode(int node, int number, const char* what) const;
  // Binds a thread that must run near the device.
  void RunNear(const driver::DeviceInfo& device, const char* what) const;

 private:
  absl::Status AddAll(const RuntimeOptions& options);
  absl::Status AddHost(int count, const RuntimeOptions& options);
  absl::Status AddCuda(const std::vector<int>& ordinals, const RuntimeOptions& options);
  absl::Status AddDefault(const RuntimeOptions& options);
  void AddDriver(std::unique_ptr<driver::Driver> driver);
  void LoadTopology();
  memory::PinnedPoolOptions PoolOptions(const driver::Driver& driver);

  const base::Logger& logger_;
  host::EventCount& event_count_;
  const int cores_;
  bool checked_ = false;
  std::vector<std::unique_ptr<driver::Driver>> drivers_;
  std::vector<driver::DeviceRef> refs_;
  std::vector<Device> public_devices_;
  bool notifies_ = true;
  int64_t pinned_bytes_ = 0;
  std::shared_ptr<memory::PinnedBudget> budget_;
  std::shared_ptr<const memory::Topology> topology_;  // null if not needed or not available
  std::vector<std::shared_ptr<memory::PinnedPool>> pools_;  // one for each driver
};

}  // namespace penstock::runtime
