// CompiledGraph: what Compile makes of a graph and no run changes: model, plan, program, devices, and the gates that
// limit how often a callable runs at the same time.
//
// Ownership: owned by its executable; owns all but the devices and the event count, which are the runtime's.
// Threads:   the setters belong to Compile, before there is a slot. After that everything is constant, and thread-safe.
// Errors:    Describe puts into a Status which node failed, on which device, and where it was declared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/plan/plan.h"
#include "penstock/detail/model.h"
#include "penstock/trace.h"
#include "src/base/try_semaphore.h"
#include "src/driver/device_ref.h"
#include "src/host/event_count.h"
#include "src/runtime/program/program.h"

namespace penstock::runtime {

class CompiledGraph {
 public:
  // `default_device`: where a plan without lanes is at home. `event_count`: of the runtime. `trace`: null where runs
  // are not recorded.
  CompiledGraph(std::shared_ptr<const Model> model, const std::vector<driver::DeviceRef>& devices,
                int32_t default_device, std::shared_ptr<Trace> trace, host::EventCount& event_count);
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  // Compile calls these in this order.
  void SetModel(std::shared_ptr<const Model> model) { model_ = std::move(model); }
  void SetPlan(graph::Plan plan);
  void SetProgram(Program program);

  const Model& model() const { return *model_; }
  const std::shared_ptr<const Model>& shared_model() const { return model_; }
  const graph::Plan& plan() const { return plan_; }
  const Program& program() const { return program_; }
  const std::shared_ptr<Trace>& trace() const { return trace_; }  // null: runs are not recorded

  const std::vector<driver::DeviceRef>& devices() const { return devices_; }
  const driver::DeviceRef& device(int32_t device) const { return devices_[static_cast<size_t>(device)]; }
  // The device of the first lane.
  int32_t home() const { return home_; }
  // The driver of that device, which has all others of the plan too.
  driver::Driver& driver() const { return *device(home_).driver; }
  int local_device_of_lane(int32_t lane) const { return lane_devices_[static_cast<size_t>(lane)]; }

  // One callable runs at most `concurrency` times at the same time, over all slots. EnterGate never blocks; LeaveGate
  // notifies the event count where somebody has been refused.
  bool EnterGate(int32_t node) const;
  void LeaveGate(int32_t node) const;
  // The gate of a call (Program::calls) for the operations of a host device.
  driver::TrySemaphore* device_gate(size_t call) const { return &device_gates_[call]; }

  // `cause` with the node of the plan, or the graph where `node` is -1, in front.
  absl::Status Describe(int32_t node, const absl::Status& cause) const;
  // "graph 'name'".
  std::string Label() const;
  std::string TextOfNode(int32_t node) const;
  // "launching nodes 'a' to 'z', 26 in one graph".
  std::string TextOfGraph(int32_t graph) const;

 private:
  bool HasGate(int32_t node) const;

  const std::vector<driver::DeviceRef>& devices_;
  const std::shared_ptr<Trace> trace_;
  host::EventCount& event_count_;
  std::shared_ptr<const Model> model_;
  graph::Plan plan_;
  Program program_;
  int32_t home_;
  std::vector<int> lane_devices_;
  mutable std::vector<base::TrySemaphore<>> gates_;  // a plan node each
  mutable std::vector<driver::TrySemaphore> device_gates_;  // a call each
};

}  // namespace penstock::runtime
