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
  explicit Clocks(Draft& draft) : d_(draft), lanes_(static_cast<int32_t>(draft.lanes.size())) {
    const auto hosts = static_cast<int32_t>(
        std::count_if(d_.steps.begin(), d_.steps.end(), [](const Step& s) { return s.on_host(); }));
    d_.columns = lanes_ + std::min(hosts, kChains);
    const auto count = static_cast<size_t>(d_.step_count());
    d_.clock.assign(count * static_cast<size_t>(d_.columns), 0);
    d_.tick.resize(count);
    tail_.assign(static_cast<size_t>(d_.columns), -1);
    base_.assign(static_cast<size_t>(d_.columns), 0);
    used_ = lanes_;
    d_.waits.Reserve(count, d_.edges.items());
    d_.host_waits.Reserve(count, 0);
  }

  void Run() {
    int32_t open_segment = -1;
    for (int32_t v = 0; v < d_.step_count(); ++v) {
      if (IsHost(v)) {
        AddHost(v);
      } else {
        if (d_.segment[v] != open_segment) OpenSegment(v);
        open_segment = d_.segment[v];
        AddStream(v);
      }
      CloseReversed(d_.waits);
      CloseReversed(d_.host_waits);
    }
  }

 private:
  int32_t* clock(int32_t v) { return d_.clock.data() + static_cast<size_t>(v) * static_cast<size_t>(d_.columns); }
  void Join(int32_t* __restrict into, const int32_t* __restrict from) const {
    for (int32_t c = 0; c < d_.columns; ++c) into[c] = std::max(into[c], from[c]);
  }
  bool Covers(const int32_t* clock, int32_t step) const { return d_.tick[step].DoneIn(clock); }
  bool IsHost(int32_t v) const { return d_.segment[v] < 0; }
  // Waits are found from latest to earliest.
  static void CloseReversed(CsrRows& rows) {
    std::reverse(rows.open().begin(), rows.open().end());
    rows.Close();
  }

  // Adds the host steps that the segment beginning with step `first` waits for.
  void OpenSegment(int32_t first) {
    std::vector<int32_t>& hosts = scratch_;
    hosts.clear();
    const int32_t segment = d_.segment[first];
    for (int32_t v = first; v < d_.step_count() && d_.segment[v] == segment; ++v) {
      for (const int32_t p : d_.edges[v]) {
        if (IsHost(p)) hosts.push_back(p);
      }
    }
    std::sort(hosts.begin(), hosts.end(), std::greater<>());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    for (const int32_t h : hosts) {
      if (Covers(base_.data(), h)) continue;
      d_.segment_hosts.Add(h);
      Join(base_.data(), clock(h));
    }
    std::sort(d_.segment_hosts.open().begin(), d_.segment_hosts.open().end());
    d_.segment_hosts.Close();
  }

  // The step to wait for instead of `v`: the last of a batch, after which its event is recorded.
  int32_t Recorder(int32_t v) const { return IsHost(v) ? v : d_.LastOfBatch(v); }

  // The predecessors of `v`; for the first step of a batch, those of the whole batch. Ascending.
  std::span<const int32_t> AllPreds(int32_t v) {
    const int32_t first = d_.FirstOfBatch(v), last = d_.LastOfBatch(v);
    if (first == last) return d_.edges[v];
    scratch_.clear();
    for (int32_t s = first; v == first && s <= last; ++s) {
      scratch_.insert(scratch_.end(), d_.edges[s].begin(), d_.edges[s].end());
    }
    std::sort(scratch_.begin(), scratch_.end());
    scratch_.erase(std::unique(scratch_.begin(), scratch_.end()), scratch_.end());
    return scratch_;
  }

  void AddStream(int32_t v) {
    const int32_t lane = d_.lane[v];
    int32_t* mine = clock(v);
    const int32_t tail = tail_[lane];
    const int32_t* before = tail >= 0 ? clock(tail) : base_.data();
    std::copy_n(base_.data(), d_.columns, mine);
    Join(mine, before);
    const std::span<const int32_t> preds = AllPreds(v);
    for (size_t i = preds.size(); i > 0; --i) {
      const int32_t p = Recorder(preds[i - 1]);
      if (Covers(mine, p) || IsHost(p)) continue;  // the segment waits for host steps
      d_.waits.Add(p);
      Join(mine, clock(p));
    }
    Stand(v, lane, tail);
  }

  void AddHost(int32_t v) {
    int32_t* mine = clock(v);
    if (d_.FirstOfBatch(v) != v) Join(mine, clock(v - 1));  // a worker does them one after another
    const std::span<const int32_t> preds = AllPreds(v);
    for (size_t i = preds.size(); i > 0; --i) {
      const int32_t p = Recorder(preds[i - 1]);
      if (Covers(mine, p)) continue;
      (IsHost(p) ? d_.host_waits : d_.waits).Add(p);
      Join(mine, clock(p));
    }
    for (int32_t c = lanes_; c < used_; ++c) {
      if (Covers(mine, tail_[c])) return Stand(v, c, tail_[c]);
    }
    if (used_ < d_.columns) Stand(v, used_++, -1);
  }

  void Stand(int32_t v, int32_t column, int32_t before) {
    const int32_t position = before < 0 ? 1 : d_.tick[before].position + 1;
    d_.tick[v] = {column, position};
    clock(v)[column] = position;
    tail_[column] = v;
  }

  Draft& d_;
  const int32_t lanes_;
  int32_t used_ = 0;  // columns
  std::vector<int32_t> tail_;  // for each column: its last step
  std::vector<int32_t> base_;  // what holds for every step of the open segment
  std::vector<int32_t> scratch_;
};

}  // namespace

void ReduceWaits(Draft& draft) {
  Clocks(draft).Run();
  draft.preds = TransitiveReduction(draft.edges);
  const size_t all = draft.edges.items(), waits = draft.waits.items();
  const size_t hosts = draft.host_waits.items() + draft.segment_hosts.items();
  draft.notes.push_back(std::to_string(all) + " edges: " + std::to_string(waits) + " waits for events, " +
                        std::to_string(hosts) + " for host steps; lane order or other waits cover the rest");
}

}  // namespace penstock::graph
