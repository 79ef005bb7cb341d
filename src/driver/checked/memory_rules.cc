#include "src/driver/checked/memory_rules.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"
#include "src/driver/fill_box.h"

namespace penstock::driver::checked {
namespace {

constexpr const char* kArgument = "Launch: an argument";

Mode ModeOf(const MemoryUse& use) {
  if (!use.ordered) return Mode::kUnknown;
  if (!use.writes) return Mode::kRead;
  return use.reads ? Mode::kReadWrite : use.keeps ? Mode::kWriteSome : Mode::kWrite;
}

Footprint Source(const CopyOp& op) {
  return Footprint(op.src, op.width, op.height, op.depth, op.src_pitch, op.src_slice);
}
Footprint Destination(const CopyOp& op) {
  return Footprint(op.dst, op.width, op.height, op.depth, op.dst_pitch, op.dst_slice);
}

}  // namespace

std::vector<const void*> PointersOf(const KernelOp& op) {
  std::vector<const void*> pointers;
  for (uint32_t i = 0; i < op.pointer_count; ++i) {
    const void* pointer = nullptr;
    if (op.pointer_offsets[i] + sizeof(void*) > op.args_size) continue;  // the driver below refuses it
    std::copy_n(op.args + op.pointer_offsets[i], sizeof(void*), reinterpret_cast<std::byte*>(&pointer));
    if (pointer != nullptr) pointers.push_back(pointer);
  }
  return pointers;
}

bool MemoryRules::Free(const void* memory, int device, const char* what) {
  Block* const block = map_.FindStart(memory);
  if (block == nullptr || block->device != device) {
    const Block* freed = map_.FindFreed(reinterpret_cast<uintptr_t>(memory));
    (void)Violated("freed once", absl::StrCat(what, device < 0 ? "(" : absl::StrCat("(", device, ", "), "0x",
                                              absl::Hex(memory), "): ",
                                              block != nullptr   ? TextOf(*block)
                                              : freed != nullptr ? TextOf(*freed) + " was freed before"
                                                                 : "no block starts there"));
    return false;
  }
  const auto busy = std::find_if(block->accesses.begin(), block->accesses.end(),
                                 [&](const Access& a) { return !book_.IsOver(a.work); });
  const bool idle = busy == block->accesses.end() || witness_.dead();
  if (!idle) {
    (void)Violated("freed when idle", absl::StrCat("freeing ", TextOf(*block), ", of which ", TextOf(*busy),
                                                   "; the host has not seen an event after it complete"));
  }
  const auto bytes = static_cast<int64_t>(block->bytes);
  witness_.Change(device < 0 ? Gauges{.pinned_blocks = -1, .pinned_bytes = -bytes}
                             : Gauges{.device_blocks = -1, .device_bytes = -bytes});
  map_.Free(*block);
  return idle;  // work may still use it
}

// --- operations ---

absl::Status MemoryRules::Use(const CopyOp& op, const Work& work, int device) {
  if (op.kind == CopyKind::kPeer && op.src_device != device && op.dst_device != device) {
    return Violated("one device", absl::StrCat("Copy between devices ", op.src_device, " and ", op.dst_device, " on ",
                                               TextOfLine(work.line), " of device ", device));
  }
  if (FindClash({{Source(op), false}, {Destination(op), true}})) {
    return Violated("source and destination apart",
                    absl::StrCat("Copy: ", TextOf(Source(op)), " to ", TextOf(Destination(op)), " by ", TextOf(work)));
  }
  return UseCopy(op, work, device, "Copy");
}

absl::Status MemoryRules::Use(const BatchOp& op, const Work& work, int device) {
  // Checked first: whether there is a table to read.
  const Footprint table(op.pieces, op.count * sizeof(CopyPiece));
  PENSTOCK_RETURN_IF_ERROR(Use({table, Mode::kRead, work}, -1, "CopyBatch: the table"));
  PENSTOCK_ASSIGN_OR_RETURN(const BatchSize size, SizeOf(op));
  if (op.size.bytes != 0 && !(op.size == size)) {
    return Violated("the size of a batch that of its pieces",
                    absl::StrCat("CopyBatch by ", TextOf(work), ": ", op.size.bytes, " bytes, in the largest piece ",
                                 op.size.largest, "; its pieces have ", size.bytes, " and ", size.largest));
  }
  std::vector<checked::Use> uses;
  for (size_t i = 0; i < op.count; ++i) {
    const CopyOp piece = CopyOf(op.pieces[i], op);
    uses.push_back({Source(piece), false});
    uses.push_back({Destination(piece), true});
  }
  if (const auto clash = FindClash(uses)) {
    return Violated("pieces apart", absl::StrCat("CopyBatch by ", TextOf(work), ": piece ", clash->first / 2, ", ",
                                                 TextOf(uses[clash->first].box), ", and piece ", clash->second / 2,
                                                 ", ", TextOf(uses[clash->second].box), ", are copied in any order"));
  }
  for (size_t i = 0; i < op.count; ++i) {
    PENSTOCK_RETURN_IF_ERROR(UseCopy(CopyOf(op.pieces[i], op), work, device, absl::StrCat("CopyBatch: piece ", i)));
  }
  return absl::OkStatus();
}

absl::Status MemoryRules::UseCopy(const CopyOp& op, const Work& work, int device, const std::string& what) {
  const bool peer = op.kind == CopyKind::kPeer;
  const int to = op.kind == CopyKind::kDeviceToHost ? -1 : peer ? op.dst_device : device;
  const int from = op.kind == CopyKind::kHostToDevice ? -1 : peer ? op.src_device : device;
  PENSTOCK_RETURN_IF_ERROR(Use({Source(op), Mode::kRead, work}, from, what + ": the source"));
  return Use({Destination(op), Mode::kWrite, work}, to, what + ": the destination");
}

absl::Status MemoryRules::Use(const FillOp& op, const Work& work, int device) {
  PENSTOCK_ASSIGN_OR_RETURN(const FillSize size, SizeOf(op));
  const Footprint dst(op.dst, size.width, op.height, op.depth, op.pitch, op.slice);
  return Use({dst, Mode::kWrite, work}, device, "Fill: the destination");
}

absl::StatusOr<std::vector<Footprint>> MemoryRules::UseKernel(const std::vector<const void*>& pointers,
                                                              const std::vector<MemoryUse>* declared, const Work& work,
                                                              int device) {
  const auto where = [&](const Block* block, bool reads) {
    if (block == nullptr) return device;
    const bool reached = reads && links_.contains({device, block->device});
    return block->device < 0 || reached ? block->device : device;
  };
  for (const void* pointer : pointers) {
    Access access{Footprint(pointer, 0), Mode::kUnknown, work};
    const Block* holder = map_.Find(access.box.begin);
    if (holder == nullptr) holder = map_.FindEnd(access.box.begin);
    PENSTOCK_ASSIGN_OR_RETURN(const Block* const block, BlockOf(access, where(holder, true), kArgument));
    if (declared != nullptr || block == nullptr) continue;
    access.box = Footprint(reinterpret_cast<const void*>(block->begin), block->bytes);
    PENSTOCK_RETURN_IF_ERROR(Use(access, where(holder, false), kArgument));
  }
  std::vector<Access> accesses;
  std::vector<Footprint> written_only;
  if (declared == nullptr) return written_only;
  for (const MemoryUse& use : *declared) {
    const Footprint box(use.data, use.width, use.height, use.depth, use.pitch, use.slice);
    accesses.push_back({box, ModeOf(use), work});
  }
  for (size_t i = 0; i < accesses.size(); ++i) {
    const bool reads = !(*declared)[i].writes;
    PENSTOCK_RETURN_IF_ERROR(Use(accesses[i], where(map_.Find(accesses[i].box.begin), reads), kArgument));
  }
  for (const Access& access : accesses) {
    if (IsWrittenOnly(access, accesses)) written_only.push_back(access.box);
  }
  return written_only;
}

bool MemoryRules::IsWrittenOnly(const Access& access, const std::vector<Access>& accesses) {
  const Block* block = map_.Find(access.box.begin);
  if (access.mode != Mode::kWrite || access.box.empty() || block == nullptr || block->device < 0) return false;
  return std::none_of(accesses.begin(), accesses.end(),
                      [&](const Access& other) { return other.mode != Mode::kWrite && other.box.Touches(access.box); });
}

// --- every access ---

absl::Status MemoryRules::Use(const Access& access, int device, const std::string& what) {
  if (access.box.empty()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(Block * block, BlockOf(access, device, what));
  if (block == nullptr) return absl::OkStatus();
  const bool reads = access.mode == Mode::kRead || access.mode == Mode::kReadWrite;
  if (reads && device >= 0) {
    if (const auto missing = block->written.Missing(access.box)) {
      return Violated("written before read",
                      absl::StrCat(what, " ", TextOf(access), ", of which bytes [0x", absl::Hex(missing->first), ", +",
                                   missing->second - missing->first, ") of ", TextOf(*block), " were never written"));
    }
  }
  const auto is_over = [&](const Access& old) { return book_.IsOver(old.work); };
  const auto is_before = [&](const Access& old) { return book_.IsBefore(old.work, access.work); };
  if (const auto other = CollisionOf(*block, access, is_before)) {
    const bool same_graph = other->work.line == access.work.line;
    return Violated("ordered accesses",
                    absl::StrCat(what, " ", TextOf(access), " collides with ", TextOf(*other), " in ", TextOf(*block),
                                 same_graph ? "; no edge orders them" : "; no event orders them"));
  }
  if (access.mode != Mode::kRead) block->written.Add(access.box);
  Keep(*block, access, is_over, is_before);
  return absl::OkStatus();
}

// The live block that contains the box; null for memory that the application made itself. `device` -1: pinned memory.
absl::StatusOr<Block*> MemoryRules::BlockOf(const Access& access, int device, const std::string& what) {
  const Footprint& box = access.box;
  Block* block = map_.Find(box.begin);
  if (block == nullptr) {
    if (const Block* freed = map_.FindFreed(box.begin)) {
      return Violated("memory is alive", absl::StrCat(what, " ", TextOf(access), ": ", TextOf(*freed), " was freed"));
    }
    if (box.empty()) block = map_.FindEnd(box.begin);  // a pointer past the last element
  }
  if (block == nullptr) {
    PENSTOCK_RETURN_IF_ERROR(CheckLaunchCall(access, device, what));
    return nullptr;
  }
  if (box.end() > block->end()) {
    return Violated("inside the allocation", absl::StrCat(what, " ", TextOf(access), " leaves ", TextOf(*block), " by ",
                                                          box.end() - block->end(), " bytes"));
  }
  if (block->device != device) {
    return Violated("one device", absl::StrCat(what, " ", TextOf(access), " is in ", TextOf(*block), "; expected ",
                                               device < 0 ? std::string("pinned memory")
                                                          : absl::StrCat("memory of device ", device)));
  }
  return block;
}

absl::Status MemoryRules::CheckLaunchCall(const Access& access, int device, const std::string& what) {
  const absl::StatusOr<PointerInfo> info = inner_.Inspect(reinterpret_cast<const void*>(access.box.begin));
  const auto wanted = device < 0 ? PointerInfo::Kind::kPinned : PointerInfo::Kind::kDevice;
  if (info.ok() && info->kind == wanted && (device < 0 || info->device == device)) return absl::OkStatus();
  return Violated("memory is alive", absl::StrCat(what, " ", TextOf(access), " lies in no live block of ",
                                                  device < 0 ? "pinned memory" : absl::StrCat("device ", device)));
}

}  // namespace penstock::driver::checked
