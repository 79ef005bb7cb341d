// Compiler: makes from a graph what an executable needs: plan, program, slots and their graphs. It runs once.
//
// Ownership: borrows the context, whose graph it fills, and the mode selection, which learns the limits of graphs.
// Threads:   one thread; no other uses the context meanwhile.
// Errors:    the planner's, with every mistake of the graph; InvalidArgument for options; the driver's, prefixed with
//            the slot or node. What was made by then is freed with the Compiler.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/place/choose_placement.h"
#include "graph/plan/graph_schedule.h"
#include "graph/plan/plan.h"
#include "penstock/compile_options.h"
#include "src/runtime/executable/mode_selection.h"
#include "src/runtime/executable/region_choice.h"
#include "src/runtime/run/run_owner.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

// Capacity on the devices for kernels that wait for the host, reserved for one executable.
class HostcallReservation {
 public:
  HostcallReservation() = default;
  HostcallReservation(const HostcallReservation&) = delete;
  HostcallReservation& operator=(const HostcallReservation&) = delete;
  ~HostcallReservation();
  // `counts`: the number of kernels for each device. Returns false, reserving nothing, if a device lacks the capacity.
  bool Reserve(const std::shared_ptr<RuntimeCore>& runtime, std::vector<int> counts);

 private:
  std::shared_ptr<RuntimeCore> runtime_;
  std::vector<int> counts_;
};

// A graph whose constructs are nodes in the one that is compiled.
struct DeclaredGraph {
  const Model* model = nullptr;  // to be checked whole; null: there are no constructs, or it is itself a part of one
  std::vector<std::string> notes{};  // for the submission report
  bool is_part = false;  // a condition or body of a construct
  bool is_part_of_graph = false;  // it is part of a construct that the device decides: its graph is in another
  bool is_part_of_region = false;  // the same, in a resident region
  // Gives the slots their constructs, before graphs are made of them, and adds to the notes; null: there are none.
  std::function<absl::Status(std::vector<std::unique_ptr<RunSlot>>& slots, std::vector<std::string>& notes)>
      add_constructs{};
};

class Compiler {
 public:
  Compiler(RunContext& context, InFlight* owner, const CompileOptions& options, ModeSelection& modes,
           HostcallReservation& reservation)
      : context_(context),
        owner_(owner),
        options_(options),
        modes_(modes),
        reservation_(reservation),
        regions_(context.graph, *context.runtime) {}

  absl::StatusOr<std::vector<std::unique_ptr<RunSlot>>> Compile(const DeclaredGraph& declared);

 private:
  absl::Status CheckOptions() const;
  Table<DeviceId, graph::PlanDevice> PlanDevices() const;
  void OpenLinks(Table<DeviceId, graph::PlanDevice>& devices) const;
  graph::PlanOptions PlanOptionsOf(Mode wanted);
  bool MayBePartitioned(Mode mode) const;
  absl::Status FuseMaps(const graph::PlanOptions& plan_options);
  absl::Status AddHostChecks(const graph::PlanOptions& plan_options);
  absl::StatusOr<graph::PlacedPlan> MakePlacedPlan(const graph::PlanOptions& options) const;
  absl::Status MakePlan(graph::PlanOptions options);
  absl::Status ChooseRegions(bool part_of_region);
  absl::StatusOr<LoadedKernels> LoadKernels();
  absl::StatusOr<bool> MakeProgram(const LoadedKernels& kernels, const DeclaredGraph& declared);
  absl::Status FindStaging(const driver::DeviceRef& device);
  int SlotCount() const;  // of a plan that has its program
  absl::Status MakeSlots();
  absl::StatusOr<bool> MakeGraphs();
  absl::Status MakeGraphsOfConstructs();
  graph::GraphSchedule ScheduleGraphs();
  std::string TextOfUncaptured(NodeId node) const;
  absl::Status CheckGraphsOfSeveralDevices() const;
  Table<NodeId, bool> RefusedNodes();
  // `what` is about to go on, to whoever wants to know (CompileOptions::progress), and may end Compile.
  absl::Status Tell(const char* what, size_t done, size_t total) const;
  graph::BeforePass TellOfPasses() const;
  absl::Status DescribeSlotError(size_t slot, const absl::Status& cause) const;

  const Model& model() const { return context_.graph.model(); }
  const graph::Plan& plan() const { return context_.graph.plan(); }
  const Program& program() const { return context_.graph.program(); }
  RuntimeCore& runtime() const { return *context_.runtime; }

  RunContext& context_;
  InFlight* const owner_;
  const CompileOptions& options_;
  ModeSelection& modes_;
  HostcallReservation& reservation_;
  std::vector<std::string> uncaptured_;  // for each plan node: why it could not be captured; empty: it could be
  RegionChoice regions_;
  int slot_count_ = 0;
  bool is_part_of_graph_ = false;
  Mode wanted_ = Mode::kGraph;  // before anything is known of the plan
  std::vector<std::unique_ptr<RunSlot>> slots_;
};

}  // namespace penstock::runtime
