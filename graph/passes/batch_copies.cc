// BatchCopies: small copies that are ready together become batches, which cost little more than one of their copies.
//
//   between host and device   one submission: the driver works on all concurrently
//   by host threads           one task of a worker
//
// A copy moves up to the first one of its batch if all its predecessors come before that, and are expected to be done
// by about the same time. A batch starts when all its copies may, and ends when all have ended; so it has a limit of
// bytes, and copies that touch a State, for which other runs wait, stay separate.
//
// Why (H200, 256 copies of 16 KiB between scattered pinned memory and a device): one by one 725 us up and 519 us down,
// as a batch 96 and 91. From five copies of up to 256 KiB on, a batch takes less time.
#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

constexpr int64_t kBytes = int64_t{256} << 10;  // only copies of fewer bytes
constexpr int64_t kLeastBytes = int64_t{1} << 10;  // the least that a copy counts as
constexpr int64_t kBatchBytes = int64_t{4} << 20, kTaskBytes = int64_t{256} << 10;
constexpr int32_t kTaskFrom = 2;  // the fewest copies in a worker's task
constexpr double kTogether = 20;  // microseconds
constexpr size_t kOpen = 16;  // batches that may still grow

class Gatherer {
 public:
  explicit Gatherer(Draft& draft) : d_(draft), batch_of_(draft.steps.size(), -1) {}

  void Run() {
    int32_t small = 0;
    for (int32_t v = 0; v < d_.step_count(); ++v) small += IsSmall(v);
    if (small < kTaskFrom) return;
    FindStarts();
    int32_t segment = -1;
    for (int32_t v = 0; v < d_.step_count(); ++v) {
      const int32_t own = d_.segment[v];
      if (own >= 0 && own != segment) open_.clear();  // nothing moves out of its segment
      if (own >= 0) segment = own;
      if (IsSmall(v)) Add(v);
    }
    DropShort();
    if (std::any_of(batch_of_.begin(), batch_of_.end(), [](int32_t b) { return b >= 0; })) MoveTogether();
  }

 private:
  struct Batch {
    int32_t first, segment;
    PlanKind kind;
    int32_t device;
    int64_t bytes = 0;
    int32_t copies = 0;
  };

  const Step& step(int32_t v) const { return d_.steps[v]; }

  // Estimates the earliest start of each step from the costs.
  void FindStarts() {
    start_.resize(d_.steps.size());
    for (size_t v = 0; v < start_.size(); ++v) {
      for (const int32_t p : d_.edges[static_cast<int32_t>(v)]) {
        start_[v] = std::max(start_[v], start_[p] + d_.cost[p]);
      }
    }
  }

  bool IsSmall(int32_t v) const {
    const Step& s = step(v);
    if (s.src < 0) return false;
    const Instance &src = d_.instances[s.src], &dst = d_.instances[s.dst];
    const bool crosses = s.kind == PlanKind::kUpload || s.kind == PlanKind::kDownload;
    if (!crosses && !(s.on_host() && src.device < 0 && dst.device < 0)) return false;
    return !IsLaunch(src) && !IsLaunch(dst) && CopyBytes(d_, s) < kBytes;
  }

  void Add(int32_t v) {
    const Step& s = step(v);
    const int64_t bytes = std::max(CopyBytes(d_, s), kLeastBytes), most = s.on_host() ? kTaskBytes : kBatchBytes;
    const auto fits = [&](int32_t b) {
      const Batch& batch = batches_[b];
      const std::span<const int32_t> preds = d_.edges[v];
      return batch.kind == s.kind && batch.device == s.device && batch.segment == d_.segment[v] &&
             batch.bytes + bytes <= most && (preds.empty() || preds.back() < batch.first) &&
             std::abs(start_[v] - start_[batch.first]) <= kTogether;
    };
    const auto found = std::find_if(open_.begin(), open_.end(), fits);
    const int32_t b = found != open_.end() ? *found : Open(v);
    Batch& batch = batches_[b];
    batch.bytes += bytes;
    ++batch.copies;
    batch_of_[v] = b;
  }

  int32_t Open(int32_t v) {
    if (open_.size() == kOpen) open_.erase(open_.begin());
    open_.push_back(static_cast<int32_t>(batches_.size()));
    batches_.push_back({v, d_.segment[v], step(v).kind, step(v).device});
    return open_.back();
  }

  void DropShort() {
    for (int32_t& b : batch_of_) {
      if (b < 0) continue;
      const Batch& batch = batches_[b];
      if (batch.copies < (IsHostKind(batch.kind) ? kTaskFrom : std::max(2, d_.options.batch_from))) b = -1;
    }
  }

  void MoveTogether() {
    std::vector<std::vector<int32_t>> members(batches_.size());
    for (int32_t v = 0; v < d_.step_count(); ++v) {
      if (const int32_t b = batch_of_[v]; b >= 0) members[b].push_back(v);
    }
    d_.order.clear();
    std::vector<int32_t> batch_at;  // for each place in the new order: the first place of its batch
    for (int32_t v = 0; v < d_.step_count(); ++v) {
      const int32_t b = batch_of_[v];
      const auto first = static_cast<int32_t>(d_.order.size());
      if (b < 0) {
        d_.order.push_back(v);
        batch_at.push_back(-1);
      } else if (batches_[b].first == v) {
        d_.order.insert(d_.order.end(), members[b].begin(), members[b].end());
        batch_at.resize(d_.order.size(), first);
      }
    }
    Renumber(d_);
    for (size_t v = 0; v < batch_at.size(); ++v) {
      d_.steps[v].batch = batch_at[v];
      if (batch_at[v] >= 0) ++d_.steps[batch_at[v]].batch_steps;
    }
  }

  Draft& d_;
  std::vector<double> start_;  // for each step
  std::vector<Batch> batches_;
  std::vector<int32_t> batch_of_;  // for each step; -1: none
  std::vector<int32_t> open_;  // batches, oldest first
};

}  // namespace

void BatchCopies(Draft& draft) {
  if (draft.options.batch_from < INT32_MAX) Gatherer(draft).Run();
}

}  // namespace penstock::graph
