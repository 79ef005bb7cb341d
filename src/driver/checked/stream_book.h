// StreamBook: the streams and events that a checked driver handed out, and the order of all work.
//
// Vector clocks keep the order: for each line what it comes after, for each event what its last record covers, and for
// the host what it has seen complete. A line runs in order of submission: a stream is one, and so are the launches of
// an exec, which wait for one another whatever their streams. Inside a launch only the graph's edges order work.
//
// Threads: not thread-safe; CheckedDriver locks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/driver/checked/numbered.h"
#include "src/driver/checked/vector_clock.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

struct StreamState {
  Stream inner;
  int device = 0;
};

struct EventState {
  Event inner;
  int device = 0;
  bool timing = false;
  bool recorded = false;
  bool seen_complete = false;  // the last record
  Clock covers{};  // what the last record covers
};

// The numbers of exec lines differ from those of all streams.
inline constexpr uint64_t kExecLines = uint64_t{1} << 63;
inline uint64_t LineOf(Stream stream) { return stream.bits; }
inline uint64_t LineOf(GraphExec exec) { return kExecLines | exec.bits; }

// Identifies work by its place: the n-th operation of its line; in an exec's line, the node of the graph; in a child,
// the node of that.
struct Work {
  uint64_t line = 0, operation = 0;
  int32_t plan_node = -1;
  int32_t graph_node = -1;
  int32_t child_node = -1;  // of a graph node that is a child
  friend bool operator==(const Work&, const Work&) = default;
};
// "operation 3 of stream 1 for node 7", "graph node 0 of operation 2 of exec 1 for node 7", "child node 4 of graph node
// 0 of operation 2 of exec 1".
std::string TextOf(const Work& work);
std::string TextOfLine(uint64_t line);

// For each node of a graph, whether each earlier one has ended when it begins.
using NodeOrder = std::vector<std::vector<bool>>;
struct GraphOrder {
  NodeOrder nodes{};
  std::vector<NodeOrder> inside{};  // for each node that is a child
};

class StreamBook {
 public:
  Stream Add(Stream inner, int device);
  Event Add(Event inner, int device, bool timing);
  void Add(GraphExec exec, GraphOrder order) { lines_[LineOf(exec)].order = std::move(order); }
  void SetInside(GraphExec exec, int32_t node, NodeOrder order) {
    lines_[LineOf(exec)].order.inside[static_cast<size_t>(node)] = std::move(order);
  }
  // Null if the handle is not alive.
  StreamState* Find(Stream stream) { return streams_.Find(stream.bits); }
  const StreamState* Find(Stream stream) const { return streams_.Find(stream.bits); }
  EventState* Find(Event event) { return events_.Find(event.bits); }
  void Remove(Stream stream);
  void Remove(Event event) { events_.Remove(event.bits); }
  void Remove(GraphExec exec) { RemoveLine(LineOf(exec)); }

  // Record what is submitted now; the handles are alive.
  Work Submit(Stream stream, int32_t plan_node);
  Work Launch(GraphExec exec, Stream stream);
  void Upload(GraphExec exec, Stream stream);
  void Record(EventState& event, Stream stream);
  void Wait(Stream stream, const EventState& event) { lines_[LineOf(stream)].after.Merge(event.covers); }
  void Completed(EventState& event, const Clock& covers);

  uint64_t operations(uint64_t line) const;
  // Whether the host has seen all work of the line end.
  bool IsIdle(uint64_t line) const { return IsOver({.line = line, .operation = operations(line)}); }
  // Whether the host has seen the work end.
  bool IsOver(const Work& work) const;
  // Whether `work` has ended when `next`, of the last operation of its line, begins.
  bool IsBefore(const Work& work, const Work& next) const;

  std::string WhyNot(Stream stream) const { return streams_.WhyNot(stream.bits); }
  std::string WhyNot(Event event) const { return events_.WhyNot(event.bits); }
  const std::map<uint64_t, StreamState>& streams() const { return streams_.alive(); }

 private:
  struct Line {
    uint64_t operations = 0;  // submitted
    Clock after;  // what the next operation comes after
    GraphOrder order;  // for an exec
  };
  void RemoveLine(uint64_t line);

  Numbered<StreamState> streams_{"stream"};
  Numbered<EventState> events_{"event"};
  std::map<uint64_t, Line> lines_;
  Clock over_;  // what the host has seen end
};

}  // namespace penstock::driver::checked
