// The driver interface to the hardware: devices, streams, events, memory, copies, fills and kernel launches.
//
// Everything above uses only this interface. Its implementations are host/ (CPU threads with CUDA's semantics) and
// cuda/ (a thin adapter of the CUDA runtime). A decorator may stand in front of either.
//
// Ownership: the caller destroys what it creates, after the work that uses it has finished.
// Threads:   every call is thread-safe. One thread at a time feeds a stream.
// Ordering:  work on one stream runs in order of submission; only events order different streams. Calls that take a
//            stream return when the work is queued, not when it is done.
// Errors:    a call that fails has no effect. After an asynchronous fault that ended the device, every later call
//            returns that fault (see FaultOf in src/base/status.h), and calls that destroy or free do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// A graph of operations, and an instance of one.
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
  std::string architecture{};  // of a CUDA device, as its compilers name it: "sm_90"
};

// The kind of memory at an address, and the bytes around it for which that holds: [begin, end) is its allocation if the
// driver can tell, otherwise the one byte. Empty for pageable memory.
struct PointerInfo {
  enum class Kind : uint8_t { kPageable, kPinned, kDevice };
  Kind kind = Kind::kPageable;
  int device = -1;  // kDevice: the device that has the memory
  uintptr_t begin = 0, end = 0;

  friend bool operator==(const PointerInfo&, const PointerInfo&) = default;
  // Whether this holds for all `bytes` bytes from `at`.
  bool Covers(uintptr_t at, size_t bytes) const { return at >= begin && at < end && bytes <= end - at; }
};

inline constexpr int kMaxPendingHostcalls = 32;
inline constexpr int kMostBodies = 64;  // of a conditional node

// Gets a kernel from the user's translation unit: see NodeCode::cuda_kernel in penstock/detail/model.h.
struct KernelSource {
  const void* (*load)(const void* self, int* error) = nullptr;
  const void* self = nullptr;
  bool awaits = false;  // it begins with AwaitDependencies (penstock/detail/programmatic.h) or its equivalent
  const char* variable = nullptr;  // the name of a __device__ variable in the kernel's body; null: none is asked for
};

// A kernel that has been loaded.
struct KernelCode {
  const void* kernel = nullptr;
  bool awaits = false;  // it begins by awaiting its predecessors, so it may be launched before they have ended
  int64_t block_threads = INT64_MAX;  // the most threads of a block, by its registers or launch bounds
  int64_t shared_bytes = 0;  // static shared memory per block
  const void* variable = nullptr;  // the address of the variable that the source asks for
};

// The blocks in which most threads of a kernel run at once.
struct BlockSize {
  uint32_t threads = 256;  // of a block
  int32_t at_once = 0;  // how many such blocks run on a multiprocessor at once; 0: unknown
  friend bool operator==(const BlockSize&, const BlockSize&) = default;
};

// A kernel of an image that was loaded for it.
struct ImageKernel {
  KernelCode code{};
  std::vector<uint32_t> parameters{};  // the bytes of each
  // Keeps the image loaded; the kernel must not be used without it, nor by work in flight. The last holder unloads it,
  // which may wait for what runs on the devices, and may outlive the driver.
  std::shared_ptr<const void> image{};
};

// The code of one of the library's own kernels, with one thread and one argument: `kernel` on a CUDA device, `call` on
// a host device.
struct LibraryCode {
  KernelCode kernel{};
  absl::Status (*call)(void* callable, void* const* argv) = nullptr;
};
// Its operation; `argv` points to the argument, of `size` bytes.
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

// A node of a graph that decides, while the graph runs, which of its bodies run, and how often, by a value that kernels
// before it set (penstock/detail/decision.h).
//   kIf      the first body if the value is not 0, otherwise the second, if there is one
//   kWhile   the body, again and again until the value is 0; kernels in the body set it
//   kSwitch  the body of that number; none if there is none
enum class ConditionalKind : uint8_t { kIf, kWhile, kSwitch };

// What kernels switch a node by: SwitchNode (penstock/detail/decision.h).
struct NodeSwitch {
  uint64_t bits = 0;
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(NodeSwitch, NodeSwitch) = default;
};

// Nodes that kernels switch so that in each launch those of at most one body are on, of all bodies with the same `of`.
// So they may use the same memory in any order.
struct Alternative {
  int32_t of = -1;  // the node that decides; -1: there is no such agreement
  int32_t body = 0;
};

// What such kernels set: Decision::handle.
struct ConditionalHandle {
  uint64_t bits = 0;
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(ConditionalHandle, ConditionalHandle) = default;
};

// A conditional node that has been added: its number, and its bodies, which are graphs to add nodes to.
struct ConditionalNode {
  int32_t number = -1;
  std::vector<Graph> bodies;
};

// The kernels of loop_kernels.h.
struct LoopKernels {
  LibraryCode decide, look;
};

// Where a graph's node runs, and before which others: among kernels that could begin on its device, one with the lowest
// `priority` does. Of a capture's children all nodes keep their device.
struct NodePlace {
  int priority = 0;
  int device = -1;  // -1: that of the graph
};

// A call of the host, for a graph node.
struct HostCall {
  void (*call)(void* context) = nullptr;
  void* context = nullptr;
};

class Driver {
 public:
  virtual ~Driver() = default;

  // Devices are numbered from 0 in the order of the driver's options.
  virtual int device_count() const = 0;
  virtual const DeviceInfo& device(int device) const = 0;
  // Makes `device` current for the calling thread, and returns the token with which RestoreCurrent undoes it. A thread
  // uses a device's streams, events, memory and kernels while that device is current.
  virtual int MakeCurrent(int device) = 0;
  virtual void RestoreCurrent(int token) = 0;
  // Whether event completions notify the EventCount that the driver was made with; if not, waiters must poll.
  virtual bool notifies_completion() const = 0;

  // Streams never synchronize with the default stream. Lower numbers are higher priorities, 0 is the default.
  virtual absl::StatusOr<Stream> CreateStream(int device, int priority) = 0;
  // Ends a capture on the stream too.
  virtual void DestroyStream(Stream stream) = 0;
  // The cudaStream_t, or null on host devices.
  virtual void* NativeStream(Stream stream) const = 0;

  // An event that was never recorded counts as complete.
  virtual absl::StatusOr<Event> CreateEvent(int device, bool timing) = 0;
  virtual void DestroyEvent(Event event) = 0;
  virtual absl::Status Record(Event event, Stream stream) = 0;
  virtual absl::Status Wait(Stream stream, Event event) = 0;
  // The same for the current record of an application's event, a cudaEvent_t. InvalidArgument on host devices.
  virtual absl::Status WaitNative(Stream /*stream*/, void* /*event*/) {
    return absl::InvalidArgumentError("a host device knows no events but its own; name a Run");
  }
  // The device of an application's stream, a cudaStream_t. InvalidArgument if it belongs to none of the devices, and on
  // host devices; FailedPrecondition while it captures, without ending the capture. Call it with no device made
  // current, since CUDA's default streams mean those of the thread's own device.
  virtual absl::StatusOr<int> DeviceOfNative(void* /*stream*/) { return NoNativeStreams(); }
  // Record and Wait on that stream, with its device current.
  virtual absl::Status RecordOnNative(Event /*event*/, void* /*stream*/) { return NoNativeStreams(); }
  virtual absl::Status MakeNativeWait(void* /*stream*/, Event /*event*/) { return NoNativeStreams(); }
  virtual absl::StatusOr<bool> Query(Event event) = 0;
  // Microseconds between two complete timing events of one device.
  virtual absl::StatusOr<double> Elapsed(Event begin, Event end) = 0;

  // Allocates device memory, 256-byte aligned, which the host must not dereference. ResourceExhausted names the bytes
  // requested and free.
  virtual absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) = 0;
  virtual void FreeDevice(int device, void* memory) = 0;
  // The bytes allocated and not freed; 0 from a driver that does not count them.
  virtual int64_t AllocatedOn(int /*device*/) const { return 0; }
  // Page-locked host memory that every device of this driver can copy from and to.
  virtual absl::StatusOr<void*> AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;
  virtual absl::StatusOr<PointerInfo> Inspect(const void* memory) = 0;

  // Lets kernels on one device read the memory of another over a direct link. Returns whether they can.
  virtual bool OpenLink(int /*device*/, int /*peer*/) { return false; }
  // Copies a box. Host memory must be pinned. InvalidArgument if rows overlap each other or a size overflows.
  //
  // Peer copies use a direct link if the two devices have one. The first copy between them opens it, so links that no
  // plan uses cost nothing. Without a link the driver copies through pinned memory of its own, in stream order like any
  // copy. A stream of either device will do.
  virtual absl::Status Copy(Stream stream, const CopyOp& op) = 0;
  // Copies a batch; a device works on all its pieces concurrently. InvalidArgument as for Copy, with the number of the
  // piece; then none is copied.
  virtual absl::Status CopyBatch(Stream stream, const BatchOp& op) = 0;
  // Fills a box. InvalidArgument as for Copy, and for invalid pattern sizes.
  virtual absl::Status Fill(Stream stream, const FillOp& op) = 0;

  // Loads a kernel so that its first launch need not. Host devices return null.
  virtual absl::StatusOr<KernelCode> LoadKernel(int device, const KernelSource& source) = 0;
  // Loads an image of device code (a cubin), and the kernel in it that has this symbol, as LoadKernel does; the image
  // is not needed afterwards. `awaits`: as in KernelSource. Host devices have no such code: Unimplemented.
  virtual absl::StatusOr<ImageKernel> LoadImage(int /*device*/, std::string_view /*image*/, const char* /*symbol*/,
                                                bool /*awaits*/) {
    return absl::UnimplementedError("a host device runs no images of device code");
  }
  // Finds the size of blocks with which most threads of a loaded kernel run at once, if each block takes so
  // much dynamic shared memory. Host devices calculate nothing.
  virtual absl::StatusOr<BlockSize> FindBlockSize(int /*device*/, const KernelCode& /*code*/,
                                                  uint32_t /*shared_bytes*/) {
    return BlockSize{};
  }
  virtual absl::Status Launch(Stream stream, const KernelOp& op) = 0;
  // Loads the kernel that makes a hostcall; its argument is a HostcallArgs (hostcall_slot.h). While one waits, freeing
  // memory (cudaFree, cudaFreeHost) waits for it, and so does the first launch of a kernel that is not loaded yet. A
  // device has room for kMaxPendingHostcalls that wait at the same time; with many more, nothing else runs there.
  virtual absl::StatusOr<LibraryCode> LoadHostcall(int /*device*/) {
    return absl::UnimplementedError("this driver has no kernel that asks the host");
  }
  // Loads the kernel that records the device's time; its argument is a TimestampArgs (timestamp.h).
  virtual absl::StatusOr<LibraryCode> LoadTimestamp(int /*device*/) {
    return absl::UnimplementedError("this driver has no kernel that writes down the time");
  }
  // Announces that a Launch callable is about to submit a node's work to the stream's native handle. In a capture,
  // `uses` must live as long as that of a node.
  virtual absl::Status LaunchContext(Stream /*stream*/, OpTag /*tag*/, const UseSource& /*uses*/) {
    return absl::OkStatus();
  }

  // --- graphs: the same operations, submitted as one; only edges order them ---
  //
  // A graph belongs to a device and is launched on that device's streams. Its nodes may run on any device of the
  // driver, except that the bodies of conditional nodes stay on the graph's device and copy nothing to or from another.
  // CUDA copies between devices without a link through memory of its own.
  //
  // One thread at a time uses a graph or an exec. An exec never overlaps itself: a launch waits for the previous one.
  // Changes to an exec apply to later launches, even while an earlier one runs.
  virtual absl::StatusOr<Graph> CreateGraph(int device) = 0;
  virtual void DestroyGraph(Graph graph) = 0;
  // Adds a node that begins when those in `after` have ended, and returns its number, counting from 0. An operation
  // must do something: InvalidArgument for operations of no bytes, rows or blocks (disable the node instead), and for
  // copies whose slices are not a whole number of rows apart (a batch may have them, if it is no kPeer). A batch must
  // give its size; its table is read when the graph runs, and may be rewritten between two runs. The objects that a
  // kernel names (`callable`, `gate`, `fault`, `uses`) must live as long as the node names them.
  virtual absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                          NodePlace place) = 0;
  // Adds a node that calls the host, for graphs that are not launched by runs. On CUDA a thread of the CUDA driver
  // makes the call, which must not call CUDA; the device's other host calls wait meanwhile. The callee must live as
  // long as the node, and so must `call` itself. SetNode and EnableNode refuse such a node.
  virtual absl::StatusOr<int32_t> AddHost(Graph /*graph*/, std::span<const int32_t> /*after*/,
                                          const HostCall& /*call*/) {
    return absl::UnimplementedError("this driver's graphs do not call the host");
  }
  // The cudaGraph_t, which still belongs to the driver, or null on host devices.
  virtual void* NativeGraph(Graph /*graph*/) { return nullptr; }
  // Makes an exec, which needs the graph no longer; later changes of the graph do not change it.
  virtual absl::StatusOr<GraphExec> Instantiate(Graph graph) = 0;
  virtual void DestroyExec(GraphExec exec) = 0;
  // Does on a stream, once, what the first launch would do.
  virtual absl::Status Upload(GraphExec exec, Stream stream) = 0;
  virtual absl::Status LaunchGraph(GraphExec exec, Stream stream) = 0;
  // Replaces a node's operation by one of the same kind, under the rules of AddNode. A copy must be linear before and
  // after (one row of one slice, or rows without gaps), and of the same CopyKind and, if that is kPeer, the same
  // devices. A region keeps the number of its
  // operations, and the edges between them, which only a checking driver looks at.
  virtual absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op) = 0;
  // Sets whether the node does anything; its successors still begin only when its predecessors have ended.
  virtual absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled) = 0;

  // --- captures and children: graphs not built node by node, and graphs as nodes of others ---
  //
  // From now on, work submitted to the stream becomes a graph instead of running, each operation after the one before.
  // Until EndCapture the thread that began the capture submits all of it and makes no other driver call, since most
  // break a capture in CUDA. Host devices accept Copy, CopyBatch, Fill and Launch; Record, Wait, Upload, LaunchGraph
  // and peer copies return FailedPrecondition and break the capture. CUDA accepts more, and everything that its own
  // calls submit to the native handle; but an event recorded meanwhile must never be queried. The nodes have the
  // stream's priority, and borrow what those of AddNode do. FailedPrecondition if the stream is already capturing: that
  // capture goes on, but EndCapture reports the call.
  virtual absl::Status BeginCapture(Stream stream) = 0;
  // Ends the capture, whatever it returns, and gives the graph to the caller. The graph accepts no more nodes, and its
  // nodes have no numbers: launch it as it is, or make it a child. FailedPrecondition, in the driver's words, if
  // something has broken or ended the capture; the stream then works as if it had never begun. The same if a call of
  // the thread was refused meanwhile, in BeginCapture or through the native handle: CUDA leaves such a capture valid,
  // with only the operation missing. Other calls of this interface report refusals only in their own Status.
  virtual absl::StatusOr<Graph> EndCapture(Stream stream) = 0;
  // The number of nodes in the graph; a child counts as one.
  virtual absl::StatusOr<int32_t> CountNodes(Graph graph) = 0;
  // Adds a node that consists of all nodes of another graph, as they are now. They begin when those in `after` have
  // ended, and the node has ended when all of them have. `child` is no longer needed. SetNode and EnableNode refuse
  // such a node. FailedPrecondition, in the driver's words, if CUDA does not accept the graph as a child, such as a
  // capture that allocates memory.
  virtual absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child) = 0;
  // Replaces a child by another graph, with as many nodes of the same kinds, priorities and edges in the same order,
  // each of which SetNode could set in place of the old one. FailedPrecondition, in the driver's words, if it differs,
  // or CUDA refuses for its own reasons; the exec then does what it did before.
  virtual absl::Status SetChild(GraphExec exec, int32_t node, Graph child) = 0;

  // --- conditional nodes ---
  //
  // A graph with one can be instantiated once, and be no child: FailedPrecondition. Of the loops (kWhile) of a device
  // at most one may run at a time: several end the context on CUDA. Edges order those of one graph, unless one is
  // inside of the other; launches of graphs with loops take turns, in all streams and drivers of the process. On host
  // devices a loop also ends when a run that its nodes belong to (RunFault) has failed.
  //
  // Makes a handle for a node that will be added to the graph. Its value is undefined before a kernel has set it.
  virtual absl::StatusOr<ConditionalHandle> CreateConditional(Graph /*graph*/) { return NoConditionals(); }
  // Adds the node of a handle, which begins when those in `after` have ended, and ends when no body runs any more. The
  // graph owns the bodies: DestroyGraph of one does nothing, and it is neither instantiated (InvalidArgument) nor a
  // child (FailedPrecondition). They accept all that a graph does except calls of the host, and children that hold one
  // or anything else that CUDA refuses there, which FailedPrecondition names. One or two bodies for kIf, one for
  // kWhile, 1 to kMostBodies for kSwitch; otherwise, and for a handle of another graph or with a node already,
  // InvalidArgument. Handles of two graphs may be equal on CUDA. SetNode and EnableNode refuse the node.
  virtual absl::StatusOr<ConditionalNode> AddConditional(Graph /*graph*/, std::span<const int32_t> /*after*/,
                                                         ConditionalHandle /*handle*/, ConditionalKind /*kind*/,
                                                         int32_t /*bodies*/) {
    return NoConditionals();
  }
  // The nodes of a body in an exec of its graph, as they were when that was made: SetNode, EnableNode and SetChild
  // accept it in place of the exec, and nothing else does. DestroyExec ends it, before that of the exec.
  // InvalidArgument for any other graph.
  virtual absl::StatusOr<GraphExec> BodyOf(GraphExec /*exec*/, Graph /*body*/) { return NoConditionals(); }
  // Lets kernels that come before a node in its graph switch it off and on while the graph runs. A node that is off
  // does nothing; all are on when a launch begins. The node is a kernel, a batch, a fill or a region. Its graph can be
  // instantiated once, and be no child: FailedPrecondition, as for any other node. Once for a node: InvalidArgument.
  // SetNode and EnableNode of the node must not be called while a launch runs; a node that EnableNode has switched off
  // must not be switched on by a kernel. Only a checking driver looks at `alternative`.
  virtual absl::StatusOr<NodeSwitch> AddSwitch(Graph /*graph*/, int32_t /*node*/, Alternative /*alternative*/) {
    return NoConditionals();
  }
  // Loads the kernels of loop_kernels.h.
  virtual absl::StatusOr<LoopKernels> LoadLoopKernels(int /*device*/) { return NoConditionals(); }

 private:
  static absl::Status NoConditionals() {
    return absl::UnimplementedError("this driver's graphs have no conditional nodes");
  }
  static absl::Status NoNativeStreams() {
    return absl::InvalidArgumentError("a host device knows no streams but its own; wait for the Run");
  }
};

}  // namespace penstock::driver
