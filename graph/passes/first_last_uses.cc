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
  int32_t lane = -1;
  int32_t first = -1, last = -1;
};

class UseFinder {
 public:
  explicit UseFinder(const Draft& draft) : d_(draft), entry_of_(draft.instances.size(), -1) {}

  std::vector<FirstLastUses> Run() {
    for (size_t i = 0; i < d_.instances.size(); ++i) {
      if (!IsLaunch(d_.instances[i])) continue;
      entry_of_[i] = static_cast<int32_t>(found_.size());
      found_.push_back({.instance = static_cast<int32_t>(i)});
    }
    if (found_.empty()) return {};
    lanes_.resize(found_.size());
    for (int32_t v = 0; v < d_.step_count(); ++v) TouchAll(v, d_.steps[v]);
    for (size_t e = 0; e < found_.size(); ++e) Pick(lanes_[e], found_[e]);
    return std::move(found_);
  }

 private:
  void TouchAll(int32_t v, const Step& step) {
    if (step.decl < 0) {
      Touch(v, step.src, AccessMode::kRead);
      Touch(v, step.dst, AccessMode::kWrite);
    }
    for (int32_t i = step.first_use; i < step.first_use + step.uses; ++i) {
      Touch(v, d_.uses[i].instance, d_.uses[i].mode);
    }
  }

  void Touch(int32_t v, int32_t instance, AccessMode mode) {
    const int32_t entry = entry_of_[instance];
    if (entry < 0) return;
    FirstLastUses& touches = found_[entry];
    if (mode != AccessMode::kRead && touches.first_write < 0) touches.first_write = v;
    std::vector<LaneTouches>& lanes = lanes_[entry];
    const int32_t lane = d_.lane[v];
    auto it = std::find_if(lanes.begin(), lanes.end(), [&](const LaneTouches& l) { return l.lane == lane; });
    if (it == lanes.end()) it = lanes.insert(it, {lane, v, v});
    it->last = v;
  }

  void Pick(const std::vector<LaneTouches>& lanes, FirstLastUses& touches) const {
    for (const LaneTouches& l : lanes) {
      const auto later = [&](const LaneTouches& o) { return d_.Before(o.first, l.first); };
      const auto earlier = [&](const LaneTouches& o) { return d_.Before(l.last, o.last); };
      if (std::none_of(lanes.begin(), lanes.end(), later)) touches.firsts.push_back(l.first);
      if (std::none_of(lanes.begin(), lanes.end(), earlier)) touches.lasts.push_back(l.last);
    }
    std::sort(touches.firsts.begin(), touches.firsts.end());
    std::sort(touches.lasts.begin(), touches.lasts.end());
  }

  const Draft& d_;
  std::vector<FirstLastUses> found_;
  std::vector<int32_t> entry_of_;                // for each instance: index in `found_`, or -1
  std::vector<std::vector<LaneTouches>> lanes_;  // for each entry
};

}  // namespace

void FindFirstLastUses(Draft& draft) {
  for (FirstLastUses& touches : UseFinder(draft).Run()) {
    const bool state = draft.instances[touches.instance].space == Space::kState;
    (state ? draft.states : draft.external_deps).push_back(std::move(touches));
  }
}

}  // namespace penstock::graph
