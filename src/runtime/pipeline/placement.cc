// Which device of a stage an item goes to, and the slots it takes there. See pipeline_core.h.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/pipeline/pipeline_core.h"

namespace penstock::runtime {

absl::Status PipelineCore::FindDevices(PipelineItem& item, bool kept) const {
  bool pinned = item.pin == kAnyDevice;
  for (const Stage& stage : stages_) {
    if (stage.legs.empty() || (kept && !stage.keeps_slots)) continue;
    PipelineItem::Part& part = PartOf(stage, item);
    part.wanted = item.pin == kAnyDevice ? -1 : stage.legs[0].set->MemberOn(item.pin);
    pinned = pinned || part.wanted >= 0;
    // With one device there is nothing to be found early, when the key may not be known yet.
    if (!kept || stage.stations.size() > 1) PENSTOCK_RETURN_IF_ERROR(FindDevice(stage, item));
    if (kept || part.wanted < 0 || part.station < 0) continue;
    const Station& has = *stations_[static_cast<size_t>(part.station)];
    if (has.member == part.wanted) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(stage.prefix, ": the item has had its slot on device ", has.device,
                     " since Acquire, and has to be on another one, where its key's States are or that Submit names; "
                     "tell Acquire the key and the device"));
  }
  if (pinned || kept) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("pipeline: the item is to be on device ", item.pin, "; no stage has it"));
}

// By the key, where it has States.
absl::Status PipelineCore::FindDevice(const Stage& stage, PipelineItem& item) {
  PipelineItem::Part& part = PartOf(stage, item);
  for (const Leg& leg : stage.legs) {
    if (leg.set->keyed() == nullptr) continue;
    const absl::StatusOr<KeyedHome> home = leg.set->FindHome(item.key, part.wanted);
    if (!home.ok()) return base::Prefixed(leg.prefix, home.status());
    part.wanted = home->member;
  }
  return absl::OkStatus();
}

// Where the item is to run; -1: not by this feed, or nowhere yet.
int PipelineCore::StationFor(const Feed& feed, PipelineItem& item) const {
  const Stage& stage = stages_[static_cast<size_t>(feed.stage)];
  const PipelineItem::Part& part = PartOf(stage, item);
  const int at = stage.keeps_slots ? part.station : BestStation(stage, part.wanted);
  return at >= 0 && feeds_[static_cast<size_t>(stations_[static_cast<size_t>(at)]->feed)].get() == &feed ? at : -1;
}

int PipelineCore::BestStation(const Stage& stage, int wanted) const {
  const bool dear = dear_.load(std::memory_order_relaxed) > 0;
  const auto load_of = [&](int s) {
    mu_.AssertHeld();
    const Station& station = *stations_[static_cast<size_t>(stage.stations[static_cast<size_t>(s)])];
    DeviceLoad load = station.load;
    if (station.blocked) load.taken = load.slots;
    if (dear) load.ahead_ns = static_cast<double>(UntilLaunched(*feeds_[static_cast<size_t>(station.feed)]));
    if (wanted >= 0) load.weight = station.member == wanted ? 1 : 0;
    return load;
  };
  const int best = ChooseDevice(static_cast<int>(stage.stations.size()), load_of);
  return best < 0 ? -1 : stage.stations[static_cast<size_t>(best)];
}

void PipelineCore::TakeStation(PipelineItem::Part& part, int station) {
  part.station = station;
  DeviceLoad& load = stations_[static_cast<size_t>(station)]->load;
  ++load.taken;
  load.last = ++begun_;
}

void PipelineCore::ReleaseStation(PipelineItem::Part& part) {
  if (part.station >= 0) --stations_[static_cast<size_t>(part.station)]->load.taken;
  part.station = -1;
}

bool PipelineCore::HaveFreeSlots(const Stage& stage, int member) {
  return std::all_of(stage.legs.begin(), stage.legs.end(), [&](const Leg& leg) {
    return leg.set->members()[static_cast<size_t>(member)].core->HasFreeSlot();
  });
}

void PipelineCore::SetBlocked(Station& station, bool blocked) {
  if (std::exchange(station.blocked, blocked) != blocked) blocked_.fetch_add(blocked ? 1 : -1);
}

// Whether one that was blocked is not any more.
bool PipelineCore::Unblock(const Stage& stage) {
  if (blocked_.load(std::memory_order_relaxed) == 0) return false;
  bool any = false;
  for (const int s : stage.stations) {
    Station& station = *stations_[static_cast<size_t>(s)];
    {
      base::MutexLock lock(mu_);
      if (!station.blocked) continue;
    }
    if (!HaveFreeSlots(stage, station.member)) continue;
    base::MutexLock lock(mu_);
    SetBlocked(station, false);
    any = true;
  }
  return any;
}

// A slot that is taken and given back, since the next executable has none, notifies the event count, and who waits for
// that one would never sleep.
absl::Status PipelineCore::TakeSlotsOf(const Stage& stage, const Station& station, PipelineItem& item) {
  if (stage.legs.size() > 1 && !HaveFreeSlots(stage, station.member)) {
    return absl::ResourceExhaustedError("an executable of the row has no free slot");
  }
  for (const Leg& leg : stage.legs) {
    const std::shared_ptr<ExecutableCore>& core = leg.set->members()[static_cast<size_t>(station.member)].core;
    absl::StatusOr<RunSlot*> slot = core->Lease(Deadline(), /*wait=*/false);
    if (slot.ok()) {
      item.parts[static_cast<size_t>(leg.part)].slot = Lease(core, *slot);
      continue;
    }
    for (const Leg& other : stage.legs) item.parts[static_cast<size_t>(other.part)].slot = Lease();
    return slot.status();
  }
  return absl::OkStatus();
}

}  // namespace penstock::runtime
