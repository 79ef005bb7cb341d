// Slot: the memory, streams, events and tables of operations that one run of an executable uses and no other run may
// touch. It knows no run; run/run_slot.h adds what runs need.
//
// Ownership: owns its driver objects and memory; made by Compile, reused by one run after another.
// Threads:   belongs to one run at a time, and within the run to the thread that advances it (see run_core.h). Host
//            nodes on workers read their own arguments, submission threads what they submit; both may fail the run.
// Errors:    Make returns the driver's error; what it had made by then is freed with the slot.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/core/pointer_attributes.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/state_order.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/slot/memory_overlap.h"
#include "src/runtime/slot/slot_devices.h"
#include "src/runtime/slot/slot_queues.h"
#include "src/runtime/slot/slot_tables.h"
#include "src/runtime/state/keyed_states.h"

namespace penstock::runtime {

// The memory bound to a slot, which stays until a launch brings other memory.
struct SlotBinding {
  uint64_t version = 0;  // of the Bindings; 0: nothing is bound
  uint64_t changes = 0;  // launches that have changed what is bound, or a parameter
  MemoryKinds kinds;
  std::vector<int32_t> consumed;  // buffers that the run takes over
  detail::KeepAlives keep_alives;  // while the run needs them
  std::vector<BoundRange> ranges;  // one for each buffer; internal ones stay empty
  std::vector<int32_t> order;  // the bound buffers, sorted for FindOverlap
  KeyedHome home;  // of the key whose States are bound, if the graph has keyed ones
};

class Slot : public driver::UseSource {
 public:
  struct Options {
    const CompiledGraph& graph;
    RuntimeCore& runtime;
    InFlight* owner;  // the executable, for the order of States
    std::shared_ptr<const SlotDevices> devices;  // of another slot, to share them (slot_devices.h); null: none
    memory::PinnedPool& pinned;
    int pinned_node = -1;  // the NUMA node that pinned memory comes from
  };
  Slot(const Options& options, int slot_index);
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  virtual ~Slot();

  absl::Status Make();
  // The schedule of which mode is submitted next; see SlotQueues::Use.
  void UseEventsOf(Mode mode);

  const CompiledGraph& graph() const { return options_.graph; }
  const Options& options() const { return options_; }
  // LaunchContext::kZeroBytes zero bytes on a device of the runtime; null if no Launch node can ask for them.
  const void* zeros(DeviceId device) const { return devices_->zeros(device); }
  const std::shared_ptr<const SlotDevices>& devices() const { return devices_; }
  void AppendUses(int32_t node, std::vector<driver::MemoryUse>& out) const override;

  const int index;
  SlotQueues queues;
  SlotTables tables;
  SlotBinding bound;
  driver::RunFault fault;
  StateTicket ticket;  // its places are parallel to Plan::states

 private:
  absl::Status MakeDevices();
  void AnnotateStreams() const;
  absl::Status MakePointers();
  void MakeTicket();
  absl::Status MakeParams();
  void MakeFills();
  void MakeKernels();
  absl::Status MakeTables();

  const Options options_;
  std::shared_ptr<const SlotDevices> devices_;
  memory::PinnedBlock pinned_;
  std::vector<std::byte> own_params_;
  memory::PinnedBlock pinned_params_;
};

}  // namespace penstock::runtime
