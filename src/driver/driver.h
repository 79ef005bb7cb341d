// The seam to the hardware: devices, streams, events, memory, copies, fills and kernel launches.
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

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/copy_piece.h"

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

enum class DeviceKind : uint8_t { kHost, kCuda };

struct DeviceInfo {
  DeviceKind kind = DeviceKind::kHost;
  std::string name;         // as users write it: "host:0", "cuda:1"
  std::string description;  // "NVIDIA H200", "2 CPU threads"
  int64_t memory_bytes = 0;
  int compute_units = 1;
  std::string pci_bus_id{};  // "0000:3b:00.0"; empty: not on a PCI bus
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

// What a run shares with the work it submits. Host devices write the first failure of a callable here and skip later
// work of the same run; work on CUDA devices ignores it.
// `Atomic` is std::atomic but in tests that explore schedules.
template <template <class> class Atomic>
class BasicRunFault {
 public:
  // Records `failure` of a plan node (-1: not known which) unless one is there already. Thread-safe.
  void Fail(int32_t node, absl::Status failure) {
    int expected = kNone;
    if (!state_.compare_exchange_strong(expected, kWriting, std::memory_order_acq_rel)) return;
    node_ = node;
    status_ = std::move(failure);
    state_.store(kSet, std::memory_order_release);
  }
  bool failed() const { return state_.load(std::memory_order_acquire) == kSet; }
  // Only after failed() has returned true.
  int32_t node() const { return node_; }
  const absl::Status& status() const { return status_; }
  // Between two runs, when nothing refers to the first any more.
  void Reset() {
    status_ = absl::OkStatus();
    state_.store(kNone, std::memory_order_release);
  }

 private:
  static constexpr int kNone = 0, kWriting = 1, kSet = 2;
  Atomic<int> state_{kNone};
  int32_t node_ = -1;
  absl::Status status_;
};
using RunFault = BasicRunFault<std::atomic>;

// Limits how many executions of one callable run at once, over all slots. Owned by the executable.
struct Gate {
  explicit Gate(int limit_in = 1) : limit(limit_in) {}
  int limit;
  int running = 0;          // guarded by the driver that schedules the work
};

struct OpTag {
  RunFault* fault = nullptr;
  int32_t node = -1;        // index of the plan node
};

enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeer };

// A box of bytes: `width` contiguous bytes, `height` rows, `depth` slices. Pitches are bytes from row to row, slices
// bytes from slice to slice; both are ignored where there is one row or one slice.
struct CopyOp {
  CopyKind kind = CopyKind::kHostToDevice;
  void* dst = nullptr;
  const void* src = nullptr;
  size_t width = 0, height = 1, depth = 1;
  size_t dst_pitch = 0, src_pitch = 0, dst_slice = 0, src_slice = 0;
  int dst_device = -1, src_device = -1;  // kPeer
  OpTag tag{};
};

// Sums of a batch, as a driver needs them to submit it.
struct BatchSize {
  size_t bytes = 0;
  size_t largest = 0;  // bytes of the largest piece
  friend bool operator==(const BatchSize&, const BatchSize&) = default;
};

// Many copies of one kind, kPeer excepted, in one submission and in any order among themselves: where one writes what
// another reads or writes, nobody knows which bytes stay. `pieces` lies in pinned memory, and like the memory it names
// stays as it is until the work is done: the device reads it then.
struct BatchOp {
  CopyKind kind = CopyKind::kHostToDevice;
  const CopyPiece* pieces = nullptr;
  size_t count = 0;
  BatchSize size{};  // what SizeOf (copy_box.h) says of the pieces, unless 0: a driver need not read them all then
  OpTag tag{};
};

// Writes a pattern of `pattern_size` bytes (1 to 16) over and over to a box of device memory: `count` times a row,
// `height` rows, `depth` slices. Every row begins with the pattern's first byte. Pitch and slice as in CopyOp.
struct FillOp {
  void* dst = nullptr;
  std::array<std::byte, 16> pattern{};
  uint32_t pattern_size = 1;
  size_t count = 0, height = 1, depth = 1;
  size_t pitch = 0, slice = 0;
  OpTag tag{};
};

// A box of memory that a kernel's argument names, and what the kernel does to it. Strides as in CopyOp.
struct MemoryUse {
  const void* data = nullptr;
  size_t width = 0, height = 1, depth = 1;
  size_t pitch = 0, slice = 0;
  bool reads = false, writes = false;
  bool ordered = true;      // false: the user answers for its order
};

// Who can tell what a plan node does to which memory. Only a driver that checks asks.
class UseSource {
 public:
  virtual void AppendUses(int32_t node, std::vector<MemoryUse>& out) const = 0;

 protected:
  ~UseSource() = default;
};

// A kernel with its arguments. A CUDA device uses `kernel`, `grid`, `block`, `shared_bytes` and `argv`; a host device
// uses `range` over `rows`, or else `call`. Arguments are read before the call returns.
struct KernelOp {
  const void* kernel = nullptr;    // from LoadKernel
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t shared_bytes = 0;

  void* const* argv = nullptr;     // argument i, inside `block_bytes`
  uint32_t argc = 0;
  const std::byte* args = nullptr; // the argument block
  uint32_t args_size = 0;
  const uint32_t* pointer_offsets = nullptr;  // where in the block device pointers stand
  uint32_t pointer_count = 0;

  void (*range)(void* const* argv, int64_t first, int64_t end) = nullptr;
  int64_t rows = 0;
  int64_t row_elements = 1;        // elements a row, to choose how to split
  absl::Status (*call)(void* callable, void* const* argv) = nullptr;
  void* callable = nullptr;
  Gate* gate = nullptr;            // of `call`
  OpTag tag{};
  const UseSource* uses = nullptr; // of tag.node; null: nobody knows
};

// Asks the user's translation unit for a kernel: see NodeCode::cuda_kernel in penstock/model.h.
struct KernelSource {
  const void* (*load)(const void* self, int* error) = nullptr;
  const void* self = nullptr;
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
  // Whether event completions ring the Bell the driver was made with; if not, waiters must poll.
  virtual bool rings() const = 0;

  // Streams never synchronize with the default stream. Lower numbers are higher priorities, 0 is the default.
  virtual absl::StatusOr<Stream> CreateStream(int device, int priority) = 0;
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
  virtual absl::StatusOr<const void*> LoadKernel(int device, const KernelSource& source) = 0;
  virtual absl::Status Launch(Stream stream, const KernelOp& op) = 0;
  // Says that foreign code is about to submit work of a node to the stream's native handle.
  virtual absl::Status Foreign(Stream /*stream*/, OpTag /*tag*/, const UseSource& /*uses*/) { return absl::OkStatus(); }
};

}  // namespace penstock::driver
