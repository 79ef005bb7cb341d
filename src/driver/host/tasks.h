// The work of host devices: copies, fills, kernels over rows and whole-node callables, each as a Task of one
// or more chunks.
//
// A Task holds everything it needs: addresses are translated and arguments copied when it is made. It knows no streams;
// the Scheduler decides when and on which thread each chunk runs.
//
// Threads:   the submitting thread makes a Task; its chunks then run on threads of the device, several concurrently.
// Errors:    Run returns what the user's code returned; exceptions pass through (the Scheduler turns them
//            into a Status).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/aligned_bytes.h"
#include "src/driver/driver.h"

namespace penstock::driver::host {

enum class EngineKind : uint8_t { kUpload, kDownload, kCompute };
inline constexpr size_t kEngineKinds = 3;

class Task {
 public:
  Task(OpTag op_tag, int chunk_count, TrySemaphore* op_gate = nullptr)
      : tag(op_tag), chunks(chunk_count), gate(op_gate) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // Does chunk `chunk` (0 <= `chunk` < `chunks`): each is done exactly once, in any order and concurrently.
  virtual absl::Status Run(int chunk) = 0;
  // Begins to load what Run reads.
  virtual void Prefetch() const {}

  const OpTag tag;
  const int chunks;  // at least 1
  TrySemaphore* const gate;  // may be null
};

// A task and its engine.
struct Work {
  EngineKind engine = EngineKind::kCompute;
  std::unique_ptr<Task> task;  // null: nothing to do
};

// `op` has both addresses translated. Up to `threads` threads share the task.
std::unique_ptr<Task> MakeCopyTask(const CopyOp& op, int threads);
// `pieces` are those of `op`, not empty, with addresses translated; `bytes` is their sum. Run fails if the table of
// `op` has changed by then, since a device would have copied something else.
std::unique_ptr<Task> MakeBatchTask(const BatchOp& op, std::vector<CopyPiece> pieces, size_t bytes, int threads);
std::unique_ptr<Task> MakeFillTask(const FillOp& op, int threads);

// A copy of an operation's arguments, in one block with their alignment.
class ArgBlock {
 public:
  // Copies argv and the block of `op`. `valid()` is false if an argument does not lie in the block.
  explicit ArgBlock(const KernelOp& op);
  bool valid() const { return valid_; }
  const std::byte* data() const { return block_.data(); }
  size_t size() const { return block_.size(); }
  void* const* argv() const { return argv_; }
  void* PointerAt(uint32_t offset) const;
  void SetPointerAt(uint32_t offset, void* value);

 private:
  base::AlignedBytes block_;  // the arguments, then argv
  void** argv_ = nullptr;
  bool valid_ = true;
};

// The tasks of a region, each of one chunk and without a gate, to be run any number of times.
using RegionTasks = std::vector<std::unique_ptr<Task>>;
// Runs them one after another, in one chunk. The first that fails is recorded with its own node, and the rest is left
// out, as it is once the run has failed elsewhere.
std::unique_ptr<Task> MakeRegionTask(OpTag tag, std::shared_ptr<const RegionTasks> tasks);

// `args` has its pointers translated; everything else comes from `op`, which has rows or a callable.
std::unique_ptr<Task> MakeKernelTask(const KernelOp& op, ArgBlock args, int threads);

}  // namespace penstock::driver::host
