#include "src/runtime/memory_kind.h"

#include <cstdint>

#include "penstock/status_macros.h"

namespace penstock::runtime {

using driver::PointerInfo;
using Kind = PointerInfo::Kind;

absl::StatusOr<PointerInfo> InspectAll(driver::Driver& driver, const void* data, size_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(PointerInfo first, driver.Inspect(data));
  if (first.kind == Kind::kPageable || first.Covers(reinterpret_cast<uintptr_t>(data), bytes)) return first;
  PENSTOCK_ASSIGN_OR_RETURN(const PointerInfo last, driver.Inspect(static_cast<const std::byte*>(data) + bytes - 1));
  if (first.kind == Kind::kPinned && last.kind != Kind::kPinned) return PointerInfo{};
  if (first.kind == Kind::kDevice && (last.kind != Kind::kDevice || last.device != first.device)) first.device = -1;
  return first;
}

absl::StatusOr<PointerInfo> MemoryKinds::Inspect(const void* data, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  for (const PointerInfo& known : known_) {
    if (known.Covers(at, bytes)) return known;
  }
  absl::StatusOr<PointerInfo> info = InspectAll(driver_, data, bytes);
  if (info.ok() && info->Covers(at, bytes)) {
    known_[oldest_] = *info;
    oldest_ = (oldest_ + 1) % known_.size();
  }
  return info;
}

}  // namespace penstock::runtime
