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

using BatchId = Id<struct BatchTag>;

class Gatherer {
 public:
  Gatherer(const Records& records, Ordered& ordered)
      : records_(records), ordered_(ordered), batch_of_(ordered.steps.size()) {}

  void Run() {
    int32_t small = 0;
    for (const StepId v : ordered_.steps.ids()) small += IsSmall(v);
    if (small < kTaskFrom) return;
    FindStarts();
    SegmentId segment;
    for (const StepId v : ordered_.steps.ids()) {
      const SegmentId own = ordered_.segment[v];
      if (own >= 0 && own != segment) open_.clear();  // nothing moves out of its segment
      if (own >= 0) segment = own;
      if (IsSmall(v)) Add(v);
    }
    DropShort();
    if (std::any_of(batch_of_.begin(), batch_of_.end(), [](BatchId b) { return b >= 0; })) MoveTogether();
  }

 private:
  struct Batch {
    StepId first;
    SegmentId segment;
    PlanKind kind;
    DeviceId device;
    int64_t bytes = 0;
    int32_t copies = 0;
  };

  const Step& step(StepId v) const { return ordered_.steps[v]; }

  // Estimates the earliest start of each step from the costs.
  void FindStarts() {
    start_.resize(ordered_.steps.size());
    for (const StepId v : start_.ids()) {
      for (const StepId p : ordered_.edges[v]) {
        start_[v] = std::max(start_[v], start_[p] + ordered_.cost[p]);
      }
    }
  }

  bool IsSmall(StepId v) const {
    const Step& s = step(v);
    if (s.src < 0) return false;
    const Instance &src = ordered_.instances[s.src], &dst = ordered_.instances[s.dst];
    const bool crosses = s.kind == PlanKind::kUpload || s.kind == PlanKind::kDownload;
    if (!crosses && !(s.on_host() && src.device < 0 && dst.device < 0)) return false;
    return !IsLaunch(src) && !IsLaunch(dst) && CopyBytes(records_, ordered_, s) < kBytes;
  }

  void Add(StepId v) {
    const Step& s = step(v);
    const int64_t bytes = std::max(CopyBytes(records_, ordered_, s), kLeastBytes),
                  most = s.on_host() ? kTaskBytes : kBatchBytes;
    const auto fits = [&](BatchId b) {
      const Batch& batch = batches_[b];
      const std::span<const int32_t> preds = ordered_.edges[v];
      return batch.kind == s.kind && batch.device == s.device && batch.segment == ordered_.segment[v] &&
             batch.bytes + bytes <= most && (preds.empty() || preds.back() < batch.first) &&
             std::abs(start_[v] - start_[batch.first]) <= kTogether;
    };
    const auto found = std::find_if(open_.begin(), open_.end(), fits);
    const BatchId b = found != open_.end() ? *found : Open(v);
    Batch& batch = batches_[b];
    batch.bytes += bytes;
    ++batch.copies;
    batch_of_[v] = b;
  }

  BatchId Open(StepId v) {
    if (open_.size() == kOpen) open_.erase(open_.begin());
    open_.push_back(batches_.next());
    batches_.push_back({v, ordered_.segment[v], step(v).kind, step(v).device});
    return open_.back();
  }

  void DropShort() {
    for (BatchId& b : batch_of_) {
      if (b < 0) continue;
      const Batch& batch = batches_[b];
      if (batch.copies < (IsHostKind(batch.kind) ? kTaskFrom : std::max(2, records_.options.batch_from))) b = BatchId();
    }
  }

  void MoveTogether() {
    Table<BatchId, std::vector<StepId>> members(batches_.size());
    for (const StepId v : ordered_.steps.ids()) {
      if (const BatchId b = batch_of_[v]; b >= 0) members[b].push_back(v);
    }
    ordered_.order.clear();
    Table<StepId, StepId> batch_at;  // for each place in the new order: the first place of its batch
    for (const StepId v : ordered_.steps.ids()) {
      const BatchId b = batch_of_[v];
      const StepId first = batch_at.next();
      if (b < 0) {
        ordered_.order.push_back(v);
        batch_at.push_back(StepId());
      } else if (batches_[b].first == v) {
        ordered_.order.insert(ordered_.order.end(), members[b].begin(), members[b].end());
        batch_at.resize(ordered_.order.size(), first);
      }
    }
    Renumber(ordered_);
    for (const StepId v : batch_at.ids()) {
      ordered_.steps[v].batch = batch_at[v];
      if (batch_at[v] >= 0) ++ordered_.steps[batch_at[v]].batch_steps;
    }
  }

  const Records& records_;
  Ordered& ordered_;
  Table<StepId, double> start_;  // the earliest start
  Table<BatchId, Batch> batches_;
  Table<StepId, BatchId> batch_of_;
  std::vector<BatchId> open_;  // batches, oldest first
};

}  // namespace

void BatchCopies(const Records& records, Ordered& ordered) {
  if (records.options.batch_from < INT32_MAX) Gatherer(records, ordered).Run();
}

}  // namespace penstock::graph
