// The work given to a driver: copies, batches of copies, fills and kernels, on a stream or as nodes of a graph, and
// regions of them as nodes of a graph.
//
// They are plain descriptions: addresses, shapes, and the node to blame. driver.h defines what a driver does with them.
//
// Ownership: an operation borrows everything it points to. Unless stated otherwise a driver reads it before
//            the call returns.
// Threads:   plain values, except RunFault, which is shared.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "src/driver/copy_piece.h"

namespace penstock::driver {

// Shared by a run and the work it submits. Host devices write the first failure of a callable here, and skip later work
// of the same run; work on CUDA devices ignores it, except loops, which a word ends. One may be inside of another: a
// failure of either is one of both. `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic>
class BasicRunFault {
 public:
  // Records `failure` of a plan node (-1: unknown) unless one is there already. Thread-safe.
  void Fail(int32_t node, absl::Status failure) {
    int expected = kNone;
    if (!state_.compare_exchange_strong(expected, kWriting, std::memory_order_acq_rel)) return;
    node_ = node;
    status_ = std::move(failure);
    state_.store(kSet, std::memory_order_release);
    if (stop_ != nullptr) std::atomic_ref<uint32_t>(*stop_).store(1, std::memory_order_relaxed);
    if (outer_ != nullptr) outer_->Fail(outer_node_, status_);
  }
  bool failed() const {
    return state_.load(std::memory_order_acquire) == kSet || (outer_ != nullptr && outer_->failed());
  }
  // Whether it has failed itself.
  bool is_set() const { return state_.load(std::memory_order_acquire) == kSet; }
  // Valid only after failed() has returned true.
  int32_t node() const { return is_set() ? node_ : -1; }
  const absl::Status& status() const { return is_set() || outer_ == nullptr ? status_ : outer_->status(); }
  // For use between two runs, when nothing refers to the first any more.
  void Reset() {
    status_ = absl::OkStatus();
    state_.store(kNone, std::memory_order_release);
    if (stop_ != nullptr) std::atomic_ref<uint32_t>(*stop_).store(0, std::memory_order_relaxed);
  }
  bool is_inside() const { return outer_ != nullptr; }
  // For use before there is work. Its failures fail `node` of the outer one.
  void PutInside(BasicRunFault& outer, int32_t node) {
    outer_ = &outer;
    outer_node_ = node;
  }
  // A word in pinned memory that is 1 after a failure, otherwise 0.
  void UseStop(uint32_t* stop) { stop_ = stop; }

 private:
  static constexpr int kNone = 0, kWriting = 1, kSet = 2;
  Atomic<int> state_{kNone};  // whether the first failure is being written, or is there
  int32_t node_ = -1;
  absl::Status status_;
  BasicRunFault* outer_ = nullptr;
  int32_t outer_node_ = -1;
  uint32_t* stop_ = nullptr;
};
using RunFault = BasicRunFault<std::atomic>;

// Limits the concurrent executions of one callable over all slots. Owned by the executable.
struct TrySemaphore {
  explicit TrySemaphore(int limit_in = 1) : limit(limit_in) {}
  int limit;
  int running = 0;  // guarded by the driver that schedules the work
};

struct OpTag {
  RunFault* fault = nullptr;
  int32_t node = -1;  // index of the plan node
};

enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeer };

// A box of bytes: `width` contiguous bytes, `height` rows, `depth` slices. Pitches are bytes from row to row, slices
// bytes from slice to slice; both are ignored if there is one row or one slice.
struct CopyOp {
  CopyKind kind = CopyKind::kHostToDevice;
  void* dst = nullptr;
  const void* src = nullptr;
  size_t width = 0, height = 1, depth = 1;
  size_t dst_pitch = 0, src_pitch = 0, dst_slice = 0, src_slice = 0;
  int dst_device = -1, src_device = -1;  // kPeer
  OpTag tag{};
};
inline bool IsEmpty(const CopyOp& op) { return op.width == 0 || op.height == 0 || op.depth == 0; }

// The sums over a batch that a driver needs to submit it.
struct BatchSize {
  size_t bytes = 0;
  size_t largest = 0;  // bytes of the largest piece
  friend bool operator==(const BatchSize&, const BatchSize&) = default;
};

// Many copies of one kind, except kPeer, in one submission and in any order: if one writes what another reads or
// writes, the result is unspecified. `pieces` lies in pinned memory; it, and the memory it names, must not change until
// the work is done, since the device reads them then.
struct BatchOp {
  CopyKind kind = CopyKind::kHostToDevice;
  const CopyPiece* pieces = nullptr;
  size_t count = 0;
  BatchSize size{};  // the pieces' SizeOf (copy_box.h), or 0; if set, a driver need not read all of them
  OpTag tag{};
};

// Writes a pattern of `pattern_size` bytes (1 to 16) repeatedly to a box of device memory: `count` times per row,
// `height` rows, `depth` slices. Every row begins with the pattern's first byte. Pitch and slice are as in CopyOp.
struct FillOp {
  void* dst = nullptr;
  std::array<std::byte, 16> pattern{};
  uint32_t pattern_size = 1;
  size_t count = 0, height = 1, depth = 1;
  size_t pitch = 0, slice = 0;
  OpTag tag{};
};
inline bool IsEmpty(const FillOp& op) { return op.count == 0 || op.height == 0 || op.depth == 0; }

// A box of memory that a kernel's argument names, and what the kernel does to it. Strides are as in CopyOp.
struct MemoryUse {
  const void* data = nullptr;
  size_t width = 0, height = 1, depth = 1;
  size_t pitch = 0, slice = 0;
  bool reads = false, writes = false;
  bool keeps = false;  // if it does not read: contents that it does not write must keep their values
  bool ordered = true;  // false: the user is responsible for its order
};

// Tells which memory a plan node uses and how. Only a checking driver calls it.
class UseSource {
 public:
  virtual void AppendUses(int32_t node, std::vector<MemoryUse>& out) const = 0;

 protected:
  ~UseSource() = default;
};

// A kernel with its arguments. A CUDA device uses `kernel`, `grid`, `block`, `shared_bytes` and `argv`; a host device
// uses `range` over `rows`, or otherwise `call`. Arguments are read before the call returns.
struct KernelOp {
  const void* kernel = nullptr;  // from LoadKernel
  bool awaits = false;  // from LoadKernel: a graph may launch it while its predecessors are still ending
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t shared_bytes = 0;

  void* const* argv = nullptr;  // argument i, inside `args`
  uint32_t argc = 0;
  uint32_t args_align = 16;  // power-of-two alignment of the block, and of any copy of it
  const std::byte* args = nullptr;  // the argument block
  uint32_t args_size = 0;
  const uint32_t* pointer_offsets = nullptr;  // offsets of device pointers in the block
  uint32_t pointer_count = 0;

  void (*range)(void* const* argv, int64_t first, int64_t end) = nullptr;
  int64_t rows = 0;
  int64_t row_elements = 1;  // elements per row, to choose how to split
  absl::Status (*call)(void* callable, void* const* argv) = nullptr;
  void* callable = nullptr;
  TrySemaphore* gate = nullptr;  // for `call`
  OpTag tag{};
  const UseSource* uses = nullptr;  // of tag.node; null: its uses are unknown
};

// The operation of a graph node.
struct RegionOp;
using NodeOp = std::variant<const CopyOp*, const BatchOp*, const FillOp*, const KernelOp*, const RegionOp*>;

// Operations that run as one node: by the workers of one resident kernel on a CUDA device, one after another by one
// thread on a host device. Only copies within the device, fills, and kernels that a host device runs over rows.
struct RegionOp {
  // The first of the two ends before the second begins. They are indices in `ops`, the first the lower one.
  struct Edge {
    int32_t before, after;
  };
  std::span<const NodeOp> ops;  // may be empty ones, such as a fill of no bytes
  std::span<const Edge> edges;
  const KernelOp* resident = nullptr;  // what a CUDA device launches; null on host devices
  OpTag tag{};
};
inline OpTag TagOf(const NodeOp& op) {
  return std::visit([](const auto* of) { return of->tag; }, op);
}

}  // namespace penstock::driver
