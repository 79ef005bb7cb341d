#include "src/driver/host/tasks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/catch_all.h"
#include "src/driver/copy_box.h"
#include "src/driver/host/chunks.h"

namespace penstock::driver::host {
namespace {

constexpr int64_t kBytesGrain = 256 << 10;  // worth waking a thread for
constexpr int64_t kElementsGrain = 4096;
constexpr size_t kLine = 64;  // the alignment of blocks

void Fetch(const void* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const std::byte*>(from) + at);
}

class CopyTask final : public Task {
 public:
  // Several rows are split by rows, a single one by bytes.
  CopyTask(const CopyOp& op, int threads)
      : Task(op.tag, std::max(1, ChunkCount(Units(op), op.height * op.depth > 1 ? static_cast<int64_t>(op.width) : 1,
                                            kBytesGrain, threads))),
        op_(op) {}

  absl::Status Run(int chunk) override {
    const UnitRange part = ChunkRange(Units(op_), chunks, chunk);
    auto* dst = static_cast<std::byte*>(op_.dst);
    const auto* src = static_cast<const std::byte*>(op_.src);
    if (op_.height * op_.depth == 1) {
      std::memcpy(dst + part.first, src + part.first, static_cast<size_t>(part.end - part.first));
      return absl::OkStatus();
    }
    for (auto row = static_cast<size_t>(part.first); row < static_cast<size_t>(part.end); ++row) {
      const size_t y = row % op_.height, z = row / op_.height;
      std::memcpy(dst + z * op_.dst_slice + y * op_.dst_pitch, src + z * op_.src_slice + y * op_.src_pitch, op_.width);
    }
    return absl::OkStatus();
  }

 private:
  static int64_t Units(const CopyOp& op) {
    const size_t rows = op.height * op.depth;
    return static_cast<int64_t>(rows == 1 ? op.width : rows);
  }
  const CopyOp op_;
};

// Split between pieces.
class BatchTask final : public Task {
 public:
  BatchTask(const BatchOp& op, std::vector<CopyPiece> pieces, size_t bytes, int threads)
      : Task(op.tag, std::max(1, ChunkCount(static_cast<int64_t>(pieces.size()),
                                            static_cast<int64_t>(bytes / std::max<size_t>(pieces.size(), 1)),
                                            kBytesGrain, threads))),
        op_(op),
        table_(op.pieces, op.pieces + op.count),
        pieces_(std::move(pieces)) {}

  absl::Status Run(int chunk) override {
    if (std::memcmp(op_.pieces, table_.data(), table_.size() * sizeof(CopyPiece)) != 0) {
      return absl::InternalError("the table of a batch of copies was changed before the device had done with it");
    }
    const UnitRange part = ChunkRange(static_cast<int64_t>(pieces_.size()), chunks, chunk);
    for (auto i = static_cast<size_t>(part.first); i < static_cast<size_t>(part.end); ++i)
      CopyOnHost(CopyOf(pieces_[i], op_));
    return absl::OkStatus();
  }

 private:
  const BatchOp op_;
  const std::vector<CopyPiece> table_;   // a copy from the time of submission
  const std::vector<CopyPiece> pieces_;
};

// Several rows are split by rows, a single one by patterns.
class FillTask final : public Task {
 public:
  FillTask(const FillOp& op, int threads)
      : Task(op.tag,
             std::max(1, ChunkCount(Units(op), op.pattern_size * (IsRow(op) ? 1 : static_cast<int64_t>(op.count)),
                                    kBytesGrain, threads))),
        op_(op) {}

  absl::Status Run(int chunk) override {
    const UnitRange part = ChunkRange(Units(op_), chunks, chunk);
    auto* const dst = static_cast<std::byte*>(op_.dst);
    if (IsRow(op_)) {
      FillRow(dst + static_cast<size_t>(part.first) * op_.pattern_size, static_cast<size_t>(part.end - part.first));
      return absl::OkStatus();
    }
    for (auto row = static_cast<size_t>(part.first); row < static_cast<size_t>(part.end); ++row) {
      FillRow(dst + row / op_.height * op_.slice + row % op_.height * op_.pitch, op_.count);
    }
    return absl::OkStatus();
  }

 private:
  static bool IsRow(const FillOp& op) { return op.height * op.depth == 1; }
  static int64_t Units(const FillOp& op) { return static_cast<int64_t>(IsRow(op) ? op.count : op.height * op.depth); }

  void FillRow(std::byte* to, size_t count) const {
    const size_t size = op_.pattern_size, bytes = count * size;
    if (bytes == 0) return;
    std::memcpy(to, op_.pattern.data(), size);
    // The bytes written so far are a whole number of patterns, so doubling them continues the pattern.
    for (size_t done = size; done < bytes;) {
      const size_t more = std::min(done, bytes - done);
      std::memcpy(to + done, to, more);
      done += more;
    }
  }

  const FillOp op_;
};

class RangeTask final : public Task {
 public:
  RangeTask(const KernelOp& op, ArgBlock args, int threads)
      : Task(op.tag, std::max(1, ChunkCount(op.rows, op.row_elements, kElementsGrain, threads))),
        args_(std::move(args)),
        range_(op.range),
        rows_(op.rows) {}

  absl::Status Run(int chunk) override {
    const UnitRange part = ChunkRange(rows_, chunks, chunk);
    range_(args_.argv(), part.first, part.end);
    return absl::OkStatus();
  }
  void Prefetch() const override { Fetch(args_.data(), args_.size()); }

 private:
  const ArgBlock args_;
  void (*const range_)(void* const*, int64_t, int64_t);
  const int64_t rows_;
};

class CallTask final : public Task {
 public:
  CallTask(const KernelOp& op, ArgBlock args)
      : Task(op.tag, 1, op.gate), args_(std::move(args)), call_(op.call), callable_(op.callable) {}

  absl::Status Run(int /*chunk*/) override { return call_(callable_, args_.argv()); }

 private:
  const ArgBlock args_;
  absl::Status (*const call_)(void*, void* const*);
  void* const callable_;
};

class RegionTask final : public Task {
 public:
  RegionTask(OpTag op_tag, std::shared_ptr<const RegionTasks> tasks) : Task(op_tag, 1), tasks_(std::move(tasks)) {}

  absl::Status Run(int /*chunk*/) override {
    const RegionTasks& tasks = *tasks_;
    for (size_t i = 0; i < tasks.size(); ++i) {
      // Tasks lie here and there. One that is in no cache may take longer to load than to run.
      if (i + 2 < tasks.size()) Fetch(tasks[i + 2].get(), sizeof(RangeTask));
      if (i + 1 < tasks.size()) tasks[i + 1]->Prefetch();
      const std::unique_ptr<Task>& task = tasks[i];
      RunFault* const fault = task->tag.fault;
      if (fault != nullptr && fault->failed()) return absl::OkStatus();
      absl::Status status = base::CatchAll("the callable", [&] { return task->Run(0); });
      if (status.ok()) continue;
      if (fault == nullptr) return status;
      fault->Fail(task->tag.node, std::move(status));
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const RegionTasks> tasks_;
};

}  // namespace

ArgBlock::ArgBlock(const KernelOp& op) {
  const size_t argv_at = (op.args_size + alignof(void*) - 1) / alignof(void*) * alignof(void*);
  const size_t bytes = argv_at + op.argc * sizeof(void*);
  if (bytes == 0) return;
  block_ = base::AlignedBytes(bytes, std::max<size_t>(op.args_align, kLine));
  if (op.args_size > 0) std::memcpy(block_.data(), op.args, op.args_size);
  argv_ = reinterpret_cast<void**>(block_.data() + argv_at);
  for (uint32_t i = 0; i < op.argc; ++i) {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(op.argv[i]) - reinterpret_cast<uintptr_t>(op.args);
    if (offset >= op.args_size) valid_ = false;
    argv_[i] = block_.data() + (valid_ ? offset : 0);
  }
  for (uint32_t i = 0; i < op.pointer_count; ++i) {
    if (uint64_t{op.pointer_offsets[i]} + sizeof(void*) > op.args_size) valid_ = false;
  }
}

void* ArgBlock::PointerAt(uint32_t offset) const {
  void* value = nullptr;
  std::memcpy(&value, block_.data() + offset, sizeof(value));
  return value;
}

void ArgBlock::SetPointerAt(uint32_t offset, void* value) {
  std::memcpy(block_.data() + offset, &value, sizeof(value));
}

std::unique_ptr<Task> MakeCopyTask(const CopyOp& op, int threads) { return std::make_unique<CopyTask>(op, threads); }
std::unique_ptr<Task> MakeBatchTask(const BatchOp& op, std::vector<CopyPiece> pieces, size_t bytes, int threads) {
  return std::make_unique<BatchTask>(op, std::move(pieces), bytes, threads);
}
std::unique_ptr<Task> MakeFillTask(const FillOp& op, int threads) { return std::make_unique<FillTask>(op, threads); }

std::unique_ptr<Task> MakeRegionTask(OpTag tag, std::shared_ptr<const RegionTasks> tasks) {
  return std::make_unique<RegionTask>(tag, std::move(tasks));
}

std::unique_ptr<Task> MakeKernelTask(const KernelOp& op, ArgBlock args, int threads) {
  if (op.range) return std::make_unique<RangeTask>(op, std::move(args), threads);
  return std::make_unique<CallTask>(op, std::move(args));
}

}  // namespace penstock::driver::host
