#include "src/driver/checked/stream_book.h"

#include "absl/strings/str_cat.h"

namespace penstock::driver::checked {

std::string TextOfLine(uint64_t line) {
  return line < kExecLines ? absl::StrCat("stream ", line) : absl::StrCat("exec ", line - kExecLines);
}

std::string TextOf(const Work& work) {
  return absl::StrCat(work.child_node < 0 ? "" : absl::StrCat("child node ", work.child_node, " of "),
                      work.graph_node < 0 ? "" : absl::StrCat("graph node ", work.graph_node, " of "), "operation ",
                      work.operation, " of ", TextOfLine(work.line),
                      work.plan_node < 0 ? "" : absl::StrCat(" for node ", work.plan_node));
}

Stream StreamBook::Add(Stream inner, int device) {
  const Stream stream{streams_.Add({.inner = inner, .device = device})};
  lines_[LineOf(stream)];
  return stream;
}

Event StreamBook::Add(Event inner, int device, bool timing) {
  return Event{events_.Add({.inner = inner, .device = device, .timing = timing})};
}

void StreamBook::Remove(Stream stream) {
  streams_.Remove(stream.bits);
  RemoveLine(LineOf(stream));
}

void StreamBook::RemoveLine(uint64_t line) {
  lines_.erase(line);
  over_.Forget(line);
}

Work StreamBook::Submit(Stream stream, int32_t plan_node) {
  return {.line = LineOf(stream), .operation = ++lines_[LineOf(stream)].operations, .plan_node = plan_node};
}

Work StreamBook::Launch(GraphExec exec, Stream stream) {
  Line &on = lines_[LineOf(stream)], &of = lines_[LineOf(exec)];
  of.after.Merge(on.after);
  of.after.See(LineOf(stream), on.operations);
  Upload(exec, stream);
  return {.line = LineOf(exec), .operation = of.operations};
}

// Counts as an operation of the stream and the exec, but not as a launch: only launches make later ones wait.
void StreamBook::Upload(GraphExec exec, Stream stream) {
  Line &on = lines_[LineOf(stream)], &of = lines_[LineOf(exec)];
  ++on.operations;
  on.after.Merge(of.after);
  on.after.See(LineOf(exec), ++of.operations);
}

void StreamBook::Record(EventState& event, Stream stream) {
  const Line& line = lines_[LineOf(stream)];
  event.recorded = true;
  event.seen_complete = false;
  event.covers = line.after;
  event.covers.See(LineOf(stream), line.operations);
}

void StreamBook::Completed(EventState& event, const Clock& covers) {
  event.seen_complete = true;
  over_.Merge(covers);
}

uint64_t StreamBook::operations(uint64_t line) const {
  const auto at = lines_.find(line);
  return at == lines_.end() ? 0 : at->second.operations;
}

// A removed line was found idle, or reported, when it was removed.
bool StreamBook::IsOver(const Work& work) const {
  return lines_.find(work.line) == lines_.end() || over_.Covers(work.line, work.operation);
}

bool StreamBook::IsBefore(const Work& work, const Work& next) const {
  if (IsOver(work)) return true;
  const Line& line = lines_.at(next.line);
  if (work.line != next.line) return line.after.Covers(work.line, work.operation);
  if (work.operation < next.operation) return true;
  const auto node = static_cast<size_t>(next.graph_node);
  if (work.graph_node != next.graph_node) return line.order.nodes[node][static_cast<size_t>(work.graph_node)];
  if (work.child_node == next.child_node) return true;
  return line.order.inside[node][static_cast<size_t>(next.child_node)][static_cast<size_t>(work.child_node)];
}

}  // namespace penstock::driver::checked
