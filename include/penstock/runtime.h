// Runtime: the devices a program uses, their threads and pools; where graphs become executables.
//
// Ownership: a movable handle. Destroying it is Shutdown without a deadline: runs in flight are drained, then the
//            threads end. Where a Shutdown's deadline has passed before, it does not wait again: what is still in
//            flight, and all it uses, is leaked on purpose and logged. Executables and host buffers may be dropped
//            later. Any thread may drop the last handle, also inside user code that the runtime calls; where it cannot
//            wait, a thread made for that does all this after the destructor has returned. One that was moved from has
//            no devices and refuses every call. A static Runtime is not supported: user code and CUDA may be gone
//            before it. One that the main thread finds while it exits is left as it is, with its threads.
// Threads:   thread-safe. Several runtimes may live side by side. Their threads block all signals but those that tell
//            of a thread's own mistakes, and SIGPROF: the application's signals are its own.
// Processes: a fork's copy cannot use the runtime, nor what belongs to it: every call returns FailedPrecondition, and
//            destructors leave all as it is. The copy may exec, exit, or make a runtime of its own on host devices.
// Errors:    Create: InvalidArgument (an option that is negative or absurd, a malformed device list, a variable
//            PENSTOCK_... of the environment that says what it cannot, a polling core that is not there or named
//            twice), NotFound (a device that is not there), ResourceExhausted (the system gives no threads or memory).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/compile_options.h"
#include "penstock/deadline.h"
#include "penstock/device_buffer.h"
#include "penstock/executable.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/host_buffer.h"
#include "penstock/log_level.h"
#include "penstock/pinned_gauges.h"
#include "penstock/replicated_state.h"
#include "penstock/state.h"

namespace penstock {

namespace runtime {
class RuntimeCore;
}

// How host memory that is not pinned is copied from and to devices: in chunks, through pinned memory, by threads of the
// runtime's own. What is 0 is measured when it is first needed.
struct StagingOptions {
  int threads = 0;  // for both directions together, at most 4096
  int64_t chunk_bytes = 0;  // of pinned memory; there are up to three for each thread and eight more
  // Buffers of up to so many bytes go through pinned memory of the slot instead, States through two blocks of it.
  int64_t from_bytes = int64_t{64} << 10;
};

// Options of Runtime::Create.
struct RuntimeOptions {
  // "cuda", "cuda:0,2", "host", "host:4", or several joined by ';'. Wins over PENSTOCK_DEVICES, which has the same
  // grammar. Where neither names devices: every CUDA device, or one host device on a machine without.
  std::string devices{};
  // Worker threads for host nodes, copies of unpinned memory and callbacks, shared between the NUMA nodes that devices
  // are near, at most 4096. 0: cores - 1, at least 2. Here and below, cores are those that the process may use: by its
  // affinity (taskset, a cpuset) and the quota of its cgroups.
  int workers = 0;
  // CPU threads of each host device, at most 4096, and 16384 of all. 0: as many as there are cores, shared between the
  // host devices, at least 1.
  int host_device_threads = 0;
  StagingOptions staging{};  // for host memory that is not pinned
  // Threads a device that help to submit runs node by node (Mode::kStream): where many nodes are ready together,
  // several threads submit them. They also push pipelines on in which something moves every few milliseconds. 0: one
  // thread at a time submits a run. -1: as many as there are cores but 4, shared between the CUDA devices, at most 8
  // each, and none for host devices. They sleep while there is nothing to submit. PENSTOCK_SUBMISSION_THREADS wins.
  int submission_threads = -1;
  // Low latency, for who pays with cores: on each of these, numbered as the system does, a thread of the runtime's own
  // looks without a pause at runs that nobody waits for and at pipelines, as long as the runtime lives; it goes on with
  // what can be launched and calls nobody's callbacks. Without any a thread looks now and then, and sleeps when idle.
  // PENSTOCK_POLLING_CORES ("2,3") wins.
  std::vector<int> polling_cores{};
  // Bytes of memory of each host device, at most what the process may use: the smaller of the machine's memory and its
  // cgroups' limits. 0: 16 GiB, or half of what it may use shared by the host devices.
  int64_t host_device_memory = 0;
  // The most bytes of pinned memory: of host buffers, slots, staging; at most what the process may use. 0: half of the
  // machine's memory, and no more than a quarter of a cgroup's limit, beyond which the process would be killed.
  // PENSTOCK_PINNED_BYTES wins: bytes, or with K, M or G behind the number KiB, MiB or GiB.
  int64_t pinned_bytes = 0;
  // Waits for each node before the next is submitted, one of the whole runtime at a time, so that a fatal device error
  // names the node that made it. For finding faults: slow. PENSTOCK_SYNC=1 sets it.
  bool synchronous = false;
  // Messages at this level and above are logged; PENSTOCK_LOG=debug|info|warning|error|off wins.
  LogLevel log_level = LogLevel::kWarning;
  // Where they go; by default to stderr, through a logger of the library's own.
  std::function<void(LogLevel, std::string_view)> log{};
};

// A device of a runtime.
struct Device {
  std::string name;  // "cuda:0"
  std::string description;  // "NVIDIA H200"
  bool is_cuda = false;  // false: a host device
  int64_t memory_bytes = 0;  // total memory, free or not
};

class PENSTOCK_EXPORT Runtime {
 public:
  // Opens the devices and starts the runtime's threads. For errors, see above.
  static absl::StatusOr<Runtime> Create(const RuntimeOptions& options = {});
  Runtime(Runtime&&) noexcept = default;
  Runtime& operator=(Runtime other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  // Shutdown, but for runs that have been abandoned: they get a second more; if their work still goes on, the runtime's
  // threads and memory stay for it, and the log says so.
  ~Runtime();

  // The devices. Other calls name a device by its index in this list.
  const std::vector<Device>& devices() const&;
  std::vector<Device> devices() const&& { return devices(); }
  // For CompileOptions::devices.
  std::vector<DeviceShare> all_devices() const {
    std::vector<DeviceShare> all;
    for (size_t d = 0; d < devices().size(); ++d) all.emplace_back(static_cast<int>(d));
    return all;
  }

  // Plans the graph and makes everything its runs need: memory, streams, events, loaded kernels. All mistakes in the
  // graph come back in one Status. ResourceExhausted: the slots' memory does not fit, even after what is idle has been
  // given back and executables whose handles are gone have ended their last runs.
  absl::StatusOr<Executable> Compile(const Graph& graph, const CompileOptions& options = {});

  // Pinned memory for `size` elements, uninitialized. Where the budget is spent, waits while HostBuffers that are gone
  // are kept alive by runs in flight: the run that ends gives the memory back. DeadlineExceeded, or ResourceExhausted
  // where nothing is to come back, with the numbers. Does not wait inside a host node or callback.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<HostBuffer<T>> MakeHostBuffer(int64_t size, Deadline deadline = {}) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    static_assert(alignof(T) <= 256, "the memory is aligned to 256 bytes");
    auto memory = AllocateHost(size, sizeof(T), deadline);
    if (!memory.ok()) return memory.status();
    return HostBuffer<T>(std::move(memory->block), size, std::move(memory->owner));
  }
  // How much pinned memory is reserved and in use now.
  PinnedGauges pinned_memory() const;

  // Memory for `size` elements of the device with that index, uninitialized. InvalidArgument: the size is negative or
  // overflows, or there is no such device. ResourceExhausted with the numbers.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<DeviceBuffer<T>> MakeDeviceBuffer(int64_t size, int device = 0) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    static_assert(alignof(T) <= 256, "the memory is aligned to 256 bytes");
    auto block = AllocateDevice(size, sizeof(T), device);
    if (!block.ok()) return block.status();
    return DeviceBuffer<T>(*std::move(block), size, device);
  }

  // Device memory that lives across runs (state.h), with these contents (all its elements) or, without any, zeros.
  // InvalidArgument: a dimension is no constant, another number of elements, no such device. ResourceExhausted with the
  // numbers. FailedPrecondition inside a host node or callback.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<State<T>> MakeState(Name name, Extent extent, std::span<const T> initial = {},
                                                     StateOptions options = {}) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    auto record = AllocateState({std::move(name), detail::TypeOf<T>(), extent, options.device, nullptr}, initial.data(),
                                initial.size());
    if (!record.ok()) return record.status();
    return State<T>(*std::move(record));
  }

  // The same on several devices (replicated_state.h). InvalidArgument also for no device, or one twice.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<ReplicatedState<T>> MakeReplicatedState(Name name, Extent extent,
                                                                         std::span<const T> initial = {},
                                                                         const ReplicatedStateOptions& options = {}) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    auto record = AllocateReplicas({std::move(name), detail::TypeOf<T>(), extent}, options.devices, initial.data(),
                                   initial.size());
    if (!record.ok()) return record.status();
    return ReplicatedState<T>(*std::move(record));
  }

  // Refuses new work, waits for runs in flight and ends the threads. DeadlineExceeded: some were still going; they end
  // as abandoned. Their work may drain later: call again to wait for it. FailedPrecondition inside a host node or
  // callback.
  absl::Status Shutdown(Deadline deadline = {});

 private:
  friend class GraphCache;
  explicit Runtime(std::shared_ptr<runtime::RuntimeCore> core) : core_(std::move(core)) {}
  struct HostMemory {
    std::shared_ptr<void> block, owner;
  };
  absl::StatusOr<HostMemory> AllocateHost(int64_t elements, size_t element_size, Deadline deadline);
  absl::StatusOr<std::shared_ptr<void>> AllocateDevice(int64_t elements, size_t element_size, int device);
  absl::StatusOr<std::shared_ptr<const StateRecord>> AllocateState(StateRecord record, const void* initial,
                                                                   size_t elements);
  absl::StatusOr<std::shared_ptr<const StateRecord>> AllocateReplicas(StateRecord record, std::vector<int> devices,
                                                                      const void* initial, size_t elements);
  std::shared_ptr<runtime::RuntimeCore> core_;
};

}  // namespace penstock
