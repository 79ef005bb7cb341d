// GraphBook: the graphs and execs that a checked driver handed out, what their nodes do, and the work
// captured on streams.
//
// Operations are kept by value, since their effect on memory is determined at each launch: a batch's table is read
// then, and a kernel's UseSource describes the run being launched. Of a kernel's arguments, which are gone by then,
// only the pointers are kept.
//
// Threads: not thread-safe; CheckedDriver locks. A graph or exec in use belongs to that call alone, without a lock.
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

struct PlacedOp {
  KeptOp op;
  int device = 0;
};

// The bytes that the operation moves or fills, as far as they are known before a launch; 0 for kernels. Fails for
// copies and fills that every driver refuses.
absl::StatusOr<size_t> BytesOf(const NodeOp& op);

struct GraphNode {
  // One, or those of a child and of the children nested in it; in an exec also those of a conditional node's bodies.
  std::vector<PlacedOp> ops;
  bool is_child = false;  // has any number of operations
  NodeOrder inside{};  // their order
  bool enabled = true;
  bool has_switch = false;  // kernels may switch it off
  Alternative alternative{};
  ConditionalKind kind = ConditionalKind::kIf;  // of a conditional node
  std::vector<Graph> bodies{};  // of a conditional node
  std::vector<bool> off{};  // in an exec, of a conditional node: operations that are not enabled
  bool loops = false;  // in an exec: it is a loop, or has one in it
};

struct GraphState {
  Graph inner;
  int device = 0;
  bool in_use = false;
  std::vector<GraphNode> nodes{};
  NodeOrder order{};
  Graph of{};  // of a body: the graph that it belongs to
};

// Where an exec has the operations of a body: in its node `node`, those of the body's n-th node from `first[n]` on.
struct BodyPlace {
  Graph body;
  size_t node = 0;
  std::vector<size_t> first{};
  std::vector<GraphNode> nodes{};  // the body's
};

struct ExecState {
  GraphExec inner;
  int device = 0;
  bool in_use = false;
  std::vector<GraphNode> nodes{};
  std::vector<BodyPlace> bodies{};
  // Of what BodyOf has returned: the exec, and which of its bodies.
  GraphExec whole{};
  size_t place = 0;
};

// A stream that captures.
struct CaptureState {
  Stream stream{};
  std::thread::id by{};
  std::vector<KeptOp> ops{};
  absl::Status broken{};
};

GraphNode NodeOf(const NodeOp& op, int device);
GraphNode ChildOf(const GraphState& graph);
// `after` names earlier nodes.
void AddNode(GraphState& graph, std::span<const int32_t> after, GraphNode node);
// The node has become one of these alternatives: it comes after the nodes of others, as far as rules are concerned.
void PutInOrder(GraphState& graph, size_t node, Alternative alternative);
// The graph of a capture: each node comes after the one before.
GraphState GraphOf(Graph inner, int device, std::vector<KeptOp> ops);
GraphOrder OrderOf(const GraphState& graph);

// The uses that the enabled kernels declare for a launch now, for each operation of each node; calls their sources.
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
  // Null if the handle is not alive; valid until it is removed.
  GraphState* Find(Graph graph) { return graphs_.Find(graph.bits); }
  ExecState* Find(GraphExec exec) { return execs_.Find(exec.bits); }
  void Remove(Graph graph);  // with its bodies
  void Remove(GraphExec exec) { execs_.Remove(exec.bits); }
  // The streams are alive and have one capture each.
  void Add(CaptureState capture) { captures_.emplace(capture.stream.bits, std::move(capture)); }
  CaptureState* FindCapture(Stream stream);
  // A capture that this thread has begun, or null.
  const CaptureState* FindCaptureBy(std::thread::id thread) const;
  bool DropCapture(Stream stream);  // returns whether there was one
  // What BodyOf has returned for the exec and is still alive, by number; 0: nothing.
  uint64_t BodyAliveOf(GraphExec exec) const;
  std::string WhyNot(Graph graph) const { return graphs_.WhyNot(graph.bits); }
  std::string WhyNot(GraphExec exec) const { return execs_.WhyNot(exec.bits); }

 private:
  Numbered<GraphState> graphs_{"graph"};
  Numbered<ExecState> execs_{"exec"};
  std::map<uint64_t, CaptureState> captures_;  // by stream
};

}  // namespace penstock::driver::checked
