// Metrics: what an operator watches of a program that runs for days. Runtime::Metrics returns it.
//
//   const std::string text = runtime.Metrics().Prometheus();  // what a scrape of /metrics is answered with
//
// Counts of what has happened only grow while the runtime lives, whatever executables are dropped. Everything else is
// as it was when the metrics were taken. Numbers that belong together may differ by what happened meanwhile.
//
// Names are as declared, except that control characters and bytes that are not UTF-8 become U+FFFD. Two names that then
// are the same, and executables of the same name, count together.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"
#include "penstock/pinned_gauges.h"

namespace penstock {

struct PENSTOCK_EXPORT Metrics {
  // All executables of graphs of one name, those that are no longer there included, on all devices. What a construct
  // runs belongs to the run around it.
  struct Graph {
    std::string name;  // of the graph; empty for those of later names, if there are more than a thousand
    int64_t executables = 0;  // that exist now, one for each device
    int64_t compiled = 0;  // executables made so far, one for each device
    int64_t launches = 0;  // runs that have begun
    int64_t succeeded = 0;  // runs that have ended well
    int64_t failed = 0;  // runs that have ended with an error, or at a deadline
    int64_t cancelled = 0;  // runs that have ended by Run::Cancel, or a callable that returned Cancelled
    int64_t in_flight = 0;  // runs that have begun and whose work has not drained
    int64_t abandoned = 0;  // of these: runs that have ended for their user
    int64_t waiting = 0;  // calls of Launch and Acquire that wait for a free slot now
    int64_t slot_waits = 0;  // such calls that had to wait so far, those that wait now included
    double slot_wait_seconds = 0;  // how long those have waited that wait no more, together
  };
  // A device of the runtime.
  struct Device {
    std::string name;  // "cuda:0"
    int64_t memory_bytes = 0;  // all of its memory
    int64_t used_bytes = 0;  // of it: what the runtime has allocated, for slots, States and DeviceBuffers
  };
  // The library's threads of one kind, "ps-worker", those of all runtimes of the process.
  struct Threads {
    std::string name;  // of the kind
    int64_t count = 0;  // that exist now
    double cpu_seconds = 0;  // processor time used so far, also by those that have ended
  };

  std::vector<Graph> graphs;  // in the order of their names
  std::vector<Device> devices;  // in the runtime's order
  std::vector<Threads> threads;  // in the order of their names
  PinnedGauges pinned;  // pinned memory, as Runtime::pinned_memory
  int64_t staged_upload_bytes = 0;  // copied to devices from memory that is not pinned, in large copies
  int64_t staged_download_bytes = 0;  // the same from devices
  int64_t hostcalls = 0;  // calls of host nodes by devices, of runs that have drained
  int64_t graph_instantiations = 0;  // CUDA graphs made so far, or what host devices have instead
  int64_t captures = 0;  // captures of Launch nodes
  int64_t lost_spans = 0;  // of the runtime's profile: spans that are no longer kept
  bool lost = false;  // a fatal device error has ended the runtime

  // The sum of all graphs, without a name.
  Graph AllGraphs() const;
  // The metrics in the Prometheus text exposition format, version 0.0.4: names that begin with "penstock_", seconds and
  // bytes, and HELP and TYPE for each. Answer with the content type "text/plain; version=0.0.4; charset=utf-8".
  std::string Prometheus() const;
};

}  // namespace penstock
