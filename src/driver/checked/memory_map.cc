#include "src/driver/checked/memory_map.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::driver::checked {
namespace {

bool Writes(Mode mode) { return mode != Mode::kRead && mode != Mode::kUnknown; }

// Whether everything that comes after `next` also comes after `old`, and collides with it wherever it would with `old`.
bool StandsFor(const Access& next, const Access& old) {
  if (next.mode == Mode::kUnknown || (!Writes(next.mode) && old.mode != Mode::kRead)) return false;
  return next.box.dense() && next.box.begin <= old.box.begin && next.box.end() >= old.box.end();
}

}  // namespace

std::string TextOf(const Access& access) {
  static constexpr const char* kWhat[] = {"read", "written", "read and written", "written", "used"};
  return absl::StrCat(TextOf(access.box), " ", kWhat[static_cast<int>(access.mode)], " by ", TextOf(access.work));
}

std::string TextOf(const Block& block) {
  const std::string where = block.device < 0 ? "pinned" : absl::StrCat("device ", block.device);
  return absl::StrCat(where, " block ", block.number, " [0x", absl::Hex(block.begin), ", +", block.bytes, ")");
}

Block& MemoryMap::Add(const void* memory, size_t bytes, int device) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const auto gone = [&](const Block& old) {
    return old.begin < begin + std::max<size_t>(bytes, 1) && begin < old.end();
  };
  freed_.erase(std::remove_if(freed_.begin(), freed_.end(), gone), freed_.end());
  Block& block = live_[begin];
  block = {.number = ++blocks_, .begin = begin, .bytes = bytes, .device = device};
  return block;
}

Block* MemoryMap::FindStart(const void* memory) {
  const auto at = live_.find(reinterpret_cast<uintptr_t>(memory));
  return at == live_.end() ? nullptr : &at->second;
}

Block* MemoryMap::Find(uintptr_t address) {
  auto at = live_.upper_bound(address);
  if (at == live_.begin()) return nullptr;
  --at;
  return address < at->second.end() ? &at->second : nullptr;
}

Block* MemoryMap::FindEnd(uintptr_t address) {
  auto at = live_.upper_bound(address);
  return at != live_.begin() && std::prev(at)->second.end() == address ? &std::prev(at)->second : nullptr;
}

const Block* MemoryMap::FindFreed(uintptr_t address) const {
  const auto at = std::find_if(freed_.rbegin(), freed_.rend(),
                               [&](const Block& b) { return b.begin <= address && address < b.end(); });
  return at == freed_.rend() ? nullptr : &*at;
}

void MemoryMap::Free(Block& block) {
  const uintptr_t begin = block.begin;
  block.accesses.clear();
  freed_.push_back(std::move(block));
  if (freed_.size() > kFreedKept) freed_.pop_front();
  live_.erase(begin);
}

std::optional<Access> CollisionOf(const Block& block, const Access& next, const IsBefore& is_before) {
  if (next.mode == Mode::kUnknown) return std::nullopt;
  for (const Access& old : block.accesses) {
    if (old.mode == Mode::kUnknown || (!Writes(old.mode) && !Writes(next.mode))) continue;
    if (old.work == next.work) continue;
    if (old.box.Touches(next.box) && !is_before(old)) return old;
  }
  return std::nullopt;
}

void Keep(Block& block, const Access& next, const IsBefore& is_over, const IsBefore& is_before) {
  const auto useless = [&](const Access& old) { return is_over(old) || (is_before(old) && StandsFor(next, old)); };
  block.accesses.erase(std::remove_if(block.accesses.begin(), block.accesses.end(), useless), block.accesses.end());
  block.accesses.push_back(next);
}

}  // namespace penstock::driver::checked
