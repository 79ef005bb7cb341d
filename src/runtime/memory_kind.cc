#include "src/runtime/memory_kind.h"

#include "penstock/status_macros.h"

namespace penstock::runtime {

absl::StatusOr<driver::PointerInfo> InspectAll(driver::Driver& driver, const void* data, size_t bytes) {
  using Kind = driver::PointerInfo::Kind;
  PENSTOCK_ASSIGN_OR_RETURN(driver::PointerInfo first, driver.Inspect(data));
  PENSTOCK_ASSIGN_OR_RETURN(const driver::PointerInfo last,
                            driver.Inspect(static_cast<const std::byte*>(data) + bytes - 1));
  if (first.kind == Kind::kPinned && last.kind != Kind::kPinned) return driver::PointerInfo{};
  if (first.kind == Kind::kDevice && (last.kind != Kind::kDevice || last.device != first.device)) first.device = -1;
  return first;
}

}  // namespace penstock::runtime
