// ReduceWaits, for stream segments: which edges need an event or a host wait, and which order already holds.
//
// The clock of step v has an entry per lane: how many of the lane's first steps are done before v ends. It contains
// only order that really holds:
//   - a lane is a FIFO, and what its steps waited for holds for all later ones;
//   - segments are submitted in order, each after its host steps: what these waited for holds for the steps of this
//     segment and all later ones (`base`);
//   - a wait for an event adds the clock of the recorded step, a wait for a host step adds that of the host step.
// The first step of a batch waits for the predecessors of all its steps. A wait for one of them waits for the last if
// they are on a stream; a worker ends them one by one.
//
// Going through the predecessors from latest to earliest, a wait is needed exactly if the clock does not cover the
// predecessor yet. No earlier step can cover a later one, so none of the remaining waits is redundant. (Vector clocks:
// Fidge 1988, Mattern 1989; lanes are the processes.)
//
// Host steps have no lanes. Each takes the column of a chain of host steps that its clock covers; beyond kChains
// columns a step has none, and waits for it are then never considered redundant.
#include <algorithm>
#include <functional>

#include "graph/passes/passes.h"
#include "graph/plan/reduce_graph.h"

namespace penstock::graph {
namespace {

constexpr int32_t kChains = 32;

class Clocks {
 public:
  explicit Clocks(const Ordered& ordered) : ordered_(ordered), lanes_(ordered.lanes.count()) {
    const auto hosts = static_cast<int32_t>(
        std::count_if(ordered_.steps.begin(), ordered_.steps.end(), [](const Step& s) { return s.on_host(); }));
    reduced_.columns = lanes_ + std::min(hosts, kChains);
    const size_t count = ordered_.steps.size();
    reduced_.clock.assign(count * static_cast<size_t>(reduced_.columns), 0);
    reduced_.tick.resize(count);
    tail_.assign(reduced_.columns, StepId());
    base_.assign(reduced_.columns, 0);
    used_ = lanes_;
    reduced_.waits.Reserve(count, ordered_.edges.items());
    reduced_.host_waits.Reserve(count, 0);
  }

  Reduced Run() {
    SegmentId open_segment;
    for (const StepId v : ordered_.steps.ids()) {
      if (IsHost(v)) {
        AddHost(v);
      } else {
        if (ordered_.segment[v] != open_segment) OpenSegment(v);
        open_segment = ordered_.segment[v];
        AddStream(v);
      }
      CloseReversed(reduced_.waits);
      CloseReversed(reduced_.host_waits);
    }
    return std::move(reduced_);
  }

 private:
  int32_t* clock(StepId v) {
    return reduced_.clock.data() + static_cast<size_t>(v) * static_cast<size_t>(reduced_.columns);
  }
  void Join(int32_t* __restrict into, const int32_t* __restrict from) const {
    for (int32_t c = 0; c < reduced_.columns; ++c) into[c] = std::max(into[c], from[c]);
  }
  bool Covers(const int32_t* clock, StepId step) const { return reduced_.tick[step].DoneIn(clock); }
  bool IsHost(StepId v) const { return ordered_.segment[v] < 0; }
  // Waits are found from latest to earliest.
  static void CloseReversed(CsrRows& rows) {
    std::reverse(rows.open().begin(), rows.open().end());
    rows.Close();
  }

  // Adds the host steps that the segment beginning with step `first` waits for.
  void OpenSegment(StepId first) {
    std::vector<int32_t>& hosts = scratch_;
    hosts.clear();
    const SegmentId segment = ordered_.segment[first];
    for (StepId v = first; v < ordered_.steps.count() && ordered_.segment[v] == segment; ++v) {
      for (const StepId p : ordered_.edges[v]) {
        if (IsHost(p)) hosts.push_back(p);
      }
    }
    std::sort(hosts.begin(), hosts.end(), std::greater<>());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    for (const StepId h : hosts) {
      if (Covers(base_.data(), h)) continue;
      reduced_.segment_hosts.Add(h);
      Join(base_.data(), clock(h));
    }
    std::sort(reduced_.segment_hosts.open().begin(), reduced_.segment_hosts.open().end());
    reduced_.segment_hosts.Close();
  }

  // The step to wait for instead of `v`: the last of a batch, after which its event is recorded.
  StepId Recorder(StepId v) const { return IsHost(v) ? v : ordered_.LastOfBatch(v); }

  // The predecessors of `v`; for the first step of a batch, those of the whole batch. Ascending.
  std::span<const int32_t> AllPreds(StepId v) {
    const StepId first = ordered_.FirstOfBatch(v), last = ordered_.LastOfBatch(v);
    if (first == last) return ordered_.edges[v];
    scratch_.clear();
    for (StepId s = first; v == first && s <= last; ++s) {
      scratch_.insert(scratch_.end(), ordered_.edges[s].begin(), ordered_.edges[s].end());
    }
    std::sort(scratch_.begin(), scratch_.end());
    scratch_.erase(std::unique(scratch_.begin(), scratch_.end()), scratch_.end());
    return scratch_;
  }

  void AddStream(StepId v) {
    const LaneId lane = ordered_.lane[v];
    int32_t* mine = clock(v);
    const StepId tail = tail_[lane];
    const int32_t* before = tail >= 0 ? clock(tail) : base_.data();
    std::copy_n(base_.data(), reduced_.columns, mine);
    Join(mine, before);
    const std::span<const int32_t> preds = AllPreds(v);
    for (size_t i = preds.size(); i > 0; --i) {
      const StepId p = Recorder(preds[i - 1]);
      if (Covers(mine, p) || IsHost(p)) continue;  // the segment waits for host steps
      reduced_.waits.Add(p);
      Join(mine, clock(p));
    }
    Append(v, lane, tail);
  }

  void AddHost(StepId v) {
    int32_t* mine = clock(v);
    if (ordered_.FirstOfBatch(v) != v) Join(mine, clock(v - 1));  // a worker does them one after another
    const std::span<const int32_t> preds = AllPreds(v);
    for (size_t i = preds.size(); i > 0; --i) {
      const StepId p = Recorder(preds[i - 1]);
      if (Covers(mine, p)) continue;
      (IsHost(p) ? reduced_.host_waits : reduced_.waits).Add(p);
      Join(mine, clock(p));
    }
    for (int32_t c = lanes_; c < used_; ++c) {
      if (Covers(mine, tail_[c])) return Append(v, c, tail_[c]);
    }
    if (used_ < reduced_.columns) Append(v, used_++, -1);
  }

  void Append(StepId v, int32_t column, StepId before) {
    const int32_t position = before < 0 ? 1 : reduced_.tick[before].position + 1;
    reduced_.tick[v] = {column, position};
    clock(v)[column] = position;
    tail_[column] = v;
  }

  const Ordered& ordered_;
  Reduced reduced_;
  const int32_t lanes_;
  int32_t used_ = 0;  // columns
  std::vector<StepId> tail_;  // for each column: its last step
  std::vector<int32_t> base_;  // what holds for every step of the open segment
  std::vector<int32_t> scratch_;
};

}  // namespace

Reduced ReduceWaits(const Ordered& ordered, Findings& findings) {
  Reduced reduced = Clocks(ordered).Run();
  reduced.preds = TransitiveReduction(ordered.edges);
  const size_t all = ordered.edges.items(), waits = reduced.waits.items();
  const size_t hosts = reduced.host_waits.items() + reduced.segment_hosts.items();
  findings.remarks.push_back(std::to_string(all) + " edges: " + std::to_string(waits) + " waits for events, " +
                             std::to_string(hosts) + " for host steps; lane order or other waits cover the rest");
  return reduced;
}

}  // namespace penstock::graph
