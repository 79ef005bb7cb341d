// SimDriver: devices whose time is virtual, on which the runtime runs real programs. It shows that graph/simulate
// models what the runtime does: both give every node the same times (tests/driver/sim, docs/explanation/simulator.md).
//
// Operations are those of host devices, and are executed by their host code, each at the moment at which its virtual
// time is over. How long each takes, and on which resources it waits for others, is that of SimDevice and Options.
// Submissions take virtual time too: the driver call that submits a node returns when that is over.
//
// It has streams, events without timing, copies, fills, kernels, peer copies and graphs of these, on any number of
// devices. Batches, regions, captures, children, conditional nodes, hostcalls, timestamps and calls of the host in
// graphs are Unimplemented. A callable's limit of concurrency does not delay work on devices.
//
// Ownership: owns memory and work; the event count must outlive it.
// Threads:   thread-safe, except for Step. Time goes on as sim_engines.h says.
// Locks:     mu_ for streams, events and graphs; SimEngines::mu_ is taken with it held, and work that takes no time is
//            executed.
// Errors:    as host devices; InvalidArgument for operations that name memory which is not there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/driver/host/graph_nodes.h"
#include "src/driver/host/handle_table.h"
#include "src/driver/host/host_memory.h"
#include "src/driver/host/work_maker.h"
#include "src/driver/sim/sim_engines.h"

namespace penstock::driver::sim {

struct SimDriverOptions {
  std::vector<graph::SimDevice> devices;
  graph::SimOptions times{};  // the costs of submissions, and the latencies; nothing else of it
  // What a node takes, with its resource to itself, and in which run. Nothing: it takes no time, like work of Compile.
  struct Cost {
    int32_t run = 0;
    double us = 0;
  };
  std::function<std::optional<Cost>(const OpTag&)> cost_of;
  // Returns when no other thread of the runtime can do anything before time goes on.
  std::function<void()> settle = [] {};
  penstock::host::EventCount* event_count = nullptr;
};

class SimDriver final : public Driver {
 public:
  explicit SimDriver(SimDriverOptions options);

  // Virtual time: see SimEngines.
  bool Step() { return engines_.Step(); }
  void Spend(double us) { engines_.Spend(graph::InTicks(us)); }
  double now_us() const { return graph::InMicros(engines_.now()); }
  int busy() const { return engines_.busy(); }
  std::vector<graph::SimSpan> spans() const { return engines_.spans(); }

  int device_count() const override { return static_cast<int>(infos_.size()); }
  const DeviceInfo& device(int device) const override { return infos_[static_cast<size_t>(device)]; }
  int MakeCurrent(int /*device*/) override { return 0; }
  void RestoreCurrent(int /*token*/) override {}
  bool notifies_completion() const override { return true; }

  absl::StatusOr<Stream> CreateStream(int device, int priority) override;
  void DestroyStream(Stream stream) override;
  void* NativeStream(Stream /*stream*/) const override { return nullptr; }
  absl::StatusOr<Event> CreateEvent(int device, bool timing) override;
  void DestroyEvent(Event event) override;
  absl::Status Record(Event event, Stream stream) override;
  absl::Status Wait(Stream stream, Event event) override;
  absl::StatusOr<bool> Query(Event event) override;
  absl::StatusOr<double> Elapsed(Event begin, Event end) override;

  absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) override;
  void FreeDevice(int device, void* memory) override;
  int64_t AllocatedOn(int device) const override { return heaps_[static_cast<size_t>(device)]->allocated(); }
  bool OpenLink(int device, int peer) override {
    links_.Open(device, peer);
    return true;
  }
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override { return pinned_.Allocate(bytes); }
  void FreePinned(void* memory) override;
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override;

  absl::Status Copy(Stream stream, const CopyOp& op) override;
  absl::Status CopyBatch(Stream stream, const BatchOp& op) override;
  absl::Status Fill(Stream stream, const FillOp& op) override { return Submit(stream, op); }
  absl::StatusOr<KernelCode> LoadKernel(int device, const KernelSource& source) override;
  absl::Status Launch(Stream stream, const KernelOp& op) override { return Submit(stream, op); }

  absl::StatusOr<Graph> CreateGraph(int device) override;
  void DestroyGraph(Graph graph) override;
  absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                  NodePlace place) override;
  absl::StatusOr<GraphExec> Instantiate(Graph graph) override;
  void DestroyExec(GraphExec exec) override;
  absl::Status Upload(GraphExec exec, Stream stream) override;
  absl::Status LaunchGraph(GraphExec exec, Stream stream) override;
  absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op) override;
  absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled) override;
  absl::Status BeginCapture(Stream stream) override;
  absl::StatusOr<Graph> EndCapture(Stream stream) override;
  absl::StatusOr<int32_t> CountNodes(Graph graph) override;
  absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child) override;
  absl::Status SetChild(GraphExec exec, int32_t node, Graph child) override;

 private:
  // What the next work on a stream waits for, or an event stands for.
  struct Place {
    int device = 0;
    std::vector<SimPredecessor> after{};
  };
  using Nodes = std::shared_ptr<host::GraphNodes>;
  enum class Way : uint8_t { kStream, kGraph };

  absl::StatusOr<int> DeviceOf(Stream stream);
  absl::StatusOr<Nodes> Find(Graph graph);
  absl::StatusOr<Nodes> Find(GraphExec exec);
  int32_t PoolOf(int device, host::EngineKind engine) const;
  // The load of a node's work; of a run, if the node is of one.
  SimLoad LoadOf(int32_t pool, std::unique_ptr<host::Task> task, Way way) const;
  absl::StatusOr<std::vector<SimLoad>> LoadsOf(const host::GraphNodes& nodes);
  template <class Op>
  absl::Status Submit(Stream stream, const Op& op);
  absl::Status SubmitTo(Stream stream, int32_t pool, std::unique_ptr<host::Task> task);

  // Constant after construction.
  const SimDriverOptions options_;
  std::vector<DeviceInfo> infos_;
  std::vector<std::unique_ptr<host::DeviceHeap>> heaps_;

  host::PinnedMemory pinned_;
  host::PeerLinks links_;
  const host::WorkMaker maker_;
  SimEngines engines_;  // its tasks end before the memory is freed

  base::Mutex mu_;
  host::HandleTable<Place> streams_ ABSL_GUARDED_BY(mu_), events_ ABSL_GUARDED_BY(mu_);
  host::HandleTable<Nodes> graphs_ ABSL_GUARDED_BY(mu_), execs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::driver::sim
