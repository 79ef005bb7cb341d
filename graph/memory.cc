// Memory: offsets of instances in the arenas of a slot, by first fit at multiples of 256 bytes.
//
// The packer sweeps over the steps in submission order. An instance is placed at its first use, in the lowest free
// bytes that are large enough and whose last tenants are all known (by the lane clocks) to be done with before its
// uses; else at the top. Its bytes are free again after its last use. So bytes are shared only where order holds
// anyway: nothing waits because of memory.
#include <algorithm>
#include <iterator>

#include "absl/container/btree_map.h"
#include "graph/budget.h"
#include "graph/lifetimes.h"
#include "graph/passes.h"

namespace penstock::graph {
namespace {

constexpr int64_t kAlign = 256;
constexpr int64_t Aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
constexpr int kMaxTried = 64;  // free regions looked at for an instance: bounds the time, not what is right

// One arena. Regions that were used and are free are keyed by offset; `tenant` is the last instance in them, whose uses
// come after those of all tenants before it.
class Packer {
 public:
  Packer(const Draft& draft, const Lifetimes& lives) : draft_(draft), lives_(lives) {}

  int64_t bytes() const { return top_; }
  int32_t placed() const { return placed_; }
  int32_t reused() const { return reused_; }

  // False when the arena would not fit in kMaxBytes.
  bool Place(int32_t instance, int64_t bytes, int64_t* offset) {
    const int32_t* done = lives_.DoneBefore(instance, scratch_);
    int tried = 0;
    ++placed_;
    const auto end = free_.end();
    for (auto it = free_.begin(); it != end && tried < kMaxTried; ++it, ++tried) {
      if (!IsEndDone(it->second, done) || RunFrom(it, done, bytes) < bytes) continue;
      *offset = it->first;
      Take(it, bytes);
      ++reused_;
      return true;
    }
    if (bytes > kMaxBytes - top_) return false;
    *offset = top_;
    top_ += bytes;
    return true;
  }

  // What has an end without a column is never known to be done with.
  void Free(int32_t instance, int64_t offset, int64_t bytes) {
    const std::span<const int32_t> ends = lives_.ends(instance);
    const auto has_none = [&](int32_t end) { return draft_.column[static_cast<size_t>(end)] < 0; };
    if (std::any_of(ends.begin(), ends.end(), has_none)) return;
    const auto end = static_cast<size_t>(ends.front());
    free_.emplace(offset, Region{bytes, instance, draft_.column[end], draft_.position[end]});
  }

 private:
  // One of the tenant's ends stands in the region, so that the usual no is found without looking elsewhere.
  struct Region {
    int64_t bytes;
    int32_t tenant;
    int32_t column, position;
  };
  using Regions = absl::btree_map<int64_t, Region>;

  // `done`: of the instance to be placed, see Lifetimes::DoneBefore.
  static bool IsEndDone(const Region& region, const int32_t* done) { return region.position <= done[region.column]; }
  bool MayFollow(const Region& region, const int32_t* done) const {
    if (!IsEndDone(region, done)) return false;
    const std::span<const int32_t> ends = lives_.ends(region.tenant);
    return ends.size() == 1 || std::all_of(ends.begin(), ends.end(), [&](int32_t end) {
             return draft_.position[static_cast<size_t>(end)] <= done[draft_.column[static_cast<size_t>(end)]];
           });
  }

  // How many bytes from `it` on, up to `wanted`, lie side by side and may be taken.
  int64_t RunFrom(Regions::const_iterator it, const int32_t* done, int64_t wanted) const {
    const int64_t begin = it->first;
    int64_t end = begin;
    while (end - begin < wanted && it != free_.end() && it->first == end && MayFollow(it->second, done)) {
      end += it->second.bytes;
      ++it;
    }
    return end - begin;
  }

  void Take(Regions::iterator it, int64_t bytes) {
    const int64_t end = it->first + bytes;
    while (true) {
      const Region region = it->second;
      const int64_t region_end = it->first + region.bytes;
      it = free_.erase(it);
      if (region_end > end) free_.emplace(end, Region{region_end - end, region.tenant, region.column, region.position});
      if (region_end >= end) return;
    }
  }

  const Draft& draft_;
  const Lifetimes& lives_;
  Regions free_;
  std::vector<int32_t> scratch_;
  int64_t top_ = 0;
  int32_t placed_ = 0, reused_ = 0;
};

void CheckedPlace(Draft& draft, Packer& packer, int32_t device, int32_t instance) {
  Instance& i = draft.instances[static_cast<size_t>(instance)];
  if (i.bytes == 0) {
    i.offset = 0;
    return;
  }
  if (packer.Place(instance, Aligned(i.bytes), &i.offset)) return;
  if (draft.mistakes.empty()) ArenaTooLarge(draft, device);
}

}  // namespace

void Memory(Draft& draft) {
  const Lifetimes lives(draft);
  const size_t spaces = draft.options.devices.size() + 1;
  std::vector<Packer> packers(spaces, Packer(draft, lives));
  std::vector<bool> used(spaces);
  std::vector<uint8_t> freed(draft.instances.size());
  const auto space_of = [](const Instance& i) { return i.device < 0 ? size_t{0} : static_cast<size_t>(i.device) + 1; };
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    const Step& step = draft.steps[static_cast<size_t>(s)];
    ForEachInstance(draft, step, [&](int32_t i) {
      if (lives.first(i) != s) return;
      const Instance& instance = draft.instances[static_cast<size_t>(i)];
      if (!InArena(instance.space) || instance.offset >= 0) return;
      CheckedPlace(draft, packers[space_of(instance)], instance.device, i);
      used[space_of(instance)] = true;
    });
    if (!draft.mistakes.empty()) return;
    ForEachInstance(draft, step, [&](int32_t i) {
      if (lives.last(i) != s || freed[static_cast<size_t>(i)] != 0) return;
      const Instance& instance = draft.instances[static_cast<size_t>(i)];
      if (!InArena(instance.space) || instance.bytes == 0) return;
      freed[static_cast<size_t>(i)] = 1;
      packers[space_of(instance)].Free(i, instance.offset, Aligned(instance.bytes));
    });
  }
  for (size_t a = 0; a < spaces; ++a) {
    if (!used[a]) continue;
    const auto device = static_cast<int32_t>(a) - 1;
    draft.arenas.push_back({device, packers[a].bytes()});
    if (packers[a].reused() > 0) {
      draft.notes.push_back(ArenaName(draft, device) + ": " + std::to_string(packers[a].reused()) + " of " +
                            std::to_string(packers[a].placed()) + " instances reuse memory of earlier ones");
    }
    CheckBudget(draft, draft.arenas.back());
  }
}

}  // namespace penstock::graph
