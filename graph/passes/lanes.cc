// Lanes: a lane is a FIFO stream. A compute step takes over the lane of a predecessor that is still its lane's last
// step, so that chains need no events. Among several such predecessors it takes the one that the fewest unplaced
// steps could follow, leaving the others for those. Without one it opens a lane, up to PlanOptions::max_lanes per
// device, and then takes the least loaded one. Copies between the host and a device have one lane per device and
// direction, since there is one copy engine for each.
//
// Copies from other devices have lanes apart, up to kMostPeerLanes, and take over no others. So while there
// are lanes enough, no kernel waits for a copy that it does not follow, and no copy for kernels that share lanes. A
// kernel may take over the lane of the copy that it follows, unless a device shall have one lane for kernels.
//
// In a plan over several devices a step that takes over no lane of a predecessor takes one that ended with an earlier
// ancestor, if nothing else could follow that and it is near. Otherwise each step of a stencil would open new lanes,
// since what follows a copy has no predecessor on its device.
//
// A lane has one priority, so each priority in use on a device needs its own lane; with more priorities than lanes the
// least urgent ones share the last. Lower numbers are more urgent.
#include <algorithm>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

constexpr size_t kMostLookedAt = 24;  // of a step's ancestors
// For each device: one for each other of a machine of eight and one more. With more, wide graphs have events for a
// fifth more nodes.
constexpr int32_t kMostPeerLanes = 8;

LaneKind KindOf(PlanKind kind) {
  if (kind == PlanKind::kUpload) return LaneKind::kUpload;
  if (kind == PlanKind::kDownload) return LaneKind::kDownload;
  if (kind == PlanKind::kPeerCopy) return LaneKind::kPeer;
  return LaneKind::kCompute;
}

class Assigner {
 public:
  Assigner(const Records& records, Ordered& ordered, Findings& findings)
      : records_(records), ordered_(ordered), findings_(findings), devices_(records.options.devices.size()) {
    FindPriorities();
    CountFollowers();
  }

  void Run() {
    ordered_.lane.reserve(ordered_.steps.size());
    for (const StepId v : ordered_.steps.ids()) {
      const Step& step = ordered_.steps[v];
      const LaneId lane = step.on_host() ? LaneId() : Choose(v, step);
      ordered_.lane.push_back(lane);
      if (lane < 0) continue;
      tail_[lane] = v;
      load_[lane] += ordered_.cost[v];
    }
  }

 private:
  // Lanes of one kind, of which there may be so many.
  struct Pool {
    LaneKind kind = LaneKind::kCompute;
    int32_t most = 1;
    std::vector<int32_t> priorities{};  // the most urgent first
    std::vector<LaneId> lanes{};
    int32_t without_lane = 0;  // priorities without a lane so far
    bool capped = false;
  };
  struct DeviceLanes {
    Pool compute{.kind = LaneKind::kCompute}, peer{.kind = LaneKind::kPeer};
    LaneId copy[2];  // upload, download
    int32_t copy_priority[2] = {INT32_MAX, INT32_MAX};
    Pool& pool(LaneKind kind) { return kind == LaneKind::kPeer ? peer : compute; }
  };

  void FindPriorities() {
    kind_.reserve(ordered_.steps.size());
    DeviceId last;
    for (const Step& step : ordered_.steps) {
      const LaneKind kind = KindOf(step.kind);
      const bool has_pool = !step.on_host() && HasKernels(kind);
      kind_.push_back(has_pool ? int64_t{step.device} << 32 | static_cast<uint32_t>(step.priority) : -1);
      if (step.on_host()) continue;
      several_devices_ = several_devices_ || (last >= 0 && step.device != last);
      last = step.device;
      DeviceLanes& device = devices_[step.device];
      if (has_pool) {
        std::vector<int32_t>& priorities = device.pool(kind).priorities;
        if (priorities.empty() || priorities.back() != step.priority) priorities.push_back(step.priority);
      } else {
        int32_t& priority = device.copy_priority[step.kind == PlanKind::kDownload];
        priority = std::min(priority, step.priority);
      }
    }
    for (const DeviceId i : devices_.ids()) {
      devices_[i].compute.most = records_.options.max_lanes;
      devices_[i].peer.most = std::min(records_.options.max_lanes, kMostPeerLanes);
      Trim(devices_[i].compute, i);
      Trim(devices_[i].peer, i);
    }
  }

  void Trim(Pool& pool, DeviceId device) {
    std::vector<int32_t>& p = pool.priorities;
    std::sort(p.begin(), p.end());
    p.erase(std::unique(p.begin(), p.end()), p.end());
    if (p.size() > static_cast<size_t>(pool.most)) {
      const int32_t last = p[static_cast<size_t>(pool.most) - 1];
      findings_.remarks.push_back(records_.device_name(device) + ": " + std::to_string(p.size()) +
                                  " priorities share " + std::to_string(pool.most) + " " + LanesOf(pool) +
                                  "; those over " + std::to_string(last) + " count as equal to it");
      p.resize(static_cast<size_t>(pool.most));
    }
    pool.without_lane = static_cast<int32_t>(p.size());
  }
  static const char* LanesOf(const Pool& pool) {
    return pool.kind == LaneKind::kPeer ? "lanes of copies between devices" : "compute lanes";
  }

  LaneId Choose(StepId v, const Step& step) {
    DeviceLanes& device = devices_[step.device];
    const LaneKind kind = KindOf(step.kind);
    if (!HasKernels(kind)) {
      LaneId& lane = device.copy[kind == LaneKind::kDownload];
      if (lane < 0) lane = Open(step.device, kind, device.copy_priority[kind == LaneKind::kDownload]);
      return lane;
    }
    Pool& pool = device.pool(kind);
    const int32_t priority = std::min(step.priority, pool.priorities.back());
    const LaneId inherited = Inherit(v, step.device, pool.kind, priority);
    if (inherited >= 0) return inherited;
    const LaneId ended = several_devices_ ? FindEnded(v, pool, priority) : LaneId();
    return ended >= 0 ? ended : OpenOrShare(step.device, pool, priority);
  }

  // For each step: how many steps still without a lane could take over its lane.
  void CountFollowers() {
    followers_.assign(ordered_.steps.size(), 0);
    for (const StepId v : ordered_.steps.ids()) {
      if (kind_[v] < 0) continue;
      for (const StepId p : ordered_.edges[v]) followers_[p] += IsAlike(p, v);
    }
  }
  bool IsAlike(StepId a, StepId b) const { return kind_[a] == kind_[b]; }

  // The lane that step `v` takes over; none: it needs another. `v` has a lane from now on, and stops being a possible
  // follower.
  LaneId Inherit(StepId v, DeviceId device, LaneKind kind, int32_t priority) {
    LaneId best;
    int32_t fewest = INT32_MAX;
    const std::span<const int32_t> preds = ordered_.edges[v];
    for (size_t i = preds.size(); i > 0; --i) {
      const StepId p = preds[i - 1];
      const LaneId lane = ordered_.lane[p];
      const int32_t followers = followers_[p];
      followers_[p] -= IsAlike(p, v);
      if (lane < 0 || tail_[lane] != p || followers >= fewest) continue;
      const Lane& l = ordered_.lanes[lane];
      const bool fits =
          l.kind == kind || (kind == LaneKind::kCompute && l.kind == LaneKind::kPeer && records_.options.max_lanes > 1);
      if (l.device != device || !fits || l.priority != priority) continue;
      best = lane;
      fewest = followers;
    }
    return best;
  }

  // A lane of the pool whose last step is an ancestor of `v` that no other step could follow: the nearest of those
  // looked at.
  LaneId FindEnded(StepId v, const Pool& pool, int32_t priority) {
    seen_.assign(1, v);
    for (size_t at = 0; at < seen_.size() && seen_.size() < kMostLookedAt; ++at) {
      const auto preds = ordered_.edges[seen_[at]];
      for (size_t i = preds.size(); i > 0 && seen_.size() < kMostLookedAt; --i) {
        const StepId p = preds[i - 1];
        if (std::find(seen_.begin(), seen_.end(), p) != seen_.end()) continue;
        seen_.push_back(p);
        const LaneId lane = ordered_.lane[p];
        if (lane < 0 || tail_[lane] != p || followers_[p] > 0 || ordered_.lanes[lane].priority != priority) continue;
        if (std::find(pool.lanes.begin(), pool.lanes.end(), lane) != pool.lanes.end()) return lane;
      }
    }
    return {};
  }

  LaneId OpenOrShare(DeviceId device, Pool& pool, int32_t priority) {
    LaneId best;
    for (const LaneId lane : pool.lanes) {
      if (ordered_.lanes[lane].priority != priority) continue;
      if (best < 0 || load_[lane] < load_[best]) best = lane;
    }
    const int32_t kept_free = pool.without_lane - (best < 0);  // reserved for priorities still to come
    if (best >= 0 && static_cast<int32_t>(pool.lanes.size()) + kept_free >= pool.most) {
      if (!pool.capped && pool.kind == LaneKind::kCompute) {
        findings_.shared_lanes.push_back(records_.device_name(device) + ": the plan is wider than the " +
                                         std::to_string(pool.most) +
                                         " compute lanes that max_lanes allows; nodes share them");
      }
      pool.capped = true;
      return best;
    }
    if (best < 0) --pool.without_lane;
    pool.lanes.push_back(Open(device, pool.kind, priority));
    return pool.lanes.back();
  }

  LaneId Open(DeviceId device, LaneKind kind, int32_t priority) {
    ordered_.lanes.push_back({device, kind, priority});
    tail_.push_back(StepId());
    load_.push_back(0);
    return ordered_.lanes.next() - 1;
  }

  const Records& records_;
  Ordered& ordered_;
  Findings& findings_;
  Table<DeviceId, DeviceLanes> devices_;
  Table<LaneId, StepId> tail_;  // its last step
  Table<LaneId, double> load_;  // the costs of its steps
  Table<StepId, int64_t> kind_;  // device and priority of steps with a pool, -1 for others
  Table<StepId, int32_t> followers_;
  bool several_devices_ = false;
  std::vector<StepId> seen_;  // by FindEnded
};

}  // namespace

void Lanes(const Records& records, Ordered& ordered, Findings& findings) { Assigner(records, ordered, findings).Run(); }

}  // namespace penstock::graph
