// What tests/scripts/gdb_test.sh has gdb print. Compiled with debug symbols, whatever the preset.
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "src/runtime/run/run_slot.h"

using penstock::graph::Plan;
using penstock::graph::PlanKind;
using penstock::graph::PlanNode;
using penstock::runtime::RunSlot;

[[gnu::noinline]] void Stop() { asm volatile(""); }

namespace {
// A slot is made by Compile only. All zeros are enough for a debugger that is to read its numbers.
alignas(RunSlot) std::byte slot_bytes[sizeof(RunSlot)];
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
  auto* const slot = reinterpret_cast<RunSlot*>(slot_bytes);
  const int index = 3;
  std::memcpy(slot_bytes + (reinterpret_cast<const std::byte*>(&slot->index) - slot_bytes), &index, sizeof(index));
  slot->progress.serial = 12;
  Stop();
  return fine.ok() && !bare.ok() && !told.ok() && seven.ok() && !none.ok() && plan.lanes.size() == 2 ? 0 : 1;
}
