// Memory: offsets of instances in the arenas of a slot, by first fit at multiples of 256 bytes.
//
// The packer sweeps over the steps in submission order. An instance is placed at its first use, in the lowest free
// bytes that are large enough and whose last tenants are all known (by the lane clocks) to be done with before its
// uses; else at the top. Its bytes are free again after its last use. So bytes are shared only where order holds
// anyway: nothing waits because of memory.
#include <algorithm>
#include <iterator>
#include <map>

#include "graph/message.h"
#include "graph/passes.h"

namespace penstock::graph {
namespace {

constexpr int64_t kAlign = 256;
constexpr int kMaxTried = 64;  // free regions looked at for an instance: bounds the time, not what is right

// When instances are used, as clocks: `last` has the highest position of a use in each column, `before` what is done
// by the end of every use (which is as good as before it: the packer compares with uses of earlier steps only).
struct Lifetimes {
  std::vector<int32_t> first, last_step;   // submission positions, by instance
  std::vector<int32_t> last, before;       // (instance, column)
  std::vector<uint8_t> unknown;            // some use has no column
};

void AddUse(const Draft& draft, Lifetimes& lives, int32_t instance, int32_t step) {
  const auto i = static_cast<size_t>(instance), columns = static_cast<size_t>(draft.columns);
  const int32_t column = draft.column[static_cast<size_t>(step)];
  const int32_t* clock = draft.clock.data() + static_cast<size_t>(step) * columns;
  int32_t* last = lives.last.data() + i * columns;
  int32_t* before = lives.before.data() + i * columns;
  if (lives.first[i] < 0) {
    lives.first[i] = step;
    std::fill(before, before + columns, INT32_MAX);
  }
  lives.last_step[i] = step;
  for (int32_t c = 0; c < draft.columns; ++c) before[c] = std::min(before[c], clock[c]);
  if (column < 0) {
    lives.unknown[i] = 1;
  } else {
    last[column] = std::max(last[column], draft.position[static_cast<size_t>(step)]);
  }
}

Lifetimes FindLifetimes(const Draft& draft) {
  Lifetimes lives;
  const size_t count = draft.instances.size(), columns = static_cast<size_t>(draft.columns);
  lives.first.assign(count, -1);
  lives.last_step.assign(count, -1);
  lives.last.assign(count * columns, 0);
  lives.before.assign(count * columns, 0);
  lives.unknown.assign(count, 0);
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    const Step& step = draft.steps[static_cast<size_t>(s)];
    if (step.decl < 0) {
      AddUse(draft, lives, step.src, s);
      AddUse(draft, lives, step.dst, s);
    }
    for (int32_t u = step.first_use; u < step.first_use + step.uses; ++u) {
      AddUse(draft, lives, draft.uses[static_cast<size_t>(u)].instance, s);
    }
  }
  return lives;
}

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
    int tried = 0;
    ++placed_;
    for (auto it = free_.begin(); it != free_.end() && tried < kMaxTried; ++it, ++tried) {
      const int64_t run = RunFrom(it, instance, bytes);
      if (run < bytes) continue;
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

  void Free(int32_t instance, int64_t offset, int64_t bytes) { free_.emplace(offset, Region{bytes, instance}); }

 private:
  struct Region {
    int64_t bytes;
    int32_t tenant;
  };
  using Regions = std::map<int64_t, Region>;

  bool MayFollow(int32_t tenant, int32_t instance) const {
    if (lives_.unknown[static_cast<size_t>(tenant)]) return false;
    const auto columns = static_cast<size_t>(draft_.columns);
    const int32_t* last = lives_.last.data() + static_cast<size_t>(tenant) * columns;
    const int32_t* before = lives_.before.data() + static_cast<size_t>(instance) * columns;
    const auto likely =
        static_cast<size_t>(draft_.column[static_cast<size_t>(lives_.last_step[static_cast<size_t>(tenant)])]);
    if (last[likely] > before[likely]) return false;  // the usual no, found at once
    for (size_t c = 0; c < columns; ++c) {
      if (last[c] > before[c]) return false;
    }
    return true;
  }

  // How many bytes from `it` on, up to `wanted`, lie side by side and may be taken.
  int64_t RunFrom(Regions::const_iterator it, int32_t instance, int64_t wanted) const {
    const int64_t begin = it->first;
    int64_t end = begin;
    while (end - begin < wanted && it != free_.end() && it->first == end && MayFollow(it->second.tenant, instance)) {
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
      if (region_end > end) free_.emplace(end, Region{region_end - end, region.tenant});
      if (region_end >= end) return;
    }
  }

  const Draft& draft_;
  const Lifetimes& lives_;
  Regions free_;
  int64_t top_ = 0;
  int32_t placed_ = 0, reused_ = 0;
};

std::string Largest(const Draft& draft, int32_t device) {
  std::vector<int32_t> found;
  for (int32_t i = 0; i < static_cast<int32_t>(draft.instances.size()); ++i) {
    const Instance& instance = draft.instances[static_cast<size_t>(i)];
    if (instance.space == Space::kDevice ? instance.device == device : device < 0 && instance.space == Space::kPinned) {
      found.push_back(i);
    }
  }
  const auto more = [&](int32_t a, int32_t b) {
    const int64_t x = draft.instances[static_cast<size_t>(a)].bytes, y = draft.instances[static_cast<size_t>(b)].bytes;
    return x != y ? x > y : a < b;
  };
  const size_t shown = std::min<size_t>(3, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown), found.end(), more);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const Instance& instance = draft.instances[static_cast<size_t>(found[i])];
    text += (i > 0 ? ", '" : "'") + std::string(draft.buffer_name(instance.buffer).view()) + "' (" +
            std::to_string(instance.bytes) + ")";
  }
  return text;
}

std::string ArenaName(const Draft& draft, int32_t device) {
  return device < 0 ? "pinned memory" : draft.device_name(device);
}

void CheckBudget(Draft& draft, const Arena& arena) {
  if (arena.device < 0) return;
  const PlanDevice& device = draft.options.devices[static_cast<size_t>(arena.device)];
  if (device.memory_bytes <= 0 || arena.bytes == 0) return;
  const int64_t fit = device.memory_bytes / arena.bytes;
  const int64_t slots = std::max(1, draft.options.slots);
  if (fit >= slots) return;
  draft.AddMistake(absl::StatusCode::kResourceExhausted,
                   Prefix(draft.model) + " on " + device.name + ": " + std::to_string(slots) + " slots of " +
                       std::to_string(arena.bytes) + " bytes do not fit in the device's " +
                       std::to_string(device.memory_bytes) + "; the largest buffers are " +
                       Largest(draft, arena.device) + "; " +
                       (fit > 0 ? "use at most " + std::to_string(fit) + " slots, or make buffers smaller"
                                : std::string("not even one slot fits: make buffers smaller")));
}

void CheckedPlace(Draft& draft, Packer& packer, int32_t device, int32_t instance) {
  Instance& i = draft.instances[static_cast<size_t>(instance)];
  if (i.bytes == 0) {
    i.offset = 0;
    return;
  }
  if (packer.Place(instance, (i.bytes + kAlign - 1) / kAlign * kAlign, &i.offset)) return;
  if (!draft.mistakes.empty()) return;  // said once
  draft.AddMistake(absl::StatusCode::kResourceExhausted,
                   Prefix(draft.model) + " on " + ArenaName(draft, device) +
                       ": a slot would need more than 2^62 bytes; the largest buffers are " + Largest(draft, device) +
                       "; make buffers smaller");
}

// Instances whose first or last use is a step, as rows by step.
Rows ByStep(const std::vector<int32_t>& step_of, int32_t steps) {
  std::vector<Edge> list;
  for (size_t i = 0; i < step_of.size(); ++i) {
    if (step_of[i] >= 0) list.push_back({static_cast<int32_t>(i), step_of[i]});
  }
  return MakeEdges(steps, list);
}

}  // namespace

void Memory(Draft& draft) {
  const Lifetimes lives = FindLifetimes(draft);
  const size_t spaces = draft.options.devices.size() + 1;
  std::vector<Packer> packers(spaces, Packer(draft, lives));
  std::vector<bool> used(spaces);
  const auto space_of = [](const Instance& i) { return i.device < 0 ? size_t{0} : static_cast<size_t>(i.device) + 1; };
  const Rows firsts = ByStep(lives.first, draft.step_count()), lasts = ByStep(lives.last_step, draft.step_count());
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    for (const int32_t i : firsts[s]) {
      const Instance& instance = draft.instances[static_cast<size_t>(i)];
      if (instance.space == Space::kBound) continue;
      CheckedPlace(draft, packers[space_of(instance)], instance.device, i);
      used[space_of(instance)] = true;
    }
    if (!draft.mistakes.empty()) return;
    for (const int32_t i : lasts[s]) {
      const Instance& instance = draft.instances[static_cast<size_t>(i)];
      if (instance.space == Space::kBound || instance.bytes == 0) continue;
      packers[space_of(instance)].Free(i, instance.offset, (instance.bytes + kAlign - 1) / kAlign * kAlign);
    }
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
