#include "src/runtime/pipeline/placement.h"

#include <chrono>
#include <utility>

namespace penstock::runtime {

void StageWork::Begin(PipelineItem& item) {
  item.begun = std::chrono::steady_clock::now();
  ++working;
}

void StageWork::End(const PipelineItem& item, const absl::Status& status) {
  busy_ns += (std::chrono::steady_clock::now() - item.begun).count();
  --working;
  ++done;
  failed += status.ok() ? 0 : 1;
}

Placement::Placement(const StageTable& table) : table_(table) {
  for (const StageDevice& device : table.devices()) {
    devices_.push_back({.load = {.slots = device.slots, .weight = device.weight}});
  }
}

void Placement::Take(PipelineItem::Part& part, int device) {
  part.device = device;
  DeviceLoad& load = At(device).load;
  ++load.taken;
  load.last = ++begun_;
}

void Placement::Release(PipelineItem::Part& part) {
  if (part.device >= 0) --At(part.device).load.taken;
  part.device = -1;
}

bool Placement::SetBlocked(int device, bool blocked) { return std::exchange(At(device).blocked, blocked) != blocked; }

void Placement::NoteRun(int device, double ns) {
  double& mean = At(device).load.mean_ns;
  mean = mean == 0 ? ns : mean + (ns - mean) / 8;
}

}  // namespace penstock::runtime
