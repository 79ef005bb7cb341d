// Trace: when each node ran, on which lane or thread; written as a Chrome trace (chrome://tracing, Perfetto).
//
// Pass one in CompileOptions::trace: every run of that executable then records its nodes. Users may add
// their own spans.
//
// On streams, two timing events per node are recorded on its lane, so a traced run is slower to submit; a node that had
// nothing to do has a span of almost no length. In graphs a kernel of one thread after each node records
// the device's time, and one before each node that has no predecessor in its graph, or several. In a chain this adds
// one kernel per node, 0.9 us on an H200. A node that had nothing to do has no span there. A node's span begins when
// its predecessors in the graph have ended, even if the device began it later.
//
// A resident region (CompileOptions::resident) has a span, and so has each of its nodes. On a CUDA device a node's is
// on a track of the worker that ran it, and begins when the worker had awaited all that comes before the node. On a
// host device a node begins where the one before it ends.
//
// A loop has a span for each iteration ("solve iteration 3"): of a run at most the newest 4095 if the device decides
// the loop, which then has no spans of the nodes in its body. Where a Repeat's body holds several iterations, they
// share a span. A traced loop takes 64 KiB of pinned memory in each slot, each iteration writes to it, and a Repeat
// decides about the next iteration after its body, not beside it.
//
// Threads: thread-safe.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/deadline.h"
#include "penstock/export.h"

namespace penstock {

// The kind of work in a span: a copy to or from a device, a kernel, host code, a launch. Only where runs are recorded
// for a profile (profile.h) are there spans of launches, of waits for a slot or, on a device, for a State, and of whole
// runs.
enum class SpanKind : uint8_t { kUpload, kDownload, kKernel, kHost, kSubmit, kWait, kRun };

// One interval of work.
struct Span {
  std::string name;  // the node's name, also "a and 5 more, a region"; or that of a loop with its iteration
  std::string track;  // "cuda:0 slot 1 upload", "worker 3"; "... resident worker 3": a worker of a region
  SpanKind kind = SpanKind::kHost;  // the kind of work
  double begin_us = 0;  // microseconds since the trace was made
  double end_us = 0;  // microseconds since the trace was made
  int64_t run = -1;  // the number of the executable's launch; in a body that the host runs, of the body's run
  int device = -1;  // index in the runtime's list; -1 on the host
  // The executable's number in the process, one for each of its devices; -1: a span of the application.
  int64_t executable = -1;
  int node = -1;  // the node's place in the executable's plan, or that of the first of several; -1: none
  int slot = -1;  // of the executable; -1: none
};

class PENSTOCK_EXPORT Trace {
 public:
  // Keeps the newest `most_spans`, for programs that run for days.
  static std::shared_ptr<Trace> Create(size_t most_spans = SIZE_MAX);
  ~Trace();

  // Adds a span of the application.
  void Add(Span span);
  // The spans still kept, in the order they were added.
  std::vector<Span> spans() const;
  // How many are no longer kept.
  int64_t lost_spans() const;
  // How long a device's engine has been busy so far: the time covered by at least one span of that device and kind,
  // spans no longer kept included. Executables that share a trace count as one.
  double BusyMicros(int device, SpanKind kind) const;
  // The current time, or the time `t`, in microseconds since the trace was made.
  double Now() const { return ToMicros(std::chrono::steady_clock::now()); }
  double ToMicros(std::chrono::steady_clock::time_point t) const {
    const auto since = detail::After(t, -start_.time_since_epoch()).time_since_epoch();
    return std::chrono::duration<double, std::micro>(since).count();
  }

  // JSON in the trace event format: one complete event per span, one named track per Span::track.
  std::string ChromeJson() const;
  // Writes the trace to a file, whole or not at all; an existing file keeps its mode and owner, and a symbolic link is
  // followed. Anything but a regular file is written into (/dev/stdout, or a pipe, which waits for its reader). So is a
  // file that cannot be replaced, since its directory is not writable or it has several names; a full disk may then
  // leave it incomplete. Errors name the path and give the system's reason.
  absl::Status WriteChrome(const std::string& path) const;

 private:
  explicit Trace(size_t most_spans);
  struct Impl;
  std::chrono::steady_clock::time_point start_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
