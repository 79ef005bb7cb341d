// GraphReplay: the CUDA graphs of one slot. They are made once, launched by each run, and given only what has changed
// since the launch before.
//
// A node that cannot be known before the first launch (bound memory) is made with a placeholder, and the first launch
// sets it, or switches it off, before it runs; one that never has anything to do is switched off at once. CUDA takes
// new addresses for copies of lines only; so a copy that may be of rows with something between them and varies is a
// batch of one piece.
//
// Ownership: owns its graphs, the placeholders' memory and the tables of those batches; borrows the slot.
// Threads:   belongs to whoever owns the slot. Counts may be read by anybody.
// Ordering:  what is set counts for the launches after. The slot's last run has ended before.
// Errors:    the driver's. What could not be set is tried again by the next launch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/replay_ledger.h"
#include "src/driver/driver.h"
#include "src/host/bell.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/program.h"

namespace penstock::runtime {

class ExecutableCore;
struct DeviceRef;
struct Slot;

class GraphReplay {
 public:
  struct Options {
    const Program* program;
    const graph::Plan* plan;
    const DeviceRef* device;
    memory::PinnedPool* pinned;
    int pinned_node;
    host::Bell* bell;
    const ExecutableCore* core;  // for the words of errors
  };
  // Instantiates the graphs and uploads them; returns when that is done.
  static absl::StatusOr<std::unique_ptr<GraphReplay>> Create(const Options& options, Slot& slot);
  ~GraphReplay();
  GraphReplay(const GraphReplay&) = delete;
  GraphReplay& operator=(const GraphReplay&) = delete;

  // Says that the arguments of a call (Program::calls), or anything that varies, may no longer be what they were.
  void CallMayDiffer(int32_t call);
  void AllMayDiffer() { all_differ_ = true; }

  // Gives the graphs what the slot's operations have that they have not; nothing where nothing may differ. Where it
  // fails, `node` is the plan's. The device is current, as for Launch.
  absl::Status Update(int32_t& node);
  absl::Status Launch(int32_t graph, driver::Stream stream);

  void AddTo(ReplayLedger& ledger) const;

 private:
  // Counted by the slot's owner, read by anybody.
  struct Count {
    std::atomic<int64_t> value{0};
    void operator++() { value.store(value.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  };
  // What an entry of the program is in its graph now.
  struct Node {
    int32_t graph = -1;
    int32_t number = -1;  // in its graph
    int32_t piece = -1;  // of a copy that is a batch: its entry of `piece_ops_`
    bool enabled = true;
    bool known = false;  // `set_*` says what it does
    bool marked = false;  // it is in `differing_`
  };
  // The operation of an entry for the slot's next run; `off`: it has nothing to do.
  struct Wanted {
    driver::NodeOp op;
    bool off = false;
  };
  struct SetKernel {
    std::array<uint32_t, 3> grid{};
    int64_t rows = 0;
  };

  GraphReplay(const Options& options, Slot& slot);
  void FindPieces();
  absl::Status MakeScratch();
  absl::Status MakeGraph(int32_t graph);
  absl::Status AddNodes(int32_t graph, driver::Graph to);
  absl::StatusOr<int32_t> AddNode(const ReplayEntry& entry, Node& node, driver::Graph to,
                                  const std::vector<int32_t>& after, int priority);
  absl::Status SwitchOffWhatNeverRuns(int32_t graph);
  absl::Status UploadAll();
  absl::Status AwaitUpload(driver::Event event, driver::Stream stream) const;
  absl::Status UpdateEntry(const ReplayEntry& entry, Node& node);
  absl::Status Enable(Node& node, bool enabled);
  absl::StatusOr<Wanted> WantedOf(const ReplayEntry& entry, const Node& node);
  bool IsSet(const ReplayEntry& entry, const Node& node) const;
  void Keep(const ReplayEntry& entry, const Node& node);
  driver::GraphExec ExecOf(const Node& node) const { return execs_[static_cast<size_t>(node.graph)]; }

  const Options options_;
  const ReplayProgram& replay_;
  Slot& slot_;
  driver::Driver& driver_;
  memory::PinnedBlock pinned_;  // what placeholders name, then the tables of `piece_ops_`
  void* scratch_ = nullptr;  // what placeholders name of device memory
  std::vector<driver::GraphExec> execs_;
  std::vector<Node> nodes_;  // an entry each
  driver::CopyPiece* pieces_ = nullptr;
  std::vector<driver::BatchOp> piece_ops_;
  // What the graphs' nodes do. Parallel to Slot::copies, `piece_ops_`, Slot::batches, fills, kernels and args.
  std::vector<driver::CopyOp> set_copies_;
  std::vector<driver::BatchSize> set_pieces_;
  std::vector<driver::BatchOp> set_batches_;
  std::vector<driver::FillOp> set_fills_;
  std::vector<SetKernel> set_kernels_;
  std::vector<std::byte> set_args_;

  std::vector<int32_t> differing_;  // entries, each once; room for all
  bool all_differ_ = true;
  Count launches_, sets_, switches_;
};

}  // namespace penstock::runtime
