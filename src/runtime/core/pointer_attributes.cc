#include "src/runtime/core/pointer_attributes.h"

#include <algorithm>
#include <cstdint>

#include "penstock/status_macros.h"

namespace penstock::runtime {

using driver::PointerInfo;
using Kind = PointerInfo::Kind;

namespace {

constexpr size_t kLastFew = 4;  // allocations that buffers are likely to alternate between

}  // namespace

absl::StatusOr<PointerInfo> InspectAll(driver::Driver& driver, const void* data, size_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(PointerInfo first, driver.Inspect(data));
  if (first.kind == Kind::kPageable || first.Covers(reinterpret_cast<uintptr_t>(data), bytes)) return first;
  PENSTOCK_ASSIGN_OR_RETURN(const PointerInfo last, driver.Inspect(static_cast<const std::byte*>(data) + bytes - 1));
  if (first.kind == Kind::kPinned && last.kind != Kind::kPinned) return PointerInfo{};
  if (first.kind == Kind::kDevice && (last.kind != Kind::kDevice || last.device != first.device)) first.device = -1;
  return first;
}

absl::StatusOr<PointerInfo> MemoryKinds::Inspect(driver::Driver& driver, const void* data, size_t bytes, bool held) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  for (size_t i = known_.size(); i > 0 && i + kLastFew > known_.size(); --i) {
    Known& known = known_[i - 1];
    if (!known.in_one || !known.info.Covers(at, bytes)) continue;
    known.held = known.held && held;
    return known.info;
  }
  absl::StatusOr<PointerInfo> info = InspectAll(driver, data, bytes);
  if (info.ok() && info->kind != Kind::kPageable) known_.push_back({data, bytes, *info, info->Covers(at, bytes), held});
  return info;
}

bool MemoryKinds::StillTrue(driver::Driver& driver) const {
  return std::all_of(known_.begin(), known_.end(), [&](const Known& known) {
    if (known.held) return true;
    const absl::StatusOr<PointerInfo> info = InspectAll(driver, known.data, known.bytes);
    return info.ok() && *info == known.info;
  });
}

}  // namespace penstock::runtime
