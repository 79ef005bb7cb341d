// What tests/scripts/gdb_test.sh has gdb print. Compiled with debug symbols, whatever the preset.
#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "src/runtime/slot/slot.h"

using penstock::graph::Plan;
using penstock::graph::PlanKind;
using penstock::graph::PlanNode;
using penstock::runtime::Slot;

[[gnu::noinline]] void Stop() { asm volatile(""); }

namespace {
// A Slot is made by Compile only. All zeros are enough for a debugger that is to read its numbers.
alignas(Slot) std::byte slot_bytes[sizeof(Slot)];
}  // namespace

int main() {
  const absl::Status fine, bare(absl::StatusCode::kCancelled, ""), told = absl::InvalidArgumentError("no such buffer");
  const absl::StatusOr<int> seven = 7, none = absl::NotFoundError("no such device");
  Plan plan;
  plan.graph = "saxpy";
  PlanNode upload, kernel;
  upload.kind = PlanKind::kUpload, upload.name = "upload x", upload.device = 0, upload.lane = 1, upload.segment = 0;
  kernel.kind = PlanKind::kParallelFor, kernel.name = "axpy", kernel.device = 0, kernel.lane = 0, kernel.segment = 0;
  plan.nodes = {upload, kernel};
  plan.lanes.resize(2);
  auto* const slot = reinterpret_cast<Slot*>(slot_bytes);
  slot->index = 3;
  Stop();
  return fine.ok() && !bare.ok() && !told.ok() && seven.ok() && !none.ok() && plan.lanes.size() == 2 ? 0 : 1;
}
