// Runtime: the devices a program uses, with their threads and pools; compiles graphs to executables.
//
// Ownership: a movable handle. Destroying it is Shutdown without a deadline: runs in flight drain, then the threads
//            end. After a Shutdown that ran into its deadline, it does not wait again: work still in flight, and all it
//            uses, is leaked on purpose and logged. Executables and host buffers may be dropped later. Any thread may
//            drop the last handle, also inside user code that the runtime calls; if it cannot wait there, a dedicated
//            thread does all this after the destructor has returned. A moved-from runtime has no devices and refuses
//            every call. A static Runtime is not supported: user code and CUDA may be gone before it. A runtime that
//            still exists when the main thread exits is left alone, with its threads.
// Threads:   thread-safe. A process may have several runtimes. Their threads block all signals except SIGPROF and those
//            raised by a thread's own faults: the application's signals stay its own.
// Processes: a forked copy cannot use the runtime or anything that belongs to it: every call returns
//            FailedPrecondition, and destructors leave everything alone. The copy may exec, exit, or create a runtime
//            of its own on host devices.
// Errors:    Create: InvalidArgument (a negative or absurd option, a malformed device list, an invalid value of a
//            PENSTOCK_... environment variable, a settings file with a mistake in it, a polling core that does not
//            exist or is named twice), NotFound (a device that does not exist), ResourceExhausted (the system grants no
//            threads or memory).
#pragma once

#include "penstock/detail/cplusplus20.h"

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
#include "penstock/detail/internals.h"
#include "penstock/device.h"
#include "penstock/device_buffer.h"
#include "penstock/executable.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/host_buffer.h"
#include "penstock/log_level.h"
#include "penstock/measurement.h"
#include "penstock/metrics.h"
#include "penstock/pinned_gauges.h"
#include "penstock/profile.h"
#include "penstock/progress.h"
#include "penstock/replicated_state.h"
#include "penstock/settings.h"
#include "penstock/sharded_state.h"
#include "penstock/sharding.h"
#include "penstock/state.h"

namespace penstock {

namespace runtime {
class RuntimeCore;
}

// How unpinned host memory is copied to and from devices: in chunks, through pinned memory, by threads of the runtime.
// Options that are 0 are measured at first use.
struct StagingOptions {
  int threads = 0;  // for both directions together, at most 4096
  int64_t chunk_bytes = 0;  // of pinned memory; there are up to three chunks per thread plus eight
  // Buffers up to this size go through the slot's pinned memory instead, States through two pinned blocks.
  int64_t from_bytes = int64_t{64} << 10;
};

// Options of Runtime::Create.
struct RuntimeOptions {
  // "cuda", "cuda:0,2", "host", "host:4", or several joined by ';'. Wins over PENSTOCK_DEVICES, which has the same
  // grammar. If neither names devices: every CUDA device, or one host device on a machine without any.
  std::string devices{};
  // Worker threads for host nodes, copies of unpinned memory and callbacks, spread over the NUMA nodes near devices, at
  // most 4096. 0: cores - 1, at least 2. Here and below, cores are those that the process may use by its affinity
  // (taskset, a cpuset) and its cgroups' quota.
  int workers = 0;
  // How many functors, or chunks of one, each host device runs at once, at most 4096, and 16384 in total. It has two
  // threads more, since copies run beside them. 0: the cores divided among the host devices, at least 1.
  int host_device_threads = 0;
  StagingOptions staging{};  // for unpinned host memory
  // Threads per device that help to submit runs node by node (Mode::kStream): when many nodes are ready, several
  // threads submit them. They also drive pipelines in which something happens every few milliseconds. 0: one thread at
  // a time submits a run. -1: the cores minus 4, divided among the CUDA devices, at most 8 each, and none for host
  // devices. They sleep when there is nothing to submit. PENSTOCK_SUBMISSION_THREADS wins over this option.
  int submission_threads = -1;
  // Dedicates a busy-polling thread to each listed core (OS numbering) for the runtime's life, trading CPU for
  // latency. It polls pipelines and runs that no thread waits for, and submits what has become ready, but calls no
  // callbacks. Without polling cores, a thread polls now and then, and sleeps when idle. PENSTOCK_POLLING_CORES
  // ("2,3") wins over this option.
  std::vector<int> polling_cores{};
  // Bytes of memory of each host device, at most what the process may use: the smaller of the machine's memory and its
  // cgroups' limits. 0: 16 GiB, but all host devices together at most half of what the process may use.
  int64_t host_device_memory = 0;
  // The most bytes of pinned memory for host buffers, slots and staging; at most what the process may use. 0: half of
  // the machine's memory, but at most a quarter of the cgroup's limit, since the process is killed beyond that limit.
  // PENSTOCK_PINNED_BYTES wins: bytes, or KiB, MiB or GiB with a suffix K, M or G.
  int64_t pinned_bytes = 0;
  // What to choose where the program leaves a choice open (settings.h). The file in PENSTOCK_SETTINGS goes over
  // them.
  Settings settings{};
  // Waits for each node before submitting the next, one node at a time in the whole runtime, so that a fatal device
  // error names the node that caused it. For debugging: slow. PENSTOCK_SYNC=1 sets it.
  bool synchronous = false;
  // Records the runs of all executables for Runtime::Profile, and keeps the newest spans, at most this many, of
  // about 200 bytes each. 0: records only those with CompileOptions::profile. PENSTOCK_PROFILE=FILE records all, and
  // writes the profile to the file when the runtime ends.
  int64_t profile_spans = 0;
  // Keeps account of when runs end, for Runtime::Measured. It costs a run less than 100 ns. PENSTOCK_MEASURE=FILE turns
  // it on, and writes the measurement to the file when the runtime ends.
  bool measure = false;
  // Logs messages at this level and above; PENSTOCK_LOG=debug|info|warning|error|off wins.
  LogLevel log_level = LogLevel::kWarning;
  // Receives the messages; by default they go to stderr, through the library's own logger.
  std::function<void(LogLevel, std::string_view)> log{};
  // Is told how far Create has come, if that takes long (progress.h): opening devices.
  ProgressFunction progress{};
};

class PENSTOCK_EXPORT Runtime {
 public:
  // Opens the devices and starts the runtime's threads. For its errors, see above.
  static absl::StatusOr<Runtime> Create(const RuntimeOptions& options = {});
  Runtime(Runtime&&) noexcept = default;
  Runtime& operator=(Runtime other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  // Like Shutdown(), except that abandoned runs get one extra second to drain. If their work goes on even then, the
  // runtime's threads and memory stay for it, and the log says so.
  ~Runtime();

  // The devices. Other calls name a device by its index in this list.
  const std::vector<Device>& devices() const&;
  std::vector<Device> devices() const&& { return devices(); }
  // All devices, for CompileOptions::devices.
  std::vector<DeviceShare> all_devices() const {
    std::vector<DeviceShare> all;
    for (size_t d = 0; d < devices().size(); ++d) all.emplace_back(static_cast<int>(d));
    return all;
  }

  // Plans the graph and makes everything its runs need: memory, streams, events, loaded kernels. Returns all mistakes
  // in the graph in one Status. ResourceExhausted: the slots' memory does not fit, even after idle memory has been
  // freed and executables without handles have finished their last runs.
  absl::StatusOr<Executable> Compile(const Graph& graph, const CompileOptions& options = {});

  // Allocates pinned memory for `size` elements, uninitialized. If the budget is spent, waits for runs in flight that
  // keep dropped HostBuffers alive; each returns its memory when it ends. DeadlineExceeded, or ResourceExhausted with
  // the numbers if no memory will be returned. Does not wait inside a host node or callback.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<HostBuffer<T>> MakeHostBuffer(int64_t size, Deadline deadline = {}) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    static_assert(alignof(T) <= 256, "the memory is aligned to 256 bytes");
    auto memory = AllocateHost(size, sizeof(T), deadline);
    if (!memory.ok()) return memory.status();
    return HostBuffer<T>(std::move(memory->block), size, std::move(memory->owner));
  }
  // The amount of pinned memory reserved and in use now.
  PinnedGauges pinned_memory() const;

  // Allocates memory for `size` elements on a device, uninitialized. InvalidArgument: the size is negative or
  // overflows, or there is no such device. ResourceExhausted, with the numbers.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<DeviceBuffer<T>> MakeDeviceBuffer(int64_t size, int device = 0) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    static_assert(alignof(T) <= 256, "the memory is aligned to 256 bytes");
    auto block = AllocateDevice(size, sizeof(T), device);
    if (!block.ok()) return block.status();
    return DeviceBuffer<T>(*std::move(block), size, device);
  }

  // Makes device memory that lives across runs (state.h), filled with `initial` (all its elements), or zeros without
  // any. InvalidArgument: a dimension that is not constant, a wrong number of elements, or no such device.
  // ResourceExhausted, with the numbers. FailedPrecondition inside a host node or callback.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<State<T>> MakeState(Name name, Extent extent, std::span<const T> initial = {},
                                                     StateOptions options = {}) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    auto record = AllocateState({std::move(name), detail::TypeOf<T>(), extent, options.device, nullptr}, initial.data(),
                                initial.size());
    if (!record.ok()) return record.status();
    return State<T>(*std::move(record));
  }

  // Makes a State of device memory that the application has. The contents stay, and the owner frees it. The memory must
  // outlive every run that uses the State, unless `keep_alive` owns it, which the State holds. Work of the application
  // that still writes it must be ordered before the first use, as State::data says. InvalidArgument: as for MakeState,
  // or the memory is not exactly the State's elements, not of StateOptions::device, or not aligned as its elements are.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<State<T>> AdoptState(Name name, Extent extent, std::span<T> memory,
                                                      StateOptions options = {},
                                                      std::shared_ptr<const void> keep_alive = nullptr) {
    static_assert(std::is_trivially_copyable_v<T>, "elements must be trivially copyable");
    static_assert(!std::is_const_v<T>, "a State may be written; give memory that may be");
    auto record = AdoptMemory({std::move(name), detail::TypeOf<T>(), extent, options.device, nullptr}, memory.data(),
                              memory.size(), std::move(keep_alive));
    if (!record.ok()) return record.status();
    return State<T>(*std::move(record));
  }
  // The same with a DeviceBuffer, on its device; the State keeps the memory alive.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<State<T>> AdoptState(Name name, Extent extent, const DeviceBuffer<T>& memory) {
    return AdoptState(std::move(name), extent, std::span<T>(memory.data(), static_cast<size_t>(memory.size())),
                      {.device = memory.device() < 0 ? 0 : memory.device()}, memory.block());
  }

  // The same as MakeState on several devices (replicated_state.h). InvalidArgument also if there is no device, or one
  // is named twice.
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

  // The same as MakeState in shards (sharded_state.h), each on its own device. `initial` has all elements, without the
  // halos, which are zeros. InvalidArgument also for what sharding.h forbids.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<ShardedState<T>> MakeShardedState(const Name& name, const Extent& extent,
                                                                   const Sharding& sharding,
                                                                   std::span<const T> initial = {}, Halo halo = Halo(),
                                                                   Deadline deadline = {}) {
    auto layout = LayOutState(name, extent, sharding, halo);
    if (!layout.ok()) return layout.status();
    std::vector<State<T>> shards;
    for (const Shard& shard : (*layout)->shards) {
      auto state = MakeState<T>(detail::NumberedName(name, shard.index), detail::ExtentWithHalo(**layout, shard), {},
                                {.device = shard.device});
      if (!state.ok()) return state.status();
      shards.push_back(*std::move(state));
    }
    ShardedState<T> made(*std::move(layout), std::move(shards));
    if (initial.empty()) return made;
    if (absl::Status status = made.Set(initial, deadline); !status.ok()) return status;
    return made;
  }

  // What has been recorded so far (profile.h). Without anything to record it has the devices only.
  penstock::Profile Profile() const;
  // How fast runs followed each other so far, and which settings were open (measurement.h).
  Measurement Measured() const;
  // What an operator watches (metrics.h). It takes a system call a thread, and disturbs no run.
  penstock::Metrics Metrics() const;

  // Refuses new work, waits for runs in flight and ends the threads. DeadlineExceeded: some runs were still going,
  // and end as abandoned. Their work may drain later; call again to wait for it. FailedPrecondition inside a host
  // node or callback.
  absl::Status Shutdown(Deadline deadline = {});

 private:
  friend class GraphCache;
  friend class detail::Internals<Runtime>;
  explicit Runtime(std::shared_ptr<runtime::RuntimeCore> core) : core_(std::move(core)) {}
  struct HostMemory {
    std::shared_ptr<void> block, owner;
  };
  absl::StatusOr<HostMemory> AllocateHost(int64_t elements, size_t element_size, Deadline deadline);
  absl::StatusOr<std::shared_ptr<void>> AllocateDevice(int64_t elements, size_t element_size, int device);
  absl::StatusOr<std::shared_ptr<const StateRecord>> AllocateState(StateRecord record, const void* initial,
                                                                   size_t elements);
  absl::StatusOr<std::shared_ptr<const StateRecord>> AdoptMemory(StateRecord record, void* memory, size_t elements,
                                                                 std::shared_ptr<const void> keep_alive);
  absl::StatusOr<std::shared_ptr<const StateRecord>> AllocateReplicas(StateRecord record, std::vector<int> devices,
                                                                      const void* initial, size_t elements);
  static absl::StatusOr<std::shared_ptr<const ShardLayout>> LayOutState(const Name& name, const Extent& extent,
                                                                        const Sharding& sharding, const Halo& halo);
  std::shared_ptr<runtime::RuntimeCore> core_;
};

}  // namespace penstock
