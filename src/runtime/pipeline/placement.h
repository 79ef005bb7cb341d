// Placement: how many slots items have on each device of a pipeline's stages, and on which device an item begins a
// stage. A pure state machine: no thread, lock or device.
//
// Threads: thread-compatible; a pipeline guards it by its lock.
#pragma once

#include <cstdint>
#include <vector>

#include "src/runtime/executable/device_choice.h"
#include "src/runtime/pipeline/item.h"
#include "src/runtime/pipeline/stage_table.h"

namespace penstock::runtime {

class Placement {
 public:
  // The table stays as long as this.
  explicit Placement(const StageTable& table);

  // The device of the stage (StageTable::devices) that is best for an item, of those with a free slot; -1: there is
  // none. `wanted`: the member of the sets that it has to be; -1: any. `ahead_ns(device)`: for how long it is busy
  // launching other items.
  template <class AheadNs>
  int Best(const Stage& stage, int wanted, AheadNs ahead_ns) const;
  // The item has a slot on the device from now on, until Release.
  void Take(PipelineItem::Part& part, int device);
  void Release(PipelineItem::Part& part);

  // Blocked: others than the pipeline have had all slots of an executable when it was tried last. Whether it has
  // changed.
  bool SetBlocked(int device, bool blocked);
  bool blocked(int device) const { return blocked_[static_cast<size_t>(device)]; }
  bool HasRoom(int device) const { return LoadOf(device).taken < LoadOf(device).slots; }

  // A run on the device has taken so long.
  void NoteRun(int device, double ns);

 private:
  const DeviceLoad& LoadOf(int device) const { return loads_[static_cast<size_t>(device)]; }

  const StageTable& table_;
  std::vector<DeviceLoad> loads_;  // a device each
  std::vector<bool> blocked_;  // the same
  int64_t begun_ = 0;  // items that have taken a device, ever
};

template <class AheadNs>
int Placement::Best(const Stage& stage, int wanted, AheadNs ahead_ns) const {
  const auto load_of = [&](int s) {
    const int device = stage.devices[static_cast<size_t>(s)];
    DeviceLoad load = LoadOf(device);
    if (blocked(device)) load.taken = load.slots;
    load.ahead_ns = static_cast<double>(ahead_ns(device));
    if (wanted >= 0) load.weight = table_.device(device).member == wanted ? 1 : 0;
    return load;
  };
  const int best = ChooseDevice(static_cast<int>(stage.devices.size()), load_of);
  return best < 0 ? -1 : stage.devices[static_cast<size_t>(best)];
}

}  // namespace penstock::runtime
