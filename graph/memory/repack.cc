#include "graph/memory/repack.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "graph/common/csr_rows.h"

namespace penstock::graph {
namespace {

constexpr int64_t kGood = 16;  // good enough: at most 1/16 of the minimum is left to gain
constexpr int kRounds = 8;  // rounds per order
constexpr size_t kPairsEach = 64, kPairs = size_t{1} << 18;  // pairs examined: this many per tenant, plus this many

class Search {
 public:
  Search(const Reduced& reduced, const Lifetimes& lives, const std::vector<Tenant>& tenants)
      : reduced_(reduced), lives_(lives), tenants_(tenants), offsets_(tenants.size()), placed_(tenants.size()) {}

  // Finds the tenants that cannot share bytes; false if that takes too long.
  bool FindConflicts() {
    const bool in_order = reduced_.columns == 1;  // once one is done, so it is for all that follow
    if (!in_order && tenants_.size() * tenants_.size() / 2 > kPairs) return false;
    size_t budget = kPairsEach * tenants_.size() + kPairs;
    std::vector<int32_t> open, scratch;
    std::vector<Edge> pairs;
    for (int32_t t = 0; t < count(); ++t) {
      if (budget < open.size()) return false;
      budget -= open.size();
      const InstanceId first = at(t).first;
      const int32_t* done = lives_.DoneBefore(first, scratch);
      size_t kept = 0;
      for (const int32_t other : open) {
        const bool free = IsDone(at(other).last, lives_.first(first), done);
        if (!free) pairs.push_back({t, other}), pairs.push_back({other, t});
        if (!free || !in_order) open[kept++] = other;
      }
      open.resize(kept);
      open.push_back(t);
    }
    conflicts_ = MakeEdges(count(), pairs);
    return true;
  }

  // In order of falling weight.
  template <class Weight>
  std::vector<int32_t> OrderBy(Weight weight) const {
    std::vector<std::pair<int64_t, int32_t>> weights;
    for (int32_t t = 0; t < count(); ++t) weights.push_back({-weight(t), t});
    std::sort(weights.begin(), weights.end());
    std::vector<int32_t> order;
    for (const auto& [weight_of, t] : weights) order.push_back(t);
    return order;
  }

  // Places the tenants one after another; returns the bytes they take.
  int64_t Place(const std::vector<int32_t>& order) {
    std::fill(placed_.begin(), placed_.end(), 0);
    int64_t top = 0;
    for (const int32_t t : order) top = std::max(top, PlaceOne(t) + at(t).bytes);
    return top;
  }

  // Moves those that now end beyond `bytes` to the front; otherwise keeps the order.
  void Prefer(int64_t bytes, std::vector<int32_t>& order) const {
    const auto ends_beyond = [&](int32_t t) { return offsets_[t] + at(t).bytes > bytes; };
    std::vector<int32_t> preferred;
    preferred.reserve(order.size());
    std::copy_if(order.begin(), order.end(), std::back_inserter(preferred), ends_beyond);
    std::remove_copy_if(order.begin(), order.end(), std::back_inserter(preferred), ends_beyond);
    order.swap(preferred);
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  const Tenant& at(int32_t tenant) const { return tenants_[tenant]; }
  int64_t steps(int32_t t) const { return lives_.last(at(t).last) - lives_.first(at(t).first) + 1; }

 private:
  int32_t count() const { return static_cast<int32_t>(tenants_.size()); }

  bool IsDone(InstanceId last, StepId step, const int32_t* done) const {
    return lives_.last(last) < step && !lives_.never_ends(last) && lives_.end(last).DoneIn(done) &&
           lives_.AreDone(lives_.others(last), done);
  }

  // Places a tenant in the smallest hole that fits.
  int64_t PlaceOne(int32_t tenant) {
    taken_.clear();
    for (const int32_t other : conflicts_[tenant]) {
      if (placed_[other] == 0) continue;
      const int64_t offset = offsets_[other];
      taken_.push_back({offset, offset + at(other).bytes});
    }
    std::sort(taken_.begin(), taken_.end());
    int64_t end = 0, best = -1, smallest = INT64_MAX;
    for (const auto& [from, to] : taken_) {
      const int64_t hole = from - end;
      if (hole >= at(tenant).bytes && hole < smallest) best = end, smallest = hole;
      end = std::max(end, to);
    }
    placed_[tenant] = 1;
    return offsets_[tenant] = best < 0 ? end : best;
  }

  const Reduced& reduced_;
  const Lifetimes& lives_;
  const std::vector<Tenant>& tenants_;
  CsrRows conflicts_;
  std::vector<int64_t> offsets_;  // for each tenant
  std::vector<uint8_t> placed_;
  std::vector<std::pair<int64_t, int64_t>> taken_;  // from, to
};

}  // namespace

int64_t Repack(const Reduced& reduced, const Lifetimes& lives, int64_t least, int64_t bytes,
               std::vector<Tenant>& tenants) {
  const auto good_enough = [&] { return bytes - least <= least / kGood; };
  const auto same_size = [&](const Tenant& t) { return t.bytes == tenants[0].bytes; };
  if (good_enough() || std::all_of(tenants.begin(), tenants.end(), same_size)) return bytes;
  Search search(reduced, lives, tenants);
  if (!search.FindConflicts()) return bytes;
  std::vector<int64_t> best;
  const auto attempt = [&](std::vector<int32_t> order) {
    for (int round = 0; round < kRounds && !good_enough(); ++round) {
      if (const int64_t found = search.Place(order); found < bytes) {
        bytes = found;
        best = search.offsets();
      }
      search.Prefer(least, order);
    }
  };
  attempt(search.OrderBy([&](int32_t t) { return search.at(t).bytes; }));
  attempt(search.OrderBy([&](int32_t t) { return search.steps(t); }));
  attempt(search.OrderBy([&](int32_t t) { return search.at(t).bytes / 256 * search.steps(t); }));
  for (size_t t = 0; t < best.size(); ++t) tenants[t].offset = best[t];
  return bytes;
}

}  // namespace penstock::graph
