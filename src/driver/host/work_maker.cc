#include "src/driver/host/work_maker.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/copy_box.h"
#include "src/driver/fill_box.h"

namespace penstock::driver::host {
namespace {

EngineKind EngineOf(CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice:
    case CopyKind::kPeer: return EngineKind::kUpload;  // beside kernels, however long they take
    case CopyKind::kDeviceToHost: return EngineKind::kDownload;
    default: return EngineKind::kCompute;
  }
}

}  // namespace

absl::Status WorkMaker::CheckDevice(int device) const {
  if (device >= 0 && static_cast<size_t>(device) < heaps_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no device ", device, "; this driver has ", heaps_.size()));
}

absl::StatusOr<std::byte*> WorkMaker::AccessDevice(int device, const void* memory, size_t bytes,
                                                   const char* what) const {
  auto real = heaps_[static_cast<size_t>(device)]->Access(memory, bytes);
  if (real.ok()) return real;
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", real.status().message()));
}

absl::Status WorkMaker::CheckPinned(const void* memory, size_t bytes, const char* what) const {
  if (pinned_.Contains(memory, bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": bytes [0x", absl::Hex(reinterpret_cast<uintptr_t>(memory)),
                                                 ", +", bytes,
                                                 ") are not pinned memory of this driver; copies from and "
                                                 "to pageable memory are not asynchronous, stage them"));
}

// --- copies ---

absl::Status WorkMaker::TranslateCopy(CopyOp& op, int device) const {
  PENSTOCK_ASSIGN_OR_RETURN(const CopySize size, SizeOf(op));
  if (size.bytes == 0) return absl::OkStatus();

  int dst_device = device, src_device = device;
  if (op.kind == CopyKind::kPeer) {
    dst_device = op.dst_device;
    src_device = op.src_device;
    PENSTOCK_RETURN_IF_ERROR(CheckDevice(dst_device));
    PENSTOCK_RETURN_IF_ERROR(CheckDevice(src_device));
  }
  if (op.kind == CopyKind::kDeviceToHost) {
    PENSTOCK_RETURN_IF_ERROR(CheckPinned(op.dst, size.dst_span, "copy destination"));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(op.dst, AccessDevice(dst_device, op.dst, size.dst_span, "copy destination"));
  }
  if (op.kind == CopyKind::kHostToDevice) return CheckPinned(op.src, size.src_span, "copy source");
  PENSTOCK_ASSIGN_OR_RETURN(op.src, AccessDevice(src_device, op.src, size.src_span, "copy source"));
  return absl::OkStatus();
}

absl::StatusOr<Work> WorkMaker::Make(int device, const CopyOp& op) const {
  CopyOp translated = op;
  PENSTOCK_RETURN_IF_ERROR(TranslateCopy(translated, device));
  if (op.width == 0 || op.height == 0 || op.depth == 0) return Work{};
  const EngineKind engine = EngineOf(op.kind);
  return Work{engine, MakeCopyTask(translated, ThreadsOf(engine))};
}

absl::Status WorkMaker::CheckTable(const BatchOp& op) const {
  size_t bytes = 0;
  if (__builtin_mul_overflow(op.count, sizeof(CopyPiece), &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("batch: a table of ", op.count, " pieces overflows"));
  }
  return CheckPinned(op.pieces, bytes, "batch: its table");
}

absl::StatusOr<Work> WorkMaker::Make(int device, const BatchOp& op) const {
  PENSTOCK_ASSIGN_OR_RETURN(const BatchSize size, SizeOf(op));
  if (size.bytes == 0) return Work{};
  PENSTOCK_RETURN_IF_ERROR(CheckTable(op));
  std::vector<CopyPiece> pieces;
  for (size_t i = 0; i < op.count; ++i) {
    CopyPiece piece = op.pieces[i];
    CopyOp copy = CopyOf(piece, op);
    if (absl::Status status = TranslateCopy(copy, device); !status.ok()) {
      return base::Prefixed(absl::StrCat("piece ", i), status);
    }
    if (piece.width == 0 || piece.height == 0 || piece.depth == 0) continue;
    piece.dst = copy.dst;
    piece.src = copy.src;
    pieces.push_back(piece);
  }
  const EngineKind engine = EngineOf(op.kind);
  return Work{engine, MakeBatchTask(op, std::move(pieces), size.bytes, ThreadsOf(engine))};
}

// --- fills and kernels ---

absl::StatusOr<Work> WorkMaker::Make(int device, const FillOp& op) const {
  PENSTOCK_ASSIGN_OR_RETURN(const FillSize size, SizeOf(op));
  if (size.bytes == 0) return Work{};
  FillOp translated = Collapse(op);
  PENSTOCK_ASSIGN_OR_RETURN(translated.dst, AccessDevice(device, op.dst, size.span, "fill destination"));
  return Work{EngineKind::kCompute, MakeFillTask(translated, threads_)};
}

int WorkMaker::HolderOf(int device, const void* memory) const {
  if (heaps_[static_cast<size_t>(device)]->Holds(memory)) return device;
  for (int peer = 0; peer < static_cast<int>(heaps_.size()); ++peer) {
    if (links_.Has(device, peer) && heaps_[static_cast<size_t>(peer)]->Holds(memory)) return peer;
  }
  return device;
}

absl::Status WorkMaker::TranslateArgs(const KernelOp& op, int device, ArgBlock& args) const {
  if (!args.valid()) return absl::InvalidArgumentError("kernel: an argument lies outside its argument block");
  for (uint32_t i = 0; i < op.pointer_count; ++i) {
    const void* pointer = args.PointerAt(op.pointer_offsets[i]);
    if (pointer == nullptr || pinned_.Contains(pointer, 0)) continue;
    const std::string what = absl::StrCat("kernel: pointer ", i, " of the arguments");
    PENSTOCK_ASSIGN_OR_RETURN(void* const real, AccessDevice(HolderOf(device, pointer), pointer, 0, what.c_str()));
    args.SetPointerAt(op.pointer_offsets[i], real);
  }
  return absl::OkStatus();
}

absl::StatusOr<Work> WorkMaker::Make(int device, const KernelOp& op) const {
  if (!op.range && !op.call)
    return absl::UnimplementedError("this kernel has no host code; give the node a HostFallback");
  if (op.range && op.rows < 0) return absl::InvalidArgumentError(absl::StrCat("kernel: ", op.rows, " rows"));
  ArgBlock args(op);
  PENSTOCK_RETURN_IF_ERROR(TranslateArgs(op, device, args));
  if (op.range && op.rows == 0) return Work{};
  return Work{EngineKind::kCompute, MakeKernelTask(op, std::move(args), threads_)};
}

// --- regions ---

absl::StatusOr<std::shared_ptr<const RegionTasks>> WorkMaker::MakeTasks(int device, const RegionOp& op) const {
  const WorkMaker alone(heaps_, pinned_, links_, /*threads=*/1);
  auto tasks = std::make_shared<RegionTasks>();
  for (size_t i = 0; i < op.ops.size(); ++i) {
    auto work = alone.Make(device, op.ops[i]);
    if (!work.ok()) return base::Prefixed(absl::StrCat("operation ", i, " of a region"), work.status());
    if (work->task != nullptr) tasks->push_back(std::move(work->task));
  }
  return tasks;
}

absl::StatusOr<Work> WorkMaker::Make(int device, const RegionOp& op) const {
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<const RegionTasks> tasks, MakeTasks(device, op));
  return Work{EngineKind::kCompute, MakeRegionTask(op.tag, std::move(tasks))};
}

}  // namespace penstock::driver::host
