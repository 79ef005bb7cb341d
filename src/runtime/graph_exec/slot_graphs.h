// SlotGraphs: the CUDA graphs of one slot. They are made once, launched by each run, and given only what has changed
// since the launch before.
//
// A node that cannot be known before the first launch (bound memory) is made with a placeholder, and the first launch
// sets it, or switches it off, before it runs; one that never has anything to do is switched off at once. CUDA takes
// new addresses for copies of lines only; so a copy that may be of rows with something between them and varies is a
// batch of one piece.
//
// Where many nodes have new parameters launch after launch, they read these from device memory instead, and the graph
// is made again once for that (parameter_indirection.h); the copy is the first node of the graph, its head. A head that
// copies nothing is switched off, and still worth having: a graph that begins with one kernel is launched faster than
// one that begins with many (bench/replay). Copies by the copy engines do not wait for it.
//
// Where the executable has a trace, stamps stand among the nodes (node_timestamps.h).
//
// Ownership: owns its graphs, the memory of parameters and placeholders, the tables of batches, and the stamps; borrows
//            the slot.
// Threads:   belongs to whoever owns the slot. Counts may be read by anybody.
// Ordering:  what is set counts for the launches after. The slot's last run has ended before.
// Locks:     mu_, for the submission_report's words, a leaf.
// Errors:    the driver's. What could not be set is tried again by the next launch.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/submission_report.h"
#include "src/base/mutex.h"
#include "src/driver/device_ref.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/calls/host_call.h"
#include "src/runtime/calls/hostcalls.h"
#include "src/runtime/calls/launch_objects.h"
#include "src/runtime/graph_exec/node_timestamps.h"
#include "src/runtime/graph_exec/parameter_indirection.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class SlotGraphs {
 public:
  struct Options {
    std::vector<LaunchObjects>& launch;  // a lane each
    const Hostcalls* hostcalls;  // null where no node asks the host
    bool upload;  // now, or by the first launch
  };
  // Instantiates the graphs and, where asked to, uploads them; returns when that is done. Graphs with a Launch node
  // whose arguments are decided by launches are instantiated by the first. Where it fails since a Launch node
  // could not be captured, the Status names that (base::TakeNode).
  static absl::StatusOr<std::unique_ptr<SlotGraphs>> Create(const Options& options, Slot& slot);
  // One whose graphs are one, which is never instantiated here: all that the slot has bound is settled in it, and
  // others than runs launch it. Host nodes are nodes, and CallExportedNode does them.
  static absl::StatusOr<std::unique_ptr<SlotGraphs>> Export(const Options& options, Slot& slot);
  // That graph, in the platform's own terms (Driver::NativeGraph).
  void* native_whole() const { return native_whole_; }
  ~SlotGraphs();
  SlotGraphs(const SlotGraphs&) = delete;
  SlotGraphs& operator=(const SlotGraphs&) = delete;

  // Says that a parameter differs from that of the slot's run before. True: all who take it read it by reference, and
  // none of their arguments need be written.
  bool ReadsByRef(size_t param);
  // The same of a call (Program::calls) that takes it. False: its arguments need not be written.
  bool TakesParam(int32_t call);
  // The same of a value among a call's arguments, of a fill's pattern, and of a callable (its memory stays where it
  // is).
  void ValueDiffers(int32_t call);
  void FillDiffers(int32_t fill);
  void CallableDiffers(int32_t call);
  // Says that anything that varies may be another.
  void AllMayDiffer() { all_differ_ = true; }

  // Before Update: calls the Launch nodes whose arguments are not those they were captured with. False: one is being
  // called elsewhere; another try goes on there. A failure names the node.
  absl::StatusOr<bool> Capture();
  // Once a run, before its first graph: gives the graphs what the slot's operations have that they have not; nothing
  // where nothing may differ. A failure names the node of the plan. The device is current, as for Launch.
  absl::Status Update();
  absl::Status Launch(int32_t graph, driver::Stream stream);

  // From now on only graphs use the slot's arguments, so that some of them need not be kept.
  void OnlyGraphs() { indirection_.Allow(); }

  // Gives back the graphs, but not the memory: freeing it would wait for the device.
  void Drop();

  void AddTo(SubmissionReport& submission_report) const;

  // Null where nodes are not stamped.
  NodeTimestamps* timestamps() const { return timestamps_.get(); }
  // Whether the node of an entry did anything in the graphs' last launch.
  bool IsOn(int32_t entry) const { return nodes_[static_cast<size_t>(entry)].enabled; }

 private:
  // Counted by the slot's owner, read by anybody.
  struct Count {
    std::atomic<int64_t> value{0};  // only the owner adds
    void operator+=(int64_t n) { value.store(get() + n, std::memory_order_relaxed); }
    void operator++() { *this += 1; }
    int64_t get() const { return value.load(std::memory_order_relaxed); }
  };
  // Adds how long it lives to a count.
  class Timed {
   public:
    explicit Timed(Count& nanoseconds) : nanoseconds_(nanoseconds) {}
    ~Timed() { nanoseconds_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count(); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    Count& nanoseconds_;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };
  // What an entry of the program is in its graph now.
  struct Node {
    int32_t graph = -1;
    int32_t number = -1;  // in its graph
    int32_t last = -1;  // what others come behind: itself, or its stamp
    int32_t piece = -1;  // of a copy that is a batch: its entry of `piece_ops_`
    driver::Graph child;  // of a Launch node: what was captured of it
    bool enabled = true;
    bool known = false;  // `set_*` says what it does
    bool marked = false;  // it is in `differing_`
  };
  struct Made {
    driver::GraphExec exec;
    bool anew = true;  // it is to be made, or made again, since a child has another structure
    int32_t head = -1;  // the node it begins with, if it has one
    bool head_enabled = true;
  };
  // What the host does in what is exported: a host step, or what a device would ask for.
  struct HostNode {
    ExportedNode node;
    Slot* slot = nullptr;
    driver::HostCall code{};
  };
  // One thing behind the other.
  struct Chain {
    driver::Graph graph;
    std::vector<int32_t> last;  // the node added last, if any
    std::vector<bool> steps;  // host steps that have been seen to
  };
  // The operation of an entry for the slot's next run; `off`: it has nothing to do.
  struct Wanted {
    driver::NodeOp op;
    bool off = false;
  };
  struct SetKernel {
    std::array<uint32_t, 3> grid{};
    int64_t rows = 0;
    const void* callable = nullptr;
    friend bool operator==(const SetKernel&, const SetKernel&) = default;
  };

  SlotGraphs(const Options& options, Slot& slot);
  void FindPieces();
  absl::Status MakeScratch();
  void MakeRefs();
  absl::Status CaptureWhatIsKnown();
  absl::StatusOr<bool> CaptureEntry(int32_t entry);
  absl::Status CaptureAll();
  absl::StatusOr<driver::Graph> Join();
  absl::Status JoinInto(Chain& chain);
  absl::Status AddPart(int32_t graph, Chain& chain);
  absl::Status AddHostStep(int32_t step, Chain& chain);
  absl::StatusOr<int32_t> AddHost(const ExportedNode& node, driver::Graph to, std::span<const int32_t> after);
  static void CallHostNode(void* context);
  bool WaitsForCapture(int32_t graph) const;
  absl::Status MakeAnew();
  absl::Status MakeGraph(int32_t graph, bool bound);
  absl::Status AddNodes(int32_t graph, driver::Graph to, bool bound);
  absl::Status AddHead(int32_t graph, driver::Graph to);
  bool WantsHead(int32_t graph, int32_t e) const;
  absl::Status AddEntry(int32_t entry, driver::Graph to, std::vector<int32_t>& after, int priority, bool bound);
  absl::StatusOr<int32_t> AddNode(const GraphNodeEntry& entry, Node& node, driver::Graph to,
                                  const std::vector<int32_t>& after, int priority, bool bound);
  absl::StatusOr<int32_t> AddNothing(driver::Graph to, const std::vector<int32_t>& after);
  absl::Status SwitchOff(int32_t graph, bool bound);
  void DestroyChild(Node& node);
  absl::Status UploadAll();
  void Mark(int32_t entry);
  void ChangeIndirection();
  bool MayReadParams(const GraphNodeEntry& entry) const;
  void EnableIndirection(int32_t entry);
  void DisableIndirection(int32_t entry);
  void MakeAnewFor(const Node& node, std::string why);
  static SetKernel KernelOf(const driver::KernelOp& op) { return {op.grid, op.rows, op.callable}; }
  absl::Status UpdateEntries(const std::vector<int32_t>& entries);
  absl::Status UpdateEntry(const GraphNodeEntry& entry, Node& node);
  absl::Status Enable(Node& node, bool enabled);
  absl::Status EnableHead(int32_t graph, bool enabled);
  const driver::KernelOp* ByRef(int32_t call);
  absl::StatusOr<Wanted> WantedOf(const GraphNodeEntry& entry, const Node& node);
  bool IsSet(const GraphNodeEntry& entry, const Node& node) const;
  void Keep(const GraphNodeEntry& entry, const Node& node);
  Made& MadeOf(const Node& node) { return made_[static_cast<size_t>(node.graph)]; }

  const Options options_;
  const graph::Plan& plan_;
  const Program& program_;
  const driver::DeviceRef& device_;
  bool exported_ = false;  // nothing is set or switched off later
  driver::Graph whole_;  // of what is exported
  void* native_whole_ = nullptr;
  std::vector<std::unique_ptr<HostNode>> host_nodes_;
  const GraphProgram& replay_;
  Slot& slot_;
  SlotTables& tables_;
  driver::Driver& driver_;
  memory::PinnedBlock pinned_;  // what placeholders name, then the tables of `piece_ops_` and `refresh_`
  std::unique_ptr<NodeTimestamps> timestamps_;
  void* scratch_ = nullptr;  // what placeholders name of device memory, then the parameters
  std::vector<Node> nodes_;  // an entry each
  std::vector<Made> made_;  // a graph each
  driver::CopyPiece* pieces_ = nullptr;
  std::vector<driver::BatchOp> piece_ops_;
  // What the graphs' nodes do. Parallel to SlotTables::copies, `piece_ops_`, SlotTables::batches, fills, kernels and
  // args.
  std::vector<driver::CopyOp> set_copies_;
  std::vector<driver::BatchSize> set_pieces_;
  std::vector<driver::BatchOp> set_batches_;
  std::vector<driver::FillOp> set_fills_;
  std::vector<SetKernel> set_kernels_;
  std::vector<std::byte> set_args_;

  std::vector<int32_t> differing_;  // entries, each once; room for all
  bool all_differ_ = true;
  bool any_anew_ = true;  // some graph may be to be made

  // SlotTables::param_bytes on the device.
  driver::BatchOp refresh_;  // of one piece: brings them there
  int32_t refreshed_by_ = -1;  // the graph with whose head that is
  std::vector<void*> ref_argv_;  // as SlotTables::argv, of calls that read them there
  ParameterIndirection indirection_;
  driver::KernelOp by_ref_;

  Count instantiations_, nodes_made_, launches_, sets_, switches_, refreshes_, captures_;
  Count instantiating_ns_, capturing_ns_;
  mutable base::Mutex mu_;
  std::string remade_ ABSL_GUARDED_BY(mu_);  // why the last graph was that had been made before
};

}  // namespace penstock::runtime
