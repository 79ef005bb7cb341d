// FirstLastUses: the steps that first and last touch device memory not owned by the slot.
//
// Runs that share a State are ordered between these, and a run waits before the first for bound memory to be ready.
// Within a lane the first touch precedes all others, so each lane has at most one first and one last touch.
#include <algorithm>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

// For one instance: the first and last touch in each lane.
struct LaneTouches {
  LaneId lane{};
  StepId first{}, last{};
};

using EntryId = Id<struct EntryTag>;

class UseFinder {
 public:
  explicit UseFinder(const Ordered& ordered, const Reduced& reduced)
      : ordered_(ordered), reduced_(reduced), entry_of_(ordered.instances.size()) {}

  Table<EntryId, FirstLastUses> Run() {
    for (const InstanceId i : ordered_.instances.ids()) {
      if (!IsLaunch(ordered_.instances[i])) continue;
      entry_of_[i] = found_.next();
      found_.push_back({.instance = i});
    }
    if (found_.empty()) return {};
    lanes_.resize(found_.size());
    for (const StepId v : ordered_.steps.ids()) TouchAll(v, ordered_.steps[v]);
    for (const EntryId e : found_.ids()) Pick(lanes_[e], found_[e]);
    return std::move(found_);
  }

 private:
  // A construct's gates touch what it does.
  void TouchAll(StepId v, const Step& step) {
    if (step.on_host()) return;
    if (step.decl < 0) {
      Touch(v, step.src, AccessMode::kRead);
      Touch(v, step.dst, AccessMode::kWrite);
    }
    for (const Use& use : ordered_.UsesOf(step)) Touch(v, use.instance, use.mode);
  }

  void Touch(StepId v, InstanceId instance, AccessMode mode) {
    const EntryId entry = entry_of_[instance];
    if (entry < 0) return;
    FirstLastUses& touches = found_[entry];
    if (mode != AccessMode::kRead && touches.first_write < 0) touches.first_write = v;
    std::vector<LaneTouches>& lanes = lanes_[entry];
    const LaneId lane = ordered_.lane[v];
    auto it = std::find_if(lanes.begin(), lanes.end(), [&](const LaneTouches& l) { return l.lane == lane; });
    if (it == lanes.end()) it = lanes.insert(it, {lane, v, v});
    it->last = v;
  }

  void Pick(const std::vector<LaneTouches>& lanes, FirstLastUses& touches) const {
    for (const LaneTouches& l : lanes) {
      const auto later = [&](const LaneTouches& o) { return Before(ordered_, reduced_, o.first, l.first); };
      const auto earlier = [&](const LaneTouches& o) { return Before(ordered_, reduced_, l.last, o.last); };
      if (std::none_of(lanes.begin(), lanes.end(), later)) touches.firsts.push_back(l.first);
      if (std::none_of(lanes.begin(), lanes.end(), earlier)) touches.lasts.push_back(l.last);
    }
    std::sort(touches.firsts.begin(), touches.firsts.end());
    std::sort(touches.lasts.begin(), touches.lasts.end());
  }

  const Ordered& ordered_;
  const Reduced& reduced_;
  Table<EntryId, FirstLastUses> found_;
  Table<InstanceId, EntryId> entry_of_;  // if it has one
  Table<EntryId, std::vector<LaneTouches>> lanes_;
};

}  // namespace

void FindFirstLastUses(const Ordered& ordered, const Reduced& reduced, Packed& packed) {
  for (FirstLastUses& touches : UseFinder(ordered, reduced).Run()) {
    const bool state = ordered.instances[touches.instance].space == Space::kState;
    (state ? packed.states : packed.external_deps).push_back(std::move(touches));
  }
}

}  // namespace penstock::graph
