// The driver interface to the hardware: devices, streams, events, memory, copies, fills and kernel launches.
//
// Everything above speaks only this interface; implementations are host/ (CPU threads with CUDA's semantics) and cuda/
// (a thin adapter of the CUDA runtime). A decorator may stand in front of either.
//
// Ownership: the caller destroys what it creates, after the work that uses it has finished.
// Threads:   every call is thread-safe. A stream is fed by one thread at a time.
// Ordering:  work on one stream runs in the order of submission; different streams are ordered by events only. Calls
//            that take a stream return when the work is queued, not when it is done.
// Errors:    a call that fails has no effect. Where an earlier asynchronous fault ended the device, every later call
//            returns that fault (see FaultOf in src/base/status.h), and calls that destroy or free do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/kernel_limits.h"
#include "src/driver/ops.h"

namespace penstock::driver {

struct Stream {
  uint64_t bits = 0;
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(Stream, Stream) = default;
};
struct Event {
  uint64_t bits = 0;
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(Event, Event) = default;
};

// A graph of operations, and what came of instantiating one.
struct Graph {
  uint64_t bits = 0;
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(Graph, Graph) = default;
};
struct GraphExec {
  uint64_t bits = 0;
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(GraphExec, GraphExec) = default;
};

enum class DeviceKind : uint8_t { kHost, kCuda };

struct DeviceInfo {
  DeviceKind kind = DeviceKind::kHost;
  std::string name;         // as users write it: "host:0", "cuda:1"
  std::string description;  // "NVIDIA H200", "2 CPU threads"
  int64_t memory_bytes = 0;
  int compute_units = 1;
  std::string pci_bus_id{};  // "0000:3b:00.0"; empty: not on a PCI bus
  base::KernelLimits limits{};
};

// What is known of an address, and of which bytes around it: [begin, end) is its allocation where the driver can
// tell, or else its byte. Of pageable memory it is empty.
struct PointerInfo {
  enum class Kind : uint8_t { kPageable, kPinned, kDevice };
  Kind kind = Kind::kPageable;
  int device = -1;          // kDevice: whose memory
  uintptr_t begin = 0, end = 0;

  friend bool operator==(const PointerInfo&, const PointerInfo&) = default;
  // Whether it is known of all `bytes` at an address.
  bool Covers(uintptr_t at, size_t bytes) const { return at >= begin && at < end && bytes <= end - at; }
};

inline constexpr int kMaxPendingHostcalls = 32;

// Asks the user's translation unit for a kernel: see NodeCode::cuda_kernel in penstock/detail/model.h.
struct KernelSource {
  const void* (*load)(const void* self, int* error) = nullptr;
  const void* self = nullptr;
  bool awaits = false;  // it begins with AwaitDependencies (penstock/detail/programmatic.h), or what that is
};

// A kernel that has been loaded.
struct KernelCode {
  const void* kernel = nullptr;
  bool awaits = false;  // it begins by waiting for what it depends on, and so may be launched before that has ended
  int64_t block_threads = INT64_MAX;  // the most that a block of it can have, for its registers or launch bounds
  int64_t shared_bytes = 0;  // of static shared memory in each block
};

// The code of one of the library's own kernels, of one thread and one argument: on a CUDA device `kernel`, on a host
// device `call`.
struct LibraryCode {
  KernelCode kernel{};
  absl::Status (*call)(void* callable, void* const* argv) = nullptr;
};
// Its operation; `argv` names the argument, of `size` bytes.
inline KernelOp LibraryOp(const LibraryCode& code, void* const* argv, uint32_t size) {
  KernelOp op;
  op.kernel = code.kernel.kernel;
  op.awaits = code.kernel.awaits;
  op.call = code.call;
  op.argv = argv;
  op.argc = 1;
  op.args = static_cast<const std::byte*>(*argv);
  op.args_size = size;
  op.rows = 1;
  return op;
}

// What a node of a graph calls on the host.
struct HostCall {
  void (*call)(void* context) = nullptr;
  void* context = nullptr;
};

class Driver {
 public:
  virtual ~Driver() = default;

  // Devices, numbered from 0 in the order they were asked for.
  virtual int device_count() const = 0;
  virtual const DeviceInfo& device(int device) const = 0;
  // Makes `device` current for the calling thread and returns what RestoreCurrent takes to undo it. Streams, events,
  // memory and kernels of a device are used by a thread while that device is current.
  virtual int MakeCurrent(int device) = 0;
  virtual void RestoreCurrent(int token) = 0;
  // Whether event completions ring the EventCount the driver was made with; if not, waiters must poll.
  virtual bool notifies_completion() const = 0;

  // Streams never synchronize with the default stream. Lower numbers are higher priorities, 0 is the default.
  virtual absl::StatusOr<Stream> CreateStream(int device, int priority) = 0;
  // A capture that it is in ends with it.
  virtual void DestroyStream(Stream stream) = 0;
  // The cudaStream_t, or null on host devices.
  virtual void* NativeStream(Stream stream) const = 0;

  // An event that was never recorded counts as complete.
  virtual absl::StatusOr<Event> CreateEvent(int device, bool timing) = 0;
  virtual void DestroyEvent(Event event) = 0;
  virtual absl::Status Record(Event event, Stream stream) = 0;
  virtual absl::Status Wait(Stream stream, Event event) = 0;
  // The same for an event of the application's, a cudaEvent_t, as it stands now. InvalidArgument on host devices.
  virtual absl::Status WaitNative(Stream /*stream*/, void* /*event*/) {
    return absl::InvalidArgumentError("a host device knows no events but its own; name a Run");
  }
  // For a stream of the application's, a cudaStream_t: which of the devices it is of. InvalidArgument where it is of
  // none of them, and on host devices; FailedPrecondition while it captures, which goes on. It is asked with no device
  // made current, since of CUDA's default streams the thread's own is meant.
  virtual absl::StatusOr<int> DeviceOfNative(void* /*stream*/) { return NoNativeStreams(); }
  // Record and Wait there, with that device current.
  virtual absl::Status RecordOnNative(Event /*event*/, void* /*stream*/) { return NoNativeStreams(); }
  virtual absl::Status MakeNativeWait(void* /*stream*/, Event /*event*/) { return NoNativeStreams(); }
  virtual absl::StatusOr<bool> Query(Event event) = 0;
  // Microseconds between two complete timing events of one device.
  virtual absl::StatusOr<double> Elapsed(Event begin, Event end) = 0;

  // Device memory is not host memory: the host must not dereference it. 256-byte aligned. ResourceExhausted names the
  // bytes asked for and free.
  virtual absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) = 0;
  virtual void FreeDevice(int device, void* memory) = 0;
  // Page-locked host memory that every device of this driver can copy from and to.
  virtual absl::StatusOr<void*> AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;
  virtual absl::StatusOr<PointerInfo> Inspect(const void* memory) = 0;

  // Host memory of a copy must be pinned. InvalidArgument where rows overlap each other or a size overflows.
  //
  // Peer copies go over a direct link where the two devices have one: it is opened by the first copy between them, so
  // nobody pays for links that no plan uses. Where there is none the driver takes the bytes through pinned memory of
  // its own, in stream order like any copy. Either device's streams will do.
  virtual absl::Status Copy(Stream stream, const CopyOp& op) = 0;
  // One piece of a batch is as good as any: a device works on all at once. InvalidArgument as for Copy, and the number
  // of the piece; then none is copied.
  virtual absl::Status CopyBatch(Stream stream, const BatchOp& op) = 0;
  // InvalidArgument as for Copy, and for patterns of another size.
  virtual absl::Status Fill(Stream stream, const FillOp& op) = 0;

  // Loads a kernel so that its first launch does not. Host devices return null.
  virtual absl::StatusOr<KernelCode> LoadKernel(int device, const KernelSource& source) = 0;
  virtual absl::Status Launch(Stream stream, const KernelOp& op) = 0;
  // The kernel that asks the host, loaded; its argument is an HostcallArgs (hostcall_slot.h). While one waits, freeing
  // memory waits for it (cudaFree, cudaFreeHost), and so does the first launch of a kernel that is not loaded yet. A
  // device has room for kMaxPendingHostcalls that wait at once; with many more of them nothing else runs there.
  virtual absl::StatusOr<LibraryCode> LoadHostcall(int /*device*/) {
    return absl::UnimplementedError("this driver has no kernel that asks the host");
  }
  // The kernel that writes down the device's time, loaded; its argument is a TimestampArgs (timestamp.h).
  virtual absl::StatusOr<LibraryCode> LoadTimestamp(int /*device*/) {
    return absl::UnimplementedError("this driver has no kernel that writes down the time");
  }
  // Says that foreign code is about to submit work of a node to the stream's native handle. In a capture `uses` lives
  // as long as that of a node does.
  virtual absl::Status LaunchContext(Stream /*stream*/, OpTag /*tag*/, const UseSource& /*uses*/) {
    return absl::OkStatus();
  }

  // --- graphs: the same operations, but peer copies, submitted all at once; only edges order them ---
  //
  // A graph and an exec are used by one thread at a time. An exec never overlaps itself: a launch waits for the one
  // before. What is set in an exec counts for later launches, also while an earlier one runs.
  virtual absl::StatusOr<Graph> CreateGraph(int device) = 0;
  virtual void DestroyGraph(Graph graph) = 0;
  // Adds a node that begins when those of `after` have ended, and returns its number; they count from 0. Of kernels
  // that could begin, one of the lowest `priority` does. An operation must do something: InvalidArgument for those of
  // no bytes, rows or blocks (disable the node instead), and for copies of slices that lie no whole number of rows
  // apart (a batch may have them). A batch must say its size; its table is read when the graph runs, and may be written
  // anew between two runs. Whom a kernel names (`callable`, `gate`, `fault`, `uses`) lives as long as the node does it.
  virtual absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                          int priority) = 0;
  // Adds a node that calls the host, for graphs that are launched by others than runs: on CUDA a thread of the CUDA
  // driver's calls, which may call nothing of CUDA's, and the device's other calls wait for it. Whoever is called lives
  // as long as the node, and so does `call` itself. SetNode and EnableNode do not take it.
  virtual absl::StatusOr<int32_t> AddHost(Graph /*graph*/, std::span<const int32_t> /*after*/,
                                          const HostCall& /*call*/) {
    return absl::UnimplementedError("this driver's graphs do not call the host");
  }
  // The cudaGraph_t, which stays the driver's, or null on host devices.
  virtual void* NativeGraph(Graph /*graph*/) { return nullptr; }
  // Later changes of the graph do not change the exec. It needs the graph no longer.
  virtual absl::StatusOr<GraphExec> Instantiate(Graph graph) = 0;
  virtual void DestroyExec(GraphExec exec) = 0;
  // Does once, on a stream, what the first launch would do.
  virtual absl::Status Upload(GraphExec exec, Stream stream) = 0;
  virtual absl::Status LaunchGraph(GraphExec exec, Stream stream) = 0;
  // Gives a node another operation: of the same kind, and as for AddNode. A copy must be a line before and after
  // (one row of one slice, or rows without gaps), and of the same CopyKind.
  virtual absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op) = 0;
  // Whether the node does anything; those after it begin nonetheless when those before it have ended.
  virtual absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled) = 0;

  // --- captures and children: graphs that were not built node by node, and graphs as nodes of others ---
  //
  // What is submitted to the stream from now on becomes a graph instead of being run, each operation behind the one
  // before. Until EndCapture the thread that began it submits all of it and asks nothing else of the driver, since most
  // other calls break a capture of CUDA's. Host devices take Copy, CopyBatch, Fill and Launch; Record, Wait, Upload,
  // LaunchGraph and peer copies they refuse with FailedPrecondition, and the capture is broken then. CUDA takes more,
  // and all that its own calls submit to the native handle; but an event recorded meanwhile is never queried. The nodes
  // have the stream's priority and borrow what those of AddNode do. FailedPrecondition where the stream captures
  // already: that capture goes on, but EndCapture tells of the call.
  virtual absl::Status BeginCapture(Stream stream) = 0;
  // Ends the capture, whatever it returns, and gives the caller the graph. That takes no more nodes, and none of its
  // nodes has a number: it is launched as it is, or made a child. FailedPrecondition, in the driver's words, where
  // something has broken the capture or ended it before: the stream works as if it had never begun. The same where a
  // call of the thread was refused meanwhile, through BeginCapture or the native handle: CUDA leaves such a capture
  // valid, and only the operation is missing. What the other calls here refuse is told by their Status alone.
  virtual absl::StatusOr<Graph> EndCapture(Stream stream) = 0;
  // How many nodes the graph has; a child is one.
  virtual absl::StatusOr<int32_t> CountNodes(Graph graph) = 0;
  // Adds a node that is all nodes of another graph, as they are now: they begin when those of `after` have ended, and
  // the node has ended when all of them have. It needs `child` no longer. SetNode and EnableNode do not take it.
  // FailedPrecondition, in the driver's words, for what CUDA takes for no child, as a capture that allocates memory.
  virtual absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child) = 0;
  // Gives a child another graph: of as many nodes, of the same kinds, priorities and edges, in the same order, each
  // such as SetNode might give the one before it. FailedPrecondition, in the driver's words, where it is not, or CUDA
  // refuses for reasons of its own; then the exec still does what it did.
  virtual absl::Status SetChild(GraphExec exec, int32_t node, Graph child) = 0;

 private:
  static absl::Status NoNativeStreams() {
    return absl::InvalidArgumentError("a host device knows no streams but its own; wait for the Run");
  }
};

}  // namespace penstock::driver
