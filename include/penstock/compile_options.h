// CompileOptions: the options of Runtime::Compile.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/control.h"
#include "penstock/device_share.h"
#include "penstock/machine_figures.h"
#include "penstock/mode.h"
#include "penstock/placement.h"
#include "penstock/progress.h"
#include "penstock/trace.h"

namespace penstock {

// Where slots, mode, resident and max_lanes have the values below, the runtime's settings (settings.h) for the graph's
// name replace them.
struct CompileOptions {
  // Runs of the executable that can be in flight simultaneously, on each of its devices; at most 1024. 0: as Compile
  // chooses, 16 if host memory of more than StagingOptions::from_bytes may be bound that is not pinned, since such a
  // run is under way for several times as long as the device works on it, and if the graph is small and 16 slots take
  // little of the device's memory; else 2. Executable::slots() tells how many there are.
  int slots = 0;
  int device = 0;  // the device of nodes without a pin; see also `placement`
  // If not empty, replaces `device` with several, each of which can do all of a run (Executable).
  std::vector<DeviceShare> devices{};
  // Decides where nodes without a pin run (placement.h). Under kAutomatic a run may use all devices of the kind of
  // `device` at once, so `devices` may not name several, and `in_order` is refused. Pin a node that uses memory of one
  // device that it does not declare, such as a pointer among its arguments.
  Placement placement = Placement::kOneDevice;
  // What the machine can do, for kAutomatic; null: figures are assumed. InvalidArgument: it is of other devices than
  // the runtime's.
  std::shared_ptr<const MachineFigures> figures{};
  // Under overload, refuses a launch at once (DeadlineExceeded) if the runs in front of it, in flight or waiting for a
  // slot, should take until its deadline: their number x the mean time that recent runs have added. Before some runs
  // have ended, and while nothing is in front, no launch is refused. So a mean that has become too long is corrected.
  bool refuse_late = false;
  // The most runs that have work on devices simultaneously; 0: one for each slot. The others wait on the host, in the
  // order of their launches, until all work of a run in front has ended. What is in a CUDA device's queue is executed,
  // but of a run that is abandoned or cancelled before its turn nothing is. 2 keep a device busy if runs are long.
  int max_submitted = 0;
  // Runs begin on the device in the order of their launches, each after all device work of the one before, without a
  // host thread in between. So launches on the same memory may follow each other at once, and all slots share their
  // memory on devices: a slot more costs its pinned memory, its graphs and its events. With `slots` 0 a small plan gets
  // 16. Runs of one executable then never overlap on the device; a run waits for a stream or an event (Bindings::On,
  // After) in its turn. For one device, and not for Export.
  bool in_order = false;
  // How nodes are submitted (mode.h). PENSTOCK_MODE=stream|graph|auto wins.
  Mode mode = Mode::kAuto;
  Resident resident = Resident::kOff;  // regions of small nodes (mode.h). PENSTOCK_RESIDENT=off|auto|on wins.
  Lowering constructs = Lowering::kAuto;  // who decides If, Switch, While and Repeat (control.h)
  // The most kernel streams per device and slot, at least 1; a plan that is less wide has fewer. submission_report()
  // says if a wider plan shares them. Copies from other devices have up to as many more, and at most 8.
  int max_lanes = 32;
  // The most bytes that the arenas of all slots may take on a device; 0: no limit but the device's own.
  // Executable::memory() reports what they take.
  int64_t device_bytes = 0;
  std::shared_ptr<Trace> trace{};  // records every run, on streams or in graphs (trace.h)
  // Makes one kernel of several Maps where the Buffers between them are not needed then (map.h).
  bool fuse_maps = true;
  bool profile = false;  // records every run for Runtime::Profile, also if RuntimeOptions::profile_spans is 0
  // Also runs the host code of every ParallelFor, and of every Kernel and Launch with a HostFallback, on copies of its
  // buffers, and fails the run if the results differ. Slow; adds nodes to the plan. Skips nodes that access a buffer
  // twice, an alias, or a buffer with Unordered accesses; the log names them. PENSTOCK_CHECK_AGAINST_HOST=1 sets this
  // for every executable. With more than one slot, a host fallback may run twice concurrently.
  bool check_against_host = false;
  double host_tolerance = 0;  // relative, for float and double, at least 0; 0: equal bytes
  // Is told how far Compile has come, if that takes long (progress.h): planning, compiling sources, loading kernels,
  // making slots and what copies are staged with, capturing and making CUDA graphs. In a GraphCache it is told of each
  // new graph's.
  ProgressFunction progress{};
};

}  // namespace penstock
