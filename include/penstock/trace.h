// Trace: when what ran, on which lane or thread; written as a Chrome trace (chrome://tracing, Perfetto).
//
// Pass one in CompileOptions::trace: every run of that executable then records its nodes. Users may add spans of their
// own.
//
// On streams two timing events a node are recorded on its lane, so a traced run is slower to submit; a node that had
// nothing to do has a span of next to no length. In graphs (Mode::kGraph) a kernel of one thread behind each node
// writes down the device's time, and one before each node that comes behind none or several of its graph: a traced run
// takes longer by one kernel a node of a chain, 0.9 us on an H200. A node that had nothing to do has no span there. A
// node's span begins when what it waits for in its graph has ended, though the device may have begun it later.
//
// Threads: thread-safe.
#pragma once

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

// What a span was spent on: a copy to or from a device, a kernel, host code, or submission.
enum class SpanKind : uint8_t { kUpload, kDownload, kKernel, kHost, kSubmit };

// One interval of work.
struct Span {
  std::string name;     // the node's
  std::string track;    // "cuda:0 slot 1 upload", "worker 3"
  SpanKind kind = SpanKind::kHost;  // what it was spent on
  double begin_us = 0;  // microseconds since the trace was made
  double end_us = 0;  // microseconds since the trace was made
  int64_t run = -1;     // which launch of the executable
  int device = -1;      // index in the runtime's list; -1 on the host
};

class PENSTOCK_EXPORT Trace {
 public:
  // Keeps the newest `most_spans`: of what runs for days, the last part.
  static std::shared_ptr<Trace> Create(size_t most_spans = SIZE_MAX);
  ~Trace();

  // Adds a span of the application's own.
  void Add(Span span);
  // The spans that are kept, in the order they were added.
  std::vector<Span> spans() const;
  // How long a device's engine has been at work so far: the time with at least one span of that device and kind, those
  // that are no longer kept too. Executables that share a trace are one here.
  double BusyMicros(int device, SpanKind kind) const;
  // The current time, or the time `t`, in microseconds since the trace was made.
  double Now() const { return ToMicros(std::chrono::steady_clock::now()); }
  double ToMicros(std::chrono::steady_clock::time_point t) const {
    const auto since = detail::After(t, -start_.time_since_epoch()).time_since_epoch();
    return std::chrono::duration<double, std::micro>(since).count();
  }

  // The trace event format's JSON: one complete event a span, one named track for each Span::track.
  std::string ChromeJson() const;
  // Writes it to a file, which keeps its mode and owner, whole or not at all; a link stays and is followed; into what
  // is no plain file (/dev/stdout, a pipe, which waits for its reader). The old file is written into, and may be left
  // incomplete by a full disk, where none may take its place: in a directory that cannot be written, or under several
  // names. Errors name the path and give the system's reason.
  absl::Status WriteChrome(const std::string& path) const;

 private:
  explicit Trace(size_t most_spans);
  struct Impl;
  std::chrono::steady_clock::time_point start_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
