#include "src/driver/checked/memory_rules.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"

namespace penstock::driver::checked {
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
                                 [&](const Access& a) { return !book_.IsOver(a.stream, a.operation); });
  const bool idle = busy == block->accesses.end() || witness_.dead();
  if (!idle) {
    (void)Violated("freed when idle", absl::StrCat("freeing ", TextOf(*block), ", of which ", TextOf(*busy),
                                                   "; the host has not seen an event behind it complete"));
  }
  const auto bytes = static_cast<int64_t>(block->bytes);
  witness_.Change(device < 0 ? Gauges{.pinned_blocks = -1, .pinned_bytes = -bytes}
                             : Gauges{.device_blocks = -1, .device_bytes = -bytes});
  map_.Free(*block);
  return idle;  // work may still use it
}

absl::Status MemoryRules::Use(const Access& access, int device, const char* what) {
  if (access.box.empty()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(Block * block, BlockOf(access.box, device, what));
  if (block == nullptr) return absl::OkStatus();
  const bool reads = access.mode == Mode::kRead || access.mode == Mode::kReadWrite;
  if (reads && device >= 0) {
    if (const auto missing = block->written.Missing(access.box)) {
      return Violated("written before read",
                      absl::StrCat(what, " ", TextOf(access), ", of which bytes [0x", absl::Hex(missing->first), ", +",
                                   missing->second - missing->first, ") of ", TextOf(*block), " were never written"));
    }
  }
  const Clock& after = book_.Find(Stream{access.stream})->after;
  const auto is_over = [&](const Access& old) { return book_.IsOver(old.stream, old.operation); };
  const auto is_before = [&](const Access& old) {
    return old.stream == access.stream || after.Covers(old.stream, old.operation) || is_over(old);
  };
  if (const auto other = CollisionOf(*block, access, is_before)) {
    return Violated("ordered accesses", absl::StrCat(what, " ", TextOf(access), " collides with ", TextOf(*other),
                                                     " in ", TextOf(*block), "; no event orders them"));
  }
  if (access.mode != Mode::kRead) block->written.Add(access.box);
  Keep(*block, access, is_over, is_before);
  return absl::OkStatus();
}

absl::Status MemoryRules::UseAll(const std::vector<Access>& accesses, int device) {
  for (const Access& access : accesses) {
    const Block* block = map_.Find(access.box.begin);
    PENSTOCK_RETURN_IF_ERROR(Use(access, block != nullptr && block->device < 0 ? -1 : device, "Launch: an argument"));
  }
  return absl::OkStatus();
}

absl::Status MemoryRules::UsePointers(const KernelOp& op, Access any, int device) {
  for (uint32_t i = 0; i < op.pointer_count; ++i) {
    const void* pointer = nullptr;
    if (op.pointer_offsets[i] + sizeof(void*) > op.args_size) continue;  // the driver below refuses it
    std::copy_n(op.args + op.pointer_offsets[i], sizeof(void*), reinterpret_cast<std::byte*>(&pointer));
    if (pointer == nullptr) continue;
    const Footprint at(pointer, 0);
    const Block* holder = map_.Find(at.begin);
    if (holder == nullptr) holder = map_.FindEnd(at.begin);
    const int where = holder != nullptr && holder->device < 0 ? -1 : device;
    PENSTOCK_ASSIGN_OR_RETURN(Block * block, BlockOf(at, where, "Launch: an argument"));
    if (op.uses != nullptr || block == nullptr) continue;
    any.box = Footprint(reinterpret_cast<const void*>(block->begin), block->bytes);
    PENSTOCK_RETURN_IF_ERROR(Use(any, where, "Launch: an argument"));
  }
  return absl::OkStatus();
}

bool MemoryRules::IsPoisonable(const std::vector<Access>& accesses, const Access& access) {
  const Block* block = map_.Find(access.box.begin);
  if (access.mode != Mode::kWrite || access.box.empty() || block == nullptr || block->device < 0) return false;
  return std::none_of(accesses.begin(), accesses.end(),
                      [&](const Access& other) { return other.mode != Mode::kWrite && other.box.Touches(access.box); });
}

// The live block that holds the box, null for memory that the application made itself. `device` -1: pinned memory.
absl::StatusOr<Block*> MemoryRules::BlockOf(const Footprint& box, int device, const char* what) {
  Block* block = map_.Find(box.begin);
  const std::string text = absl::StrCat(what, " ", TextOf(box));
  if (block == nullptr) {
    if (const Block* freed = map_.FindFreed(box.begin)) {
      return Violated("memory is alive", absl::StrCat(text, ": ", TextOf(*freed), " was freed"));
    }
    if (box.empty()) block = map_.FindEnd(box.begin);  // a pointer behind the last element
  }
  if (block == nullptr) {
    PENSTOCK_RETURN_IF_ERROR(CheckForeign(box, device, what));
    return nullptr;
  }
  if (box.end() > block->end()) {
    return Violated("inside the allocation",
                    absl::StrCat(text, " leaves ", TextOf(*block), " by ", box.end() - block->end(), " bytes"));
  }
  if (block->device != device) {
    return Violated("one device", absl::StrCat(text, " is in ", TextOf(*block), "; expected ",
                                               device < 0 ? std::string("pinned memory")
                                                          : absl::StrCat("memory of device ", device)));
  }
  return block;
}

absl::Status MemoryRules::CheckForeign(const Footprint& box, int device, const char* what) {
  const absl::StatusOr<PointerInfo> info = inner_.Inspect(reinterpret_cast<const void*>(box.begin));
  const auto wanted = device < 0 ? PointerInfo::Kind::kPinned : PointerInfo::Kind::kDevice;
  if (info.ok() && info->kind == wanted && (device < 0 || info->device == device)) return absl::OkStatus();
  return Violated("memory is alive", absl::StrCat(what, " ", TextOf(box), " lies in no live block of ",
                                                  device < 0 ? "pinned memory" : absl::StrCat("device ", device)));
}

}  // namespace penstock::driver::checked
