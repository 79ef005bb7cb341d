#include "src/runtime/pipeline/placement.h"

namespace penstock::runtime {

Placement::Placement(const StageTable& table) : table_(table), blocked_(table.devices().size()) {
  for (const StageDevice& device : table.devices()) {
    loads_.push_back({.slots = device.slots, .weight = device.weight});
  }
}

void Placement::Take(PipelineItem::Part& part, int device) {
  part.device = device;
  DeviceLoad& load = loads_[static_cast<size_t>(device)];
  ++load.taken;
  load.last = ++begun_;
}

void Placement::Release(PipelineItem::Part& part) {
  if (part.device >= 0) --loads_[static_cast<size_t>(part.device)].taken;
  part.device = -1;
}

bool Placement::SetBlocked(int device, bool blocked) {
  const bool before = blocked_[static_cast<size_t>(device)];
  blocked_[static_cast<size_t>(device)] = blocked;
  return before != blocked;
}

void Placement::NoteRun(int device, double ns) {
  double& mean = loads_[static_cast<size_t>(device)].mean_ns;
  mean = mean == 0 ? ns : mean + (ns - mean) / 8;
}

}  // namespace penstock::runtime
