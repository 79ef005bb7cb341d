// Placement: how many slots items hold on each device of a pipeline's stages, and on which device an item begins a
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

// The work done by a host stage, or by a device of another stage.
struct StageWork {
  int64_t working = 0, done = 0, failed = 0, busy_ns = 0;

  void Begin(PipelineItem& item);
  void End(const PipelineItem& item, const absl::Status& status);
};

class Placement {
 public:
  // The table must outlive this.
  explicit Placement(const StageTable& table);

  // The device of the stage (StageTable::devices) that is best for an item, of those with a free slot; -1 if there is
  // none. `wanted`: the member of the sets that it must be; -1: any. `busy_ns(device)`: how long it will be busy
  // launching other items.
  template <class BusyNs>
  int Best(const Stage& stage, int wanted, BusyNs busy_ns) const;
  // The item holds a slot on the device from now on, until Release.
  void Take(PipelineItem::Part& part, int device);
  void Release(PipelineItem::Part& part);

  // Blocked: when an executable was last tried, users other than the pipeline held all its slots. Returns whether the
  // value has changed.
  bool SetBlocked(int device, bool blocked);
  bool blocked(int device) const { return At(device).blocked; }
  bool HasRoom(int device) const { return At(device).load.taken < At(device).load.slots; }

  // Records the duration of a run on the device.
  void NoteRun(int device, double ns);

  // What the device has done.
  StageWork& work(int device) { return At(device).work; }
  const StageWork& work(int device) const { return At(device).work; }

 private:
  // In one place, since a thread that moves an item reads or writes all of it.
  struct State {
    DeviceLoad load{};
    bool blocked = false;
    StageWork work{};
  };
  const State& At(int device) const { return devices_[device]; }
  State& At(int device) { return devices_[device]; }

  const StageTable& table_;
  std::vector<State> devices_;  // StageTable::devices
  int64_t begun_ = 0;  // number of items that have taken a device so far
};

template <class BusyNs>
int Placement::Best(const Stage& stage, int wanted, BusyNs busy_ns) const {
  const auto load_of = [&](int s) {
    const int device = stage.devices[s];
    DeviceLoad load = At(device).load;
    if (blocked(device)) load.taken = load.slots;
    load.busy_ns = static_cast<double>(busy_ns(device));
    if (wanted >= 0) load.weight = table_.device(device).member == wanted ? 1 : 0;
    return load;
  };
  const int best = ChooseDevice(static_cast<int>(stage.devices.size()), load_of);
  return best < 0 ? -1 : stage.devices[best];
}

}  // namespace penstock::runtime
