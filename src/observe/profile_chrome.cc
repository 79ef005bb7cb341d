// A profile in the trace event format: its slices, and the arrows and counters that its plans allow.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/profile.h"
#include "src/observe/chrome_json.h"
#include "src/observe/chrome_writer.h"
#include "src/observe/json_writer.h"
#include "src/observe/profile_counters.h"
#include "src/observe/profile_flows.h"
#include "src/observe/profile_tracks.h"

namespace penstock {
namespace {

using observe::ChromeWriter;
using observe::ProfileSlice;
using observe::ProfileThread;
using observe::ProfileTracks;

std::string ProcessName(int64_t pid, const std::vector<Device>& devices) {
  if (pid == 0) return "host";
  const auto device = static_cast<size_t>(pid - 1);
  if (device >= devices.size()) return "device " + std::to_string(device);
  return devices[device].name + " (" + devices[device].description + ")";
}

void WriteProcess(int64_t pid, const Profile& profile, ChromeWriter& to) {
  to.Named("process_name", pid, 0, ProcessName(pid, profile.devices));
  to.SortIndex("process_sort_index", pid, 0, pid);
  if (profile.lost_spans == 0) return;
  to.Named("process_labels", pid, 0, std::to_string(profile.lost_spans) + " older spans are not kept");
}

void WriteThreads(const Profile& profile, const ProfileTracks& tracks, ChromeWriter& to) {
  int64_t pid = -1;
  for (const ProfileThread& thread : tracks.threads()) {
    if (thread.pid != pid) WriteProcess(thread.pid, profile, to);
    pid = thread.pid;
    to.Named("thread_name", thread.pid, thread.tid, thread.name);
    to.SortIndex("thread_sort_index", thread.pid, thread.tid, thread.tid);
  }
}

void AddNode(const Profile::Node& node, observe::JsonWriter& args) {
  args.Member("kind", node.kind);
  if (!node.where.empty()) args.Member("where", node.where);
  if (node.read_bytes > 0) args.Member("read_bytes", node.read_bytes);
  if (node.written_bytes > 0) args.Member("written_bytes", node.written_bytes);
  if (node.flops > 0) args.Member("flops", node.flops);
}

std::string ArgsOf(const ProfileSlice& slice) {
  const Span& span = *slice.span;
  observe::JsonWriter args;
  args.Open('{');
  if (slice.graph != nullptr) args.Member("graph", slice.graph->name);
  if (span.executable >= 0) args.Member("executable", span.executable);
  if (span.run >= 0) args.Member("run", span.run);
  if (span.slot >= 0) args.Member("slot", span.slot);
  if (span.node >= 0) args.Member("node", span.node);
  if (slice.node != nullptr) AddNode(*slice.node, args);
  args.Close('}');
  return std::move(args).Finish();
}

}  // namespace

std::string Profile::ChromeJson() const {
  const ProfileTracks tracks(*this);
  ChromeWriter to;
  WriteThreads(*this, tracks, to);
  for (const ProfileSlice& slice : tracks.slices()) {
    to.Complete(slice.pid, slice.tid, slice.span->name, observe::KindName(slice.span->kind), slice.begin, slice.end,
                ArgsOf(slice));
  }
  // Behind the slices, so that viewers that go by time and place find the slice of an arrow open.
  observe::WriteFlows(tracks, to);
  observe::WriteCounters(tracks, to);
  return std::move(to).Finish();
}

}  // namespace penstock
