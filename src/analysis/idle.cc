#include "src/analysis/idle.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

namespace penstock::analysis {
namespace {

// What the moments between two events have in common.
class Moment {
 public:
  explicit Moment(const Profile& profile) : profile_(profile) {}

  void Begin(int span, IdleCause as) { active_[static_cast<size_t>(as)].insert(Key(span)); }
  void End(int span, IdleCause as) { active_[static_cast<size_t>(as)].erase(Key(span)); }
  void Work(int more) { working_ += more; }
  void Look(int more) { looked_at_ += more; }

  bool IsIdle() const { return looked_at_ > 0 && working_ == 0; }
  // As a part without its interval: kHandOver stands for a run in flight, and kSlotWait for a launch that waits.
  IdlePart What() const {
    for (const IdleCause cause : {IdleCause::kHostStep, IdleCause::kStaging, IdleCause::kLaunch, IdleCause::kStateWait,
                                  IdleCause::kRecording}) {
      if (First(cause) >= 0) return {{}, cause, First(cause)};
    }
    const int wait = First(IdleCause::kSlotWait), run = First(IdleCause::kHandOver);
    if (run >= 0) return wait < 0 ? IdlePart{{}, IdleCause::kHandOver, run} : IdlePart{{}, IdleCause::kSlotWait, wait};
    if (wait >= 0) return {{}, IdleCause::kLeaseWait, wait};
    return {{}, IdleCause::kCaller, -1};
  }

 private:
  std::pair<double, int> Key(int span) const { return {profile_.spans[static_cast<size_t>(span)].begin_us, span}; }
  // That which has gone on for the longest time.
  int First(IdleCause cause) const {
    const auto& active = active_[static_cast<size_t>(cause)];
    return active.empty() ? -1 : active.begin()->second;
  }

  const Profile& profile_;
  std::array<std::set<std::pair<double, int>>, 9> active_;
  int working_ = 0, looked_at_ = 0;
};

struct IdleEvent {
  double at;
  bool ends;
  int span;  // -1: the window
};

bool IsDeviceWork(const Span& span) {
  return span.device >= 0 &&
         (span.kind == SpanKind::kUpload || span.kind == SpanKind::kDownload || span.kind == SpanKind::kKernel);
}

class IdleSweep {
 public:
  IdleSweep(const Profile& profile, const std::vector<int>& working, const TimeSet& window)
      : profile_(profile), moment_(profile) {
    for (size_t g = 0; g < profile.graphs.size(); ++g) graphs_[profile.graphs[g].executable] = g;
    for (const int s : working) {
      const Span& span = profile.spans[static_cast<size_t>(s)];
      events_.push_back({span.begin_us, false, s});
      events_.push_back({span.end_us, true, s});
    }
    for (const Interval& looked_at : window.intervals()) {
      events_.push_back({looked_at.begin, false, -1});
      events_.push_back({looked_at.end, true, -1});
    }
    std::sort(events_.begin(), events_.end(), [](const IdleEvent& a, const IdleEvent& b) {
      return a.at != b.at ? a.at < b.at : a.ends != b.ends ? a.ends < b.ends : a.span < b.span;
    });
  }

  std::vector<IdlePart> Parts() && {
    for (size_t e = 0; e < events_.size(); ++e) {
      Apply(events_[e]);
      if (e + 1 < events_.size() && events_[e].at < events_[e + 1].at && moment_.IsIdle()) {
        Append(events_[e].at, events_[e + 1].at, moment_.What());
      }
    }
    return std::move(parts_);
  }

 private:
  void Apply(const IdleEvent& event) {
    const int more = event.ends ? -1 : 1;
    if (event.span < 0) return moment_.Look(more);
    const Span& span = profile_.spans[static_cast<size_t>(event.span)];
    if (IsDeviceWork(span)) return moment_.Work(more);
    if (span.executable < 0) return;  // the application's own
    const IdleCause as = CauseOf(span);
    event.ends ? moment_.End(event.span, as) : moment_.Begin(event.span, as);
  }
  IdleCause CauseOf(const Span& span) const {
    switch (span.kind) {
      case SpanKind::kSubmit: return IdleCause::kLaunch;
      case SpanKind::kRun: return IdleCause::kHandOver;
      case SpanKind::kWait: return span.device >= 0 ? IdleCause::kStateWait : IdleCause::kSlotWait;
      default: break;
    }
    if (span.node < 0) return IdleCause::kRecording;
    const auto graph = graphs_.find(span.executable);
    if (graph == graphs_.end()) return IdleCause::kHostStep;
    const auto& nodes = profile_.graphs[graph->second].nodes;
    const auto node = static_cast<size_t>(span.node);
    if (node >= nodes.size()) return IdleCause::kHostStep;
    if (nodes[node].kind == "control")
      return IdleCause::kHandOver;  // of the body's runs, which have spans of their own
    return IsStaging(nodes[node]) ? IdleCause::kStaging : IdleCause::kHostStep;
  }
  void Append(double begin, double end, const IdlePart& what) {
    if (!parts_.empty() && parts_.back().at.end == begin && parts_.back().span == what.span &&
        parts_.back().cause == what.cause) {
      parts_.back().at.end = end;
      return;
    }
    parts_.push_back({{begin, end}, what.cause, what.span});
  }

  const Profile& profile_;
  std::unordered_map<int64_t, size_t> graphs_;
  std::vector<IdleEvent> events_;
  Moment moment_;
  std::vector<IdlePart> parts_;
};

bool IsHandOver(const IdlePart& part) {
  return part.cause == IdleCause::kHandOver || part.cause == IdleCause::kSlotWait;
}

// Makes a hand-over that touches a host step part of it.
void Absorb(const IdlePart& step, IdlePart& beside) {
  const bool touches = beside.at.end == step.at.begin || beside.at.begin == step.at.end;
  if (step.cause != IdleCause::kHostStep || step.absorbed || !touches || !IsHandOver(beside)) return;
  beside.cause = step.cause;
  beside.span = step.span;
  beside.absorbed = true;
}

}  // namespace

bool IsStaging(const Profile::Node& node) { return node.kind == "stage in" || node.kind == "stage out"; }

std::vector<IdlePart> FindIdleParts(const Profile& profile, const std::vector<int>& working, const TimeSet& window) {
  std::vector<IdlePart> parts = IdleSweep(profile, working, window).Parts();
  for (size_t p = 1; p < parts.size(); ++p) {
    Absorb(parts[p - 1], parts[p]);
    Absorb(parts[p], parts[p - 1]);
  }
  return parts;
}

}  // namespace penstock::analysis
