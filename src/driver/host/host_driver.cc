#include "src/driver/host/host_driver.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/copy_box.h"
#include "src/driver/fill_box.h"
#include "src/driver/host/host_memory.h"
#include "src/driver/host/scheduler.h"
#include "src/driver/host/tasks.h"

namespace penstock::driver::host {
namespace {

constexpr int64_t kMostMemory = int64_t{16} << 30;

class HostDriver final : public Driver {
 public:
  HostDriver(int devices, int threads, int64_t memory_bytes, const HostDriverOptions& options)
      : threads_(threads),
        rings_(options.bell != nullptr),
        scheduler_(devices, threads, options.bell, options.order_seed) {
    for (int i = 0; i < devices; ++i) {
      std::string name = absl::StrCat("host:", i);
      heaps_.push_back(std::make_unique<DeviceHeap>(name, memory_bytes));
      infos_.push_back({DeviceKind::kHost, std::move(name), absl::StrCat(threads, " CPU threads"),
                        heaps_.back()->capacity(), threads});
    }
  }

  int device_count() const override { return static_cast<int>(infos_.size()); }
  const DeviceInfo& device(int device) const override { return infos_[static_cast<size_t>(device)]; }
  int MakeCurrent(int /*device*/) override { return 0; }  // host devices work from any thread
  void RestoreCurrent(int /*token*/) override {}
  bool rings() const override { return rings_; }

  absl::StatusOr<Stream> CreateStream(int device, int priority) override {
    if (absl::Status status = CheckDevice(device); !status.ok()) return status;
    return scheduler_.CreateStream(device, priority);
  }
  void DestroyStream(Stream stream) override { scheduler_.DestroyStream(stream); }
  void* NativeStream(Stream /*stream*/) const override { return nullptr; }

  absl::StatusOr<Event> CreateEvent(int device, bool timing) override {
    if (absl::Status status = CheckDevice(device); !status.ok()) return status;
    return scheduler_.CreateEvent(device, timing);
  }
  void DestroyEvent(Event event) override { scheduler_.DestroyEvent(event); }
  absl::Status Record(Event event, Stream stream) override { return scheduler_.Record(event, stream); }
  absl::Status Wait(Stream stream, Event event) override { return scheduler_.Wait(stream, event); }
  absl::StatusOr<bool> Query(Event event) override { return scheduler_.Query(event); }
  absl::StatusOr<double> Elapsed(Event begin, Event end) override { return scheduler_.Elapsed(begin, end); }

  absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) override {
    if (absl::Status status = CheckDevice(device); !status.ok()) return status;
    return heap(device).Allocate(bytes);
  }
  void FreeDevice(int device, void* memory) override {
    [[maybe_unused]] const bool freed = memory == nullptr || (CheckDevice(device).ok() && heap(device).Free(memory));
    assert(freed && "FreeDevice of something that AllocateDevice did not return");
  }
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override { return pinned_.Allocate(bytes); }
  void FreePinned(void* memory) override {
    [[maybe_unused]] const bool freed = memory == nullptr || pinned_.Free(memory);
    assert(freed && "FreePinned of something that AllocatePinned did not return");
  }
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override;

  absl::Status Copy(Stream stream, const CopyOp& op) override;
  absl::Status CopyBatch(Stream stream, const BatchOp& op) override;
  absl::Status Fill(Stream stream, const FillOp& op) override;
  absl::StatusOr<const void*> LoadKernel(int device, const KernelSource& /*source*/) override {
    if (absl::Status status = CheckDevice(device); !status.ok()) return status;
    return nullptr;
  }
  absl::Status Launch(Stream stream, const KernelOp& op) override;

 private:
  DeviceHeap& heap(int device) { return *heaps_[static_cast<size_t>(device)]; }
  static EngineKind EngineOf(CopyKind kind);
  int ThreadsOf(EngineKind engine) const { return engine == EngineKind::kCompute ? threads_ : 1; }
  int HolderOf(const void* memory) const;
  absl::Status CheckDevice(int device) const;
  absl::StatusOr<std::byte*> AccessDevice(int device, const void* memory, size_t bytes, const char* what);
  absl::Status CheckPinned(const void* memory, size_t bytes, const char* what) const;
  absl::Status TranslateCopy(CopyOp& op, int device);
  absl::Status TranslateArgs(const KernelOp& op, int device, ArgBlock& args);

  // Constant after construction.
  const int threads_;
  const bool rings_;
  std::vector<DeviceInfo> infos_;
  std::vector<std::unique_ptr<DeviceHeap>> heaps_;

  PinnedMemory pinned_;
  Scheduler scheduler_;  // last: its threads end before the memory goes
};

absl::Status HostDriver::CheckDevice(int device) const {
  if (device >= 0 && device < device_count()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no device ", device, "; this driver has ", device_count()));
}

EngineKind HostDriver::EngineOf(CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice: return EngineKind::kUpload;
    case CopyKind::kDeviceToHost: return EngineKind::kDownload;
    default: return EngineKind::kCompute;
  }
}

// The device in whose range an address lies, or -1.
int HostDriver::HolderOf(const void* memory) const {
  for (size_t i = 0; i < heaps_.size(); ++i) {
    if (heaps_[i]->Holds(memory)) return static_cast<int>(i);
  }
  return -1;
}

absl::StatusOr<PointerInfo> HostDriver::Inspect(const void* memory) {
  using Kind = PointerInfo::Kind;
  if (const int device = HolderOf(memory); device >= 0) {
    PENSTOCK_ASSIGN_OR_RETURN(const AddressRange block, heap(device).BlockOf(memory, 1));
    return PointerInfo{Kind::kDevice, device, block.begin, block.end};
  }
  const AddressRange block = pinned_.BlockOf(memory);
  if (block.begin == block.end) return PointerInfo{};
  return PointerInfo{Kind::kPinned, -1, block.begin, block.end};
}

absl::StatusOr<std::byte*> HostDriver::AccessDevice(int device, const void* memory, size_t bytes, const char* what) {
  auto real = heap(device).Access(memory, bytes);
  if (real.ok()) return real;
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", real.status().message()));
}

absl::Status HostDriver::CheckPinned(const void* memory, size_t bytes, const char* what) const {
  if (pinned_.Contains(memory, bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": bytes [0x", absl::Hex(reinterpret_cast<uintptr_t>(memory)),
                                                 ", +", bytes,
                                                 ") are not pinned memory of this driver; copies from and "
                                                 "to pageable memory are not asynchronous, stage them"));
}

absl::Status HostDriver::TranslateCopy(CopyOp& op, int device) {
  PENSTOCK_ASSIGN_OR_RETURN(const CopySize size, SizeOf(op));
  if (size.bytes == 0) return absl::OkStatus();

  int dst_device = device, src_device = device;
  if (op.kind == CopyKind::kPeer) {
    dst_device = op.dst_device;
    src_device = op.src_device;
    if (absl::Status status = CheckDevice(dst_device); !status.ok()) return status;
    if (absl::Status status = CheckDevice(src_device); !status.ok()) return status;
  }
  if (op.kind == CopyKind::kDeviceToHost) {
    if (absl::Status status = CheckPinned(op.dst, size.dst_span, "copy destination"); !status.ok()) return status;
  } else {
    const auto real = AccessDevice(dst_device, op.dst, size.dst_span, "copy destination");
    if (!real.ok()) return real.status();
    op.dst = *real;
  }
  if (op.kind == CopyKind::kHostToDevice) return CheckPinned(op.src, size.src_span, "copy source");
  const auto real = AccessDevice(src_device, op.src, size.src_span, "copy source");
  if (!real.ok()) return real.status();
  op.src = *real;
  return absl::OkStatus();
}

absl::Status HostDriver::Copy(Stream stream, const CopyOp& op) {
  const auto device = scheduler_.DeviceOf(stream);
  if (!device.ok()) return device.status();
  CopyOp translated = op;
  if (absl::Status status = TranslateCopy(translated, *device); !status.ok()) return status;
  if (op.width == 0 || op.height == 0 || op.depth == 0) return absl::OkStatus();
  const EngineKind engine = EngineOf(op.kind);
  return scheduler_.Submit(stream, engine, MakeCopyTask(translated, ThreadsOf(engine)));
}

absl::Status HostDriver::CopyBatch(Stream stream, const BatchOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const int device, scheduler_.DeviceOf(stream));
  PENSTOCK_ASSIGN_OR_RETURN(const BatchSize size, SizeOf(op));
  if (size.bytes == 0) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(CheckPinned(op.pieces, op.count * sizeof(CopyPiece), "batch: its table"));
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
  return scheduler_.Submit(stream, engine, MakeBatchTask(op, std::move(pieces), size.bytes, ThreadsOf(engine)));
}

absl::Status HostDriver::Fill(Stream stream, const FillOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const int device, scheduler_.DeviceOf(stream));
  PENSTOCK_ASSIGN_OR_RETURN(const FillSize size, SizeOf(op));
  if (size.bytes == 0) return absl::OkStatus();
  FillOp translated = Collapse(op);
  PENSTOCK_ASSIGN_OR_RETURN(translated.dst, AccessDevice(device, op.dst, size.span, "fill destination"));
  return scheduler_.Submit(stream, EngineKind::kCompute, MakeFillTask(translated, threads_));
}

absl::Status HostDriver::TranslateArgs(const KernelOp& op, int device, ArgBlock& args) {
  if (!args.valid()) return absl::InvalidArgumentError("kernel: an argument lies outside its argument block");
  for (uint32_t i = 0; i < op.pointer_count; ++i) {
    const void* pointer = args.PointerAt(op.pointer_offsets[i]);
    if (pointer == nullptr || pinned_.Contains(pointer, 0)) continue;
    const std::string what = absl::StrCat("kernel: pointer ", i, " of the arguments");
    const auto real = AccessDevice(device, pointer, 0, what.c_str());
    if (!real.ok()) return real.status();
    args.SetPointerAt(op.pointer_offsets[i], *real);
  }
  return absl::OkStatus();
}

absl::Status HostDriver::Launch(Stream stream, const KernelOp& op) {
  const auto device = scheduler_.DeviceOf(stream);
  if (!device.ok()) return device.status();
  if (!op.range && !op.call) return absl::UnimplementedError("this kernel has no host code; give the node a HostTwin");
  if (op.range && op.rows < 0) return absl::InvalidArgumentError(absl::StrCat("kernel: ", op.rows, " rows"));
  ArgBlock args(op);
  if (absl::Status status = TranslateArgs(op, *device, args); !status.ok()) return status;
  if (op.range && op.rows == 0) return absl::OkStatus();
  return scheduler_.Submit(stream, EngineKind::kCompute, MakeKernelTask(op, std::move(args), threads_));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Driver>> CreateHostDriver(const HostDriverOptions& options) {
  const int devices = std::max(1, options.devices);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = options.threads_per_device > 0 ? options.threads_per_device : std::max(2, cores / devices);
  const int64_t memory =
      options.memory_bytes > 0 ? options.memory_bytes : std::min(kMostMemory, PhysicalMemory() / 2 / devices);
  try {
    return std::make_unique<HostDriver>(devices, threads, memory, options);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("the system refuses threads for ", devices, " host devices, ",
                                                     threads, " compute and 2 copy threads each: ", error.what(),
                                                     "; ask for fewer devices or a smaller host_device_threads"));
  }
}

}  // namespace penstock::driver::host
