// States: which steps touch the memory of each State first and last.
//
// Runs that share a State are ordered between these. Within a lane the first touch is before all others, so only one
// step a lane can be a first touch, and one a last.
#include <algorithm>

#include "graph/passes.h"

namespace penstock::graph {
namespace {

// Of one State: the first and last touch in each lane.
struct LaneTouches {
  int32_t lane = -1;
  int32_t first = -1, last = -1;
};

class Finder {
 public:
  explicit Finder(Draft& draft) : d_(draft), use_of_(draft.instances.size(), -1) {}

  void Run() {
    for (size_t i = 0; i < d_.instances.size(); ++i) {
      if (d_.instances[i].space != Space::kState) continue;
      use_of_[i] = static_cast<int32_t>(d_.states.size());
      d_.states.push_back({.instance = static_cast<int32_t>(i)});
    }
    if (d_.states.empty()) return;
    lanes_.resize(d_.states.size());
    for (int32_t v = 0; v < d_.step_count(); ++v) TouchAll(v, d_.steps[static_cast<size_t>(v)]);
    for (size_t u = 0; u < d_.states.size(); ++u) Pick(lanes_[u], d_.states[u]);
  }

 private:
  void TouchAll(int32_t v, const Step& step) {
    if (step.decl < 0) {
      Touch(v, step.src, AccessMode::kRead);
      Touch(v, step.dst, AccessMode::kWrite);
    }
    for (int32_t i = step.first_use; i < step.first_use + step.uses; ++i) {
      Touch(v, d_.uses[static_cast<size_t>(i)].instance, d_.uses[static_cast<size_t>(i)].mode);
    }
  }

  void Touch(int32_t v, int32_t instance, AccessMode mode) {
    const int32_t u = use_of_[static_cast<size_t>(instance)];
    if (u < 0) return;
    StateTouches& touches = d_.states[static_cast<size_t>(u)];
    if (mode != AccessMode::kRead && touches.first_write < 0) touches.first_write = v;
    std::vector<LaneTouches>& lanes = lanes_[static_cast<size_t>(u)];
    const int32_t lane = d_.lane[static_cast<size_t>(v)];
    auto it = std::find_if(lanes.begin(), lanes.end(), [&](const LaneTouches& l) { return l.lane == lane; });
    if (it == lanes.end()) it = lanes.insert(it, {lane, v, v});
    it->last = v;
  }

  void Pick(const std::vector<LaneTouches>& lanes, StateTouches& touches) const {
    for (const LaneTouches& l : lanes) {
      const auto later = [&](const LaneTouches& o) { return d_.Before(o.first, l.first); };
      const auto earlier = [&](const LaneTouches& o) { return d_.Before(l.last, o.last); };
      if (std::none_of(lanes.begin(), lanes.end(), later)) touches.firsts.push_back(l.first);
      if (std::none_of(lanes.begin(), lanes.end(), earlier)) touches.lasts.push_back(l.last);
    }
    std::sort(touches.firsts.begin(), touches.firsts.end());
    std::sort(touches.lasts.begin(), touches.lasts.end());
  }

  Draft& d_;
  std::vector<int32_t> use_of_;                   // of each instance: Draft::states, -1: no State's
  std::vector<std::vector<LaneTouches>> lanes_;   // of each state
};

}  // namespace

void States(Draft& draft) { Finder(draft).Run(); }

}  // namespace penstock::graph
