// CompiledGraph: the results of Compile that no run changes: model, plan, program, devices, and the gates that limit
// how many calls of a callable run at the same time.
//
// Ownership: owned by its executable; owns everything except the devices and the event count, which are the runtime's.
// Threads:   Compile calls the setters before any slot exists. After that everything is constant and thread-safe.
// Errors:    Describe adds to a Status which node failed, on which device, and where it was declared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/plan/plan.h"
#include "penstock/detail/model.h"
#include "penstock/placement.h"
#include "penstock/trace.h"
#include "src/base/try_semaphore.h"
#include "src/driver/device_ref.h"
#include "src/host/event_count.h"
#include "src/runtime/program/graph_annotations.h"
#include "src/runtime/program/program.h"

namespace penstock::runtime {

class CompiledGraph {
 public:
  // `default_device`: the home of a plan without lanes. `event_count`: the runtime's. `trace`: null if not recorded.
  CompiledGraph(std::shared_ptr<const Model> model, const std::vector<driver::DeviceRef>& devices,
                int32_t default_device, std::shared_ptr<Trace> trace, host::EventCount& event_count);
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  // Compile calls these setters in this order.
  // `declared`: of each node, the one of the model that was given before; none: the same.
  void SetModel(std::shared_ptr<const Model> model, detail::Table<DeclId, DeclId> declared = {}) {
    model_ = std::move(model);
    declared_ = std::move(declared);
  }
  // `placement`: between which ways to place the nodes Compile chose; empty: it did not.
  void SetPlan(graph::Plan plan, std::vector<PlacementReport::Candidate> placement);
  void SetProgram(Program program);

  const Model& model() const { return *model_; }
  // The node as declared that a node of the model stands for; of several, the last.
  DeclId DeclaredNode(DeclId node) const { return declared_.empty() ? node : declared_[node]; }
  const std::shared_ptr<const Model>& shared_model() const { return model_; }
  const graph::Plan& plan() const { return plan_; }
  const std::vector<PlacementReport::Candidate>& placement() const { return placement_; }
  const Program& program() const { return program_; }
  const std::shared_ptr<Trace>& trace() const { return trace_; }  // null if runs are not recorded
  int64_t number() const { return number_; }  // of the executable, in the process
  const GraphAnnotations& annotations() const { return annotations_; }

  const std::vector<driver::DeviceRef>& devices() const { return devices_; }
  const driver::DeviceRef& device(int32_t device) const { return devices_[device]; }
  // The device of the first lane.
  int32_t home() const { return home_; }
  // The driver of that device; it drives all other devices of the plan too.
  driver::Driver& driver() const { return *driver_; }
  int local_device_of_lane(int32_t lane) const { return lane_devices_[lane]; }
  // Returns the index in the driver of a node's device. The node does not run on the host.
  int local_device_of(NodeId node) const { return devices_[plan_.nodes[node].device].local; }

  // At most `concurrency` calls of one callable run at the same time over all slots. EnterGate never blocks; LeaveGate
  // notifies the event count if a caller has been refused.
  bool EnterGate(int32_t node) const;
  void LeaveGate(int32_t node) const;
  // The gate of a call (Program::calls), used by the operations of a host device.
  driver::TrySemaphore* device_gate(size_t call) const { return &device_gates_[call]; }

  // `cause`, prefixed with the node of the plan, or with the graph if `node` is -1.
  absl::Status Describe(int32_t node, const absl::Status& cause) const;
  // "graph 'name'".
  const std::string& Label() const { return *label_; }
  const std::shared_ptr<const std::string>& shared_label() const { return label_; }
  std::string TextOfNode(int32_t node) const;
  // "launching nodes 'a' to 'z', 26 in one graph".
  std::string TextOfGraph(int32_t graph) const;

 private:
  bool HasGate(int32_t node) const;

  const std::vector<driver::DeviceRef>& devices_;
  const std::shared_ptr<Trace> trace_;
  const int64_t number_;
  host::EventCount& event_count_;
  std::shared_ptr<const Model> model_;
  detail::Table<DeclId, DeclId> declared_;
  const std::shared_ptr<const std::string> label_;
  graph::Plan plan_;
  std::vector<PlacementReport::Candidate> placement_;
  Program program_;
  GraphAnnotations annotations_;
  int32_t home_;
  driver::Driver* driver_ = nullptr;  // of home_
  std::vector<int> lane_devices_;
  mutable std::vector<base::TrySemaphore<>> gates_;  // one for each plan node
  mutable std::vector<driver::TrySemaphore> device_gates_;  // one for each call
};

}  // namespace penstock::runtime
