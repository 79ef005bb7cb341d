// Memory: offsets of instances in the arenas of a slot, at multiples of 256 bytes.
//
// A sweep in submission order gives an instance its bytes at its first use (packer.h) and takes them back after its
// last. They are shared only by instances of which one is known, by the lane clocks, to be done with
// before the other's uses: nothing waits because of memory.
#include "graph/packer.h"

#include "graph/budget.h"
#include "graph/lifetimes.h"
#include "graph/passes.h"

namespace penstock::graph {
namespace {

constexpr int64_t kAlign = 256;
constexpr int64_t Aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

class Sweep {
 public:
  explicit Sweep(Draft& draft)
      : d_(draft),
        lives_(draft),
        packers_(draft.options.devices.size() + 1, Packer(draft, lives_)),
        used_(packers_.size()),
        block_(draft.instances.size(), -1) {}

  void Run() {
    auto done = lives_.by_last().begin();
    for (const int32_t i : lives_.by_first()) {
      for (; lives_.last(*done) < lives_.first(i); ++done) Free(*done);
      Place(i);
      if (!d_.mistakes.empty()) return;
    }
    for (size_t a = 0; a < packers_.size(); ++a) {
      if (used_[a]) Tell(static_cast<int32_t>(a) - 1, packers_[a]);
    }
  }

 private:
  static size_t ArenaOf(const Instance& i) { return static_cast<size_t>(int64_t{i.device} + 1); }  // -1: pinned

  void Place(int32_t index) {
    Instance& instance = d_.instances[static_cast<size_t>(index)];
    if (!InArena(instance.space)) return;
    used_[ArenaOf(instance)] = true;
    instance.offset = 0;
    if (instance.bytes == 0) return;
    Packer& packer = packers_[ArenaOf(instance)];
    const int32_t block = packer.Place(index, Aligned(instance.bytes));
    if (block < 0) return ArenaTooLarge(d_, instance.device);
    block_[static_cast<size_t>(index)] = block;
    instance.offset = packer.offset(block);
  }

  void Free(int32_t index) {
    const int32_t block = block_[static_cast<size_t>(index)];
    if (block >= 0) packers_[ArenaOf(d_.instances[static_cast<size_t>(index)])].Free(index, block);
  }

  void Tell(int32_t device, const Packer& packer) {
    d_.arenas.push_back({device, packer.bytes()});
    if (packer.reused() > 0) {
      d_.notes.push_back(ArenaName(d_, device) + ": " + std::to_string(packer.reused()) + " of " +
                         std::to_string(packer.placed()) + " instances reuse memory of earlier ones");
    }
    CheckBudget(d_, d_.arenas.back());
  }

  Draft& d_;
  const Lifetimes lives_;
  std::vector<Packer> packers_;  // of pinned memory, then of each device
  std::vector<bool> used_;
  std::vector<int32_t> block_;  // of each instance, -1: none
};

}  // namespace

void Memory(Draft& draft) { Sweep(draft).Run(); }

}  // namespace penstock::graph
