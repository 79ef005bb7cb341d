#include "tests/graph/simulate/naive_simulation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace penstock::graph {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct NaiveNode {
  double submitted = kNever, ready = kNever, begin = kNever, end = kNever, left = 0;
  int order = 0;  // among those of the run that are ready at the same time
};

// What is submitted in one go: a segment, or a part of one between nodes that are the first or last to touch a State.
struct NaivePart {
  int segment = 0;
  std::vector<int> nodes{}, first_of{}, last_of{};
};

struct NaiveRun {
  std::vector<NaiveNode> nodes;
  int submitted = 0;  // parts, the one included that is being submitted
  int parts_done = 0;
  bool waits_for_run = false;  // the next part waits for the run before, and for nothing else
  double submitted_until = kNever;  // while a segment is being submitted
  double wants_worker = kNever;  // since when
  bool by_worker = false;
  bool posts = false;  // host steps may be given to the workers
  double submitting_since = kNever;  // without a pause, or that a worker is to do so
  double segment_since = 0;  // when the submission of the segment began
  double launch_ended = kNever;  // the submission of the first segment
  double ended = kNever;
};

struct NaiveThread {
  enum { kWantsRoom, kPrepares, kWantsSlot, kLaunches, kIsDone } state = kWantsRoom;
  double until = 0;
  int run = -1;
};

class NaiveSimulation {
 public:
  NaiveSimulation(const SimGraph& graph, const SimOptions& options)
      : g_(graph), o_(options), threads_(static_cast<size_t>(options.threads)) {
    for (int n = 0; n < nodes(); ++n) {
      segment_.push_back(0);
      for (const int p : g_.nodes[n].after) {
        segment_[n] = std::max(segment_[n], segment_[p] + (g_.nodes[p].on_host && !g_.nodes[n].on_host));
      }
      segments_ = std::max(segments_, segment_[n] + 1);
    }
    for (int s = 0; s < segments_; ++s) AddParts(s);
  }

  NaiveResult Run() {
    do {
      while (EndWhatIsOver()) {
      }
      EndSubmissions();
      NoteWhoWaits();
      BeginWhatCan();
    } while (Advance());
    NaiveResult result;
    result.launched_us = launched_;
    for (const NaiveRun& run : runs_) {
      result.ended_us.push_back(run.ended);
      result.begin_us.emplace_back();
      result.end_us.emplace_back();
      for (const NaiveNode& node : run.nodes) {
        result.begin_us.back().push_back(node.begin);
        result.end_us.back().push_back(node.end);
      }
    }
    return result;
  }

 private:
  // Graphs are not cut.
  void AddParts(int segment) {
    std::vector<int> members;
    for (int n = 0; n < nodes(); ++n) {
      if (!g_.nodes[n].on_host && segment_[n] == segment) members.push_back(n);
    }
    parts_.push_back({segment});
    for (const int n : members) {
      const int first = o_.as_graphs ? members.front() : n, last = o_.as_graphs ? members.back() : n;
      std::vector<int> first_of, last_of;
      for (int state = 0; state < static_cast<int>(g_.states.size()); ++state) {
        if (o_.as_graphs && n != first) continue;
        const auto [from, to] = TouchesOf(state);
        if (from >= std::pair(segment, first) && from <= std::pair(segment, last)) first_of.push_back(state);
        if (to >= std::pair(segment, first) && to <= std::pair(segment, last)) last_of.push_back(state);
      }
      if (!first_of.empty() || (!parts_.back().last_of.empty() && !o_.as_graphs)) parts_.push_back({segment});
      parts_.back().nodes.push_back(n);
      if (!first_of.empty()) parts_.back().first_of = first_of;
      if (!last_of.empty()) parts_.back().last_of = last_of;
    }
  }
  // The first and the last node to touch it, in the order of submission.
  std::pair<std::pair<int, int>, std::pair<int, int>> TouchesOf(int state) const {
    std::pair<int, int> first{1 << 20, 0}, last{-1, 0};
    for (const int n : g_.states[state]) {
      first = std::min(first, std::pair(segment_[n], n));
      last = std::max(last, std::pair(segment_[n], n));
    }
    return {first, last};
  }

  using Place = std::tuple<SimResource, int, int>;
  using Order = std::tuple<int, double, std::pair<int, int>>;  // of host steps

  int nodes() const { return static_cast<int>(g_.nodes.size()); }
  static bool IsRunning(const NaiveNode& node) { return node.begin < kNever && node.end == kNever; }
  bool EndedBefore(const NaiveNode& node, double latency) const { return node.end + latency <= now_; }

  Place PlaceOf(const SimNode& node) const {
    if (node.resource == SimResource::kNothing || node.resource == SimResource::kWorker) return {node.resource, -1, -1};
    return {node.resource, node.device, node.resource == SimResource::kPeer ? node.from : -1};
  }
  int PlacesOf(const SimNode& node) const {
    if (node.resource == SimResource::kWorker) return o_.workers;
    return node.resource == SimResource::kKernel ? g_.devices[node.device].kernels : 1;
  }

  bool GraphEnded(const NaiveRun& run, int segment, double latency) const {
    for (int n = 0; n < nodes(); ++n) {
      if (!g_.nodes[n].on_host && segment_[n] == segment && !EndedBefore(run.nodes[n], latency)) return false;
    }
    return true;
  }

  bool IsReady(const NaiveRun& run, int n) const {
    const SimNode& node = g_.nodes[n];
    if (node.on_host && !run.posts) return false;
    for (const int p : node.after) {
      const SimNode& before = g_.nodes[p];
      const bool reports = node.on_host && !before.on_host;
      if (reports && !IsSubmitted(run, segment_[p])) return false;
      const bool crosses = !node.on_host && !before.on_host && node.device != before.device;
      const double latency = reports ? o_.completion_us : crosses ? o_.crossing_us : 0;
      if (reports && o_.as_graphs && !GraphEnded(run, segment_[p], latency)) return false;
      // Graphs on one lane: how long ago a node of an earlier graph ended does not matter.
      const bool apart = o_.as_graphs && crosses && segment_[p] != segment_[n];
      if (!EndedBefore(run.nodes[p], apart ? 0 : latency)) return false;
    }
    for (const std::vector<int32_t>& state : g_.states) {
      if (&run == runs_.data() || std::find(state.begin(), state.end(), n) == state.end()) continue;
      for (const int m : state) {
        const bool crosses = !o_.as_graphs && g_.nodes[m].device != node.device;
        if (!EndedBefore((&run - 1)->nodes[m], crosses ? o_.crossing_us : 0)) return false;
      }
    }
    if (node.on_host) return node.after.empty() ? run.launch_ended <= now_ : true;
    for (int m = 0; m < nodes(); ++m) {
      const SimNode& other = g_.nodes[m];
      if (other.on_host) continue;
      const bool same_lane = node.lane >= 0 && other.lane == node.lane;
      const bool earlier = std::pair(segment_[m], m) < std::pair(segment_[n], n);
      if (!o_.as_graphs && same_lane && earlier && !EndedBefore(run.nodes[m], 0)) return false;
      if (o_.as_graphs && segment_[m] < segment_[n] && !EndedBefore(run.nodes[m], 0)) return false;
    }
    return run.nodes[n].submitted <= now_;
  }

  double CostOf(const SimNode& node) const {
    const bool plain = node.on_host || node.resource == SimResource::kNothing;
    return node.Cost() + (plain ? 0 : o_.as_graphs ? o_.graph_latency_us : o_.stream_latency_us);
  }

  // Ends nodes and runs, and begins what needs no place; returns whether anything changed.
  bool EndWhatIsOver() {
    bool changed = false;
    for (NaiveRun& run : runs_) {
      for (int n = 0; n < nodes(); ++n) {
        NaiveNode& node = run.nodes[n];
        if (node.ready == kNever && IsReady(run, n)) {
          node.ready = now_;
          changed = true;
          if (g_.nodes[n].resource == SimResource::kNothing) node.begin = now_, node.left = CostOf(g_.nodes[n]);
        }
        if (IsRunning(node) && node.left == 0) node.end = now_, changed = true;
      }
      if (run.ended == kNever && run.submitted == Parts() && run.submitted_until == kNever &&
          std::all_of(run.nodes.begin(), run.nodes.end(), [](const NaiveNode& n) { return n.end < kNever; })) {
        double known = 0;
        for (int n = 0; n < nodes(); ++n) {
          known = std::max(known, run.nodes[n].end + (g_.nodes[n].on_host ? 0 : o_.completion_us));
        }
        if (known <= now_) run.ended = now_, --in_slots_, --inside_, changed = true;
      }
    }
    for (NaiveThread& thread : threads_) changed = GoOn(thread) || changed;
    return changed;
  }

  bool GoOn(NaiveThread& thread) {
    if (thread.state == NaiveThread::kWantsRoom) {
      if (taken_ == o_.runs) return thread.state = NaiveThread::kIsDone, true;
      if (o_.in_flight > 0 && inside_ >= o_.in_flight) return false;
      thread.until = std::max(now_ + o_.between_us, taken_ * o_.period_us);
      ++taken_, ++inside_;
      thread.state = NaiveThread::kPrepares;
      return true;
    }
    if (thread.state == NaiveThread::kPrepares && thread.until <= now_)
      return thread.state = NaiveThread::kWantsSlot, true;
    if (thread.state != NaiveThread::kWantsSlot || in_slots_ == o_.slots) return false;
    ++in_slots_;
    thread.state = NaiveThread::kLaunches;
    thread.run = static_cast<int>(runs_.size());
    launched_.push_back(now_);
    runs_.emplace_back().nodes.resize(g_.nodes.size());
    Submit(runs_.back());
    return true;
  }

  int Parts() const { return static_cast<int>(parts_.size()); }
  bool GoesOn(const NaiveRun& run) const {
    return run.submitted < Parts() && run.submitted > 0 &&
           parts_[run.submitted].segment == parts_[run.submitted - 1].segment;
  }

  // Whether all of it has been submitted: only then are its events looked at.
  bool IsSubmitted(const NaiveRun& run, int segment) const {
    return run.parts_done == Parts() || parts_[run.parts_done].segment > segment;
  }

  bool StepsEndedBeforeNextPart(const NaiveRun& run) const {
    if (run.submitted == Parts() || run.submitted_until < kNever) return false;
    for (int n = 0; n < nodes(); ++n) {
      if (g_.nodes[n].on_host || segment_[n] != parts_[run.submitted].segment) continue;
      for (const int p : g_.nodes[n].after) {
        if (g_.nodes[p].on_host && !EndedBefore(run.nodes[p], 0)) return false;
      }
    }
    return true;
  }

  bool SegmentMayBeSubmitted(const NaiveRun& run) const {
    if (!StepsEndedBeforeNextPart(run)) return false;
    if (&run == runs_.data()) return true;
    for (const int state : parts_[run.submitted].first_of) {
      for (int p = (&run - 1)->parts_done; p < Parts(); ++p) {
        if (std::count(parts_[p].last_of.begin(), parts_[p].last_of.end(), state) > 0) return false;
      }
    }
    return true;
  }

  // Edges from other devices; of graphs, each of which is a segment, those inside.
  int CrossingsOf(int n) const {
    int crossings = 0;
    for (const int p : g_.nodes[n].after) {
      const bool apart = o_.as_graphs && segment_[p] != segment_[n];
      crossings += !g_.nodes[p].on_host && g_.nodes[p].device != g_.nodes[n].device && !apart;
    }
    return crossings;
  }

  void Submit(NaiveRun& run) {
    const NaivePart& part = parts_[run.submitted];
    double at = now_ + (run.submitted == 0 ? o_.launch_us : 0);
    if (o_.as_graphs && !part.nodes.empty()) at += o_.graph_us;
    for (const int n : part.nodes) {
      if (o_.as_graphs) at += CrossingsOf(n) * o_.crossing_submit_us;
    }
    for (const int n : part.nodes) {
      if (!o_.as_graphs) at += CrossingsOf(n) * o_.crossing_submit_us + o_.node_us;
      run.nodes[n].submitted = at + o_.start_us;
    }
    if (run.submitted == 0) run.launch_ended = at;
    ++run.submitted;
    run.submitted_until = at;
    if (run.submitted == 1 || parts_[run.submitted - 2].segment < part.segment) {
      run.submitting_since = run.segment_since = now_;
    }
    run.submitting_since = std::min(run.submitting_since, now_);
    run.waits_for_run = false;
  }

  void EndSubmissions() {
    for (NaiveRun& run : runs_) {
      if (run.submitted_until <= now_) run.parts_done = run.submitted;
    }
    for (size_t r = 0; r < runs_.size(); ++r) {
      NaiveRun& run = runs_[r];
      if (run.submitted_until > now_) continue;
      run.submitted_until = kNever;
      if (!GoesOn(run) || !SegmentMayBeSubmitted(run)) Post(run, /*all=*/false);
      if (!SegmentMayBeSubmitted(run)) Post(run, /*all=*/true);
      if (SegmentMayBeSubmitted(run)) {
        Submit(run);
        continue;
      }
      run.submitting_since = kNever;
      if (std::exchange(run.by_worker, false)) --busy_[{SimResource::kWorker, -1, -1}];
      for (NaiveThread& thread : threads_) {
        if (thread.state == NaiveThread::kLaunches && thread.run == static_cast<int>(r)) {
          thread.state = NaiveThread::kWantsRoom;
        }
      }
    }
    bool changed = true;
    while (changed) {
      changed = false;
      while (EndWhatIsOver()) changed = true;
      for (NaiveRun& run : runs_) {
        if (run.wants_worker == kNever && SegmentMayBeSubmitted(run)) {
          changed = changed || run.waits_for_run;
          run.waits_for_run ? Submit(run) : void(run.wants_worker = run.submitting_since = now_);
        }
        if (run.wants_worker == kNever && run.submitted_until == kNever) changed = Post(run, /*all=*/true) || changed;
      }
    }
  }

  void NoteWhoWaits() {
    for (NaiveRun& run : runs_) {
      run.waits_for_run = StepsEndedBeforeNextPart(run) && !SegmentMayBeSubmitted(run);
    }
  }

  // Gives host steps that wait for nothing to the workers, unless there is nothing to do for them; if not `all`,
  // without those that wait for host steps which have ended during a submission.
  bool Post(NaiveRun& run, bool all) {
    bool changed = false;
    run.posts = true;
    for (bool again = true; again; changed = changed || again) {
      again = false;
      std::vector<std::pair<Order, int>> steps;
      for (int n = 0; n < nodes(); ++n) {
        if (!g_.nodes[n].on_host || run.nodes[n].ready < kNever || !IsReady(run, n)) continue;
        const Order order = OrderOf(run, n);
        if (all || std::get<0>(order) < 2) steps.emplace_back(order, n);
      }
      std::sort(steps.begin(), steps.end());
      for (const auto& [order, n] : steps) {
        NaiveNode& node = run.nodes[n];
        node.ready = now_;
        node.order = posted_++;
        again = true;
        if (g_.nodes[n].resource != SimResource::kNothing) continue;
        node.begin = now_, node.left = CostOf(g_.nodes[n]);
        if (node.left == 0) node.end = now_;
      }
    }
    run.posts = false;
    return changed;
  }

  // 0: it waited for host steps, until the run began to submit; 1: for events, of which the last in the order of lanes
  // and nodes counts; 2: for host steps, which have ended since.
  Order OrderOf(const NaiveRun& run, int n) const {
    const double since = std::min(run.submitting_since, now_);
    double step_ended = -1;
    std::pair<int, int> event{-2, -1};
    int graph = -1;
    for (const int p : g_.nodes[n].after) graph = g_.nodes[p].on_host ? graph : std::max(graph, segment_[p]);
    for (const int p : g_.nodes[n].after) {
      double ended = run.nodes[p].end;
      if (g_.nodes[p].on_host) {
        step_ended = std::max(step_ended, ended);
        continue;
      }
      for (int m = 0; o_.as_graphs && m < nodes(); ++m) {
        if (!g_.nodes[m].on_host && segment_[m] == graph) ended = std::max(ended, run.nodes[m].end);
      }
      const bool is_open = run.submitting_since < kNever && segment_[p] == parts_[run.submitted - 1].segment;
      if (ended + o_.completion_us < (is_open ? std::min(since, run.segment_since) : since)) continue;
      event = std::max(event, std::pair(o_.as_graphs ? 0 : g_.nodes[p].lane, p));
    }
    if (step_ended > since) return {2, step_ended, {}};
    return event.second >= 0 ? Order{1, 0, event} : Order{0, step_ended, {}};
  }

  void BeginWhatCan() {
    busy_.clear();
    for (NaiveRun& run : runs_) {
      busy_[{SimResource::kWorker, -1, -1}] += run.by_worker;
      for (int n = 0; n < nodes(); ++n) busy_[PlaceOf(g_.nodes[n])] += IsRunning(run.nodes[n]);
    }
    std::vector<NaiveRun*> wanting;
    for (NaiveRun& run : runs_) {
      if (run.wants_worker < kNever) wanting.push_back(&run);
    }
    std::sort(wanting.begin(), wanting.end(), [](const NaiveRun* x, const NaiveRun* y) {
      return std::pair(x->wants_worker, x) < std::pair(y->wants_worker, y);
    });
    for (NaiveRun* run : wanting) {
      int& busy = busy_[{SimResource::kWorker, -1, -1}];
      if (busy == o_.workers) break;
      ++busy;
      run->wants_worker = kNever;
      run->by_worker = true;
      Submit(*run);
    }
    std::vector<std::tuple<double, size_t, int, int>> ready;
    for (size_t r = 0; r < runs_.size(); ++r) {
      for (int n = 0; n < nodes(); ++n) {
        const NaiveNode& node = runs_[r].nodes[n];
        if (node.ready < kNever && node.begin == kNever)
          ready.emplace_back(node.ready, r, g_.nodes[n].on_host ? node.order : n, n);
      }
    }
    std::sort(ready.begin(), ready.end());
    for (const auto& [since, r, order, n] : ready) {
      int& busy = busy_[PlaceOf(g_.nodes[n])];
      if (busy >= PlacesOf(g_.nodes[n])) continue;
      ++busy;
      runs_[r].nodes[n].begin = now_;
      runs_[r].nodes[n].left = CostOf(g_.nodes[n]);
    }
  }

  double PaceOf(const SimNode& node) const {
    const bool up = node.resource == SimResource::kUpload;
    if (!up && node.resource != SimResource::kDownload) return 1;
    const SimDevice& device = g_.devices[node.device];
    const auto other = busy_.find(Place(up ? SimResource::kDownload : SimResource::kUpload, node.device, -1));
    const bool both = other != busy_.end() && other->second > 0;
    return !both ? 1 : up ? device.upload_slowdown : device.download_slowdown;
  }

  // Goes on to the next time at which anything can change.
  bool Advance() {
    double next = kNever;
    const auto consider = [&](double t) { next = t > now_ ? std::min(next, t) : next; };
    bool again = false;
    for (const NaiveRun& run : runs_) {
      consider(run.submitted_until);
      again = again || run.submitted_until <= now_;  // a part without nodes
      for (int n = 0; n < nodes(); ++n) {
        const NaiveNode& node = run.nodes[n];
        consider(node.submitted);
        consider(node.end + o_.crossing_us);
        consider(node.end + o_.completion_us);
        if (IsRunning(node)) consider(now_ + node.left * PaceOf(g_.nodes[n]));
        again = again || (IsRunning(node) && node.left == 0);
      }
    }
    for (const NaiveThread& thread : threads_) {
      if (thread.state == NaiveThread::kPrepares) consider(thread.until);
    }
    if (again) return true;
    if (next == kNever) return false;
    for (NaiveRun& run : runs_) {
      for (int n = 0; n < nodes(); ++n) {
        NaiveNode& node = run.nodes[n];
        if (IsRunning(node)) node.left -= (next - now_) / PaceOf(g_.nodes[n]);
      }
    }
    now_ = next;
    return true;
  }

  const SimGraph& g_;
  const SimOptions& o_;
  std::vector<int> segment_;  // of each node
  int segments_ = 1;
  std::vector<NaivePart> parts_;
  double now_ = 0;
  std::vector<NaiveRun> runs_;  // those that have been launched
  std::vector<double> launched_;
  std::vector<NaiveThread> threads_;
  std::map<Place, int> busy_;
  int taken_ = 0, inside_ = 0, in_slots_ = 0;
  int posted_ = 0;  // host steps
};

}  // namespace

NaiveResult SimulateNaively(const SimGraph& graph, const SimOptions& options) {
  return NaiveSimulation(graph, options).Run();
}

}  // namespace penstock::graph
