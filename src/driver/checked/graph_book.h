// GraphBook: the graphs and execs a checked driver handed out, what their nodes do, and what streams that capture were
// given.
//
// Operations are kept by value, for what they do to memory is asked at each launch: the table of a batch is read then,
// and who tells the uses of a kernel tells those of the run that is launched. Of a kernel's arguments, which are gone
// by then, the pointers are kept.
//
// Threads: not thread-safe; CheckedDriver locks. A graph or exec that is in use is that call's alone, without a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/checked/call_recorder.h"
#include "src/driver/checked/memory_rules.h"
#include "src/driver/checked/numbered.h"
#include "src/driver/checked/stream_book.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

struct KeptKernel {
  std::vector<const void*> pointers;
  const UseSource* uses = nullptr;
  OpTag tag{};
};
using KeptOp = std::variant<CopyOp, BatchOp, FillOp, KeptKernel>;
KeptOp KeptOf(const NodeOp& op);

// Bytes that it moves or fills, as far as it can be known before a launch; 0 for kernels. What every driver asks of a
// copy or a fill may fail.
absl::StatusOr<size_t> BytesOf(const NodeOp& op);

struct GraphNode {
  std::vector<KeptOp> ops;  // one, or those of a child and of the children in it
  bool is_child = false;
  NodeOrder inside{};  // of a child: the order of its operations
  bool enabled = true;
};

struct GraphState {
  Graph inner;
  int device = 0;
  bool in_use = false;
  std::vector<GraphNode> nodes{};
  NodeOrder order{};
};

struct ExecState {
  GraphExec inner;
  int device = 0;
  bool in_use = false;
  std::vector<GraphNode> nodes{};
};

// A stream that captures.
struct CaptureState {
  Stream stream{};
  std::thread::id by{};
  std::vector<KeptOp> ops{};
  absl::Status broken{};
};

GraphNode NodeOf(const NodeOp& op);
GraphNode ChildOf(const GraphState& graph);
// Those of `after` are earlier nodes.
void AddNode(GraphState& graph, std::span<const int32_t> after, GraphNode node);
// The graph of a capture: each node behind the one before.
GraphState GraphOf(Graph inner, int device, std::vector<KeptOp> ops);
GraphOrder OrderOf(const GraphState& graph);

// What the enabled kernels say that they do in a launch now, for each operation of each node; their sources are asked.
std::vector<std::vector<MemoryUse>> DeclaredBy(const ExecState& exec);
// Checks what the enabled nodes do to memory in `launch`, the last operation of the exec's line.
absl::Status UseNodes(const ExecState& exec, const std::vector<std::vector<MemoryUse>>& declared, Work launch,
                      MemoryRules& memory);
// What the enabled nodes move and fill in a launch that UseNodes has accepted.
Totals TotalsOf(const ExecState& exec);

class GraphBook {
 public:
  Graph Add(GraphState state) { return Graph{graphs_.Add(std::move(state))}; }
  GraphExec Add(ExecState state) { return GraphExec{execs_.Add(std::move(state))}; }
  // Null where the handle is not alive; valid until it is removed.
  GraphState* Find(Graph graph) { return graphs_.Find(graph.bits); }
  ExecState* Find(GraphExec exec) { return execs_.Find(exec.bits); }
  void Remove(Graph graph) { graphs_.Remove(graph.bits); }
  void Remove(GraphExec exec) { execs_.Remove(exec.bits); }
  // Streams are alive; one capture each.
  void Add(CaptureState capture) { captures_.emplace(capture.stream.bits, std::move(capture)); }
  CaptureState* FindCapture(Stream stream);
  // One that this thread has begun, or null.
  const CaptureState* FindCaptureBy(std::thread::id thread) const;
  bool DropCapture(Stream stream);  // whether there was one
  std::string WhyNot(Graph graph) const { return graphs_.WhyNot(graph.bits); }
  std::string WhyNot(GraphExec exec) const { return execs_.WhyNot(exec.bits); }

 private:
  Numbered<GraphState> graphs_{"graph"};
  Numbered<ExecState> execs_{"exec"};
  std::map<uint64_t, CaptureState> captures_;  // by stream
};

}  // namespace penstock::driver::checked
