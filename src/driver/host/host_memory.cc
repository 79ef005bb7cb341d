#include "src/driver/host/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"

namespace penstock::driver::host {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPoisonLimit = size_t{64} << 20;
constexpr size_t kPinnedPoisonLimit = size_t{64} << 10;  // slabs, of which the pinned pool fills each block itself
constexpr size_t kSmallestReservation = size_t{1} << 20;
constexpr size_t kLargestReservation = size_t{1} << 60;  // so that sums do not overflow
constexpr size_t kGap = size_t{1} << 20;  // never accessible, so that overruns of the handed-out range crash too

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }
size_t RoundDown(size_t value, size_t to) { return value / to * to; }

void Poison([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes, [[maybe_unused]] unsigned char pattern,
            [[maybe_unused]] size_t limit = kPoisonLimit) {
#ifndef NDEBUG
  std::memset(memory, pattern, std::min(bytes, limit));
#endif
}

}  // namespace

DeviceHeap::DeviceHeap(std::string device_name, int64_t bytes) : device_name_(std::move(device_name)) {
  size_t wanted = RoundUp(static_cast<size_t>(std::max<int64_t>(bytes, 1)), kPage);
  while (!Reserve(wanted) && wanted > kSmallestReservation) wanted = RoundUp(wanted / 2, kPage);
  base::MutexLock lock(mu_);
  if (capacity_ > 0) free_.emplace(0, capacity_);
}

DeviceHeap::~DeviceHeap() {
  if (reserved_ > 0) munmap(handed_out_, reserved_);
}

bool DeviceHeap::Reserve(size_t bytes) {
  if (bytes > kLargestReservation) return false;
  const size_t total = 2 * bytes + kGap;
  void* range = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  handed_out_ = static_cast<std::byte*>(range);
  real_ = handed_out_ + bytes + kGap;
  if (mprotect(real_, bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(range, total);
    return false;
  }
  capacity_ = bytes;
  reserved_ = total;
  return true;
}

absl::StatusOr<void*> DeviceHeap::Allocate(size_t bytes) {
  base::MutexLock lock(mu_);
  if (bytes > capacity_) return NoRoom(bytes);
  const size_t needed = RoundUp(std::max<size_t>(bytes, 1), kDeviceAlignment);
  const auto fit = std::find_if(free_.begin(), free_.end(), [&](const auto& piece) { return piece.second >= needed; });
  if (fit == free_.end()) return NoRoom(bytes);
  const auto [offset, size] = *fit;
  free_.erase(fit);
  if (size > needed) free_.emplace(offset + needed, size - needed);
  live_.emplace(offset, Block{needed, bytes});
  asked_ += bytes;
  Poison(real_ + offset, needed, kFresh);
  return handed_out_ + offset;
}

absl::Status DeviceHeap::NoRoom(size_t bytes) const {
  size_t all = 0, largest = 0;
  for (const auto& [offset, size] : free_) {
    all += size;
    largest = std::max(largest, size);
  }
  return absl::ResourceExhaustedError(absl::StrCat(device_name_, ": no room for ", bytes, " bytes of device memory; ",
                                                   all, " of ", capacity_, " bytes are free, ", largest,
                                                   " in one piece; use fewer slots or smaller buffers"));
}

int64_t DeviceHeap::allocated() const {
  base::MutexLock lock(mu_);
  return static_cast<int64_t>(asked_);
}

bool DeviceHeap::Free(void* memory) {
  if (!Holds(memory)) return false;
  base::MutexLock lock(mu_);
  size_t first = static_cast<size_t>(static_cast<std::byte*>(memory) - handed_out_);
  const auto block = live_.find(first);
  if (block == live_.end()) return false;
  const size_t freed = first, freed_bytes = block->second.held;
  size_t end = first + freed_bytes;
  asked_ -= block->second.asked;
  live_.erase(block);
  auto next = free_.upper_bound(first);
  if (next != free_.end() && next->first == end) {
    end += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == first) {
      first = before->first;
      free_.erase(before);
    }
  }
  free_.emplace(first, end - first);
  // The whole pages that touch the freed block and contain nothing else.
  const size_t page_first = std::max(RoundUp(first, kPage), RoundDown(freed, kPage));
  const size_t page_end = std::min(RoundDown(end, kPage), RoundUp(freed + freed_bytes, kPage));
  if (page_first < page_end) GiveBack(page_first, page_end - page_first);
  Poison(real_ + freed, freed_bytes, kFreed);
  return true;
}

void DeviceHeap::GiveBack(size_t offset, size_t bytes) { madvise(real_ + offset, bytes, MADV_DONTNEED); }

bool DeviceHeap::Holds(const void* memory) const {
  const auto address = reinterpret_cast<uintptr_t>(memory), start = reinterpret_cast<uintptr_t>(handed_out_);
  return address >= start && address - start < capacity_;
}

absl::StatusOr<AddressRange> DeviceHeap::BlockOf(const void* memory, size_t bytes) const {
  // An empty range may lie at the very end of the heap.
  const auto address = reinterpret_cast<uintptr_t>(memory), start = reinterpret_cast<uintptr_t>(handed_out_);
  if (address >= start && address - start <= capacity_) {
    const size_t offset = address - start;
    base::MutexLock lock(mu_);
    auto block = live_.upper_bound(offset);
    if (block != live_.begin()) {
      --block;
      const size_t inside = offset - block->first;
      if (inside <= block->second.asked && bytes <= block->second.asked - inside) {
        return AddressRange{start + block->first, start + block->first + block->second.asked};
      }
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("bytes [0x", absl::Hex(address), ", +", bytes,
                                                 ") are not inside one live block of the memory of ", device_name_));
}

absl::StatusOr<std::byte*> DeviceHeap::Access(const void* memory, size_t bytes) const {
  PENSTOCK_RETURN_IF_ERROR(BlockOf(memory, bytes).status());
  return real_ + (static_cast<const std::byte*>(memory) - handed_out_);
}

PinnedMemory::~PinnedMemory() {
  base::MutexLock lock(mu_);
  for (const auto& [address, size] : live_) std::free(reinterpret_cast<void*>(address));
}

absl::StatusOr<void*> PinnedMemory::Allocate(size_t bytes) {
  void* memory = bytes <= most_ ? std::aligned_alloc(kPage, RoundUp(std::max<size_t>(bytes, 1), kPage)) : nullptr;
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", bytes, " bytes of pinned memory; this process may use ", most_, " bytes"));
  }
  Poison(memory, bytes, kFresh, kPinnedPoisonLimit);
  base::MutexLock lock(mu_);
  live_.emplace(reinterpret_cast<uintptr_t>(memory), bytes);
  return memory;
}

bool PinnedMemory::Free(void* memory) {
  {
    base::MutexLock lock(mu_);
    const auto block = live_.find(reinterpret_cast<uintptr_t>(memory));
    if (block == live_.end()) return false;
    Poison(memory, block->second, kFreed, kPinnedPoisonLimit);
    live_.erase(block);
  }
  std::free(memory);
  return true;
}

bool PinnedMemory::Contains(const void* memory, size_t bytes) const {
  const AddressRange block = BlockOf(memory);
  return block.begin < block.end && bytes <= block.end - reinterpret_cast<uintptr_t>(memory);
}

AddressRange PinnedMemory::BlockOf(const void* memory) const {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  base::MutexLock lock(mu_);
  auto block = live_.upper_bound(address);
  if (block == live_.begin()) return {};
  --block;
  if (address - block->first >= block->second) return {};
  return {block->first, block->first + block->second};
}

}  // namespace penstock::driver::host
