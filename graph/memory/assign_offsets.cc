// Memory:    offsets of instances in the arenas of a slot, at multiples of 256 bytes.
//
// A sweep in submission order gives an instance its bytes at its first use (packer.h) and frees them after its last; if
// that leaves holes, all are placed again, by size (repack.h). Instances share bytes only if the lane clocks show that
// one is done before the other's uses begin, so nothing ever waits because of memory. Only a node that permits it may
// read and write the same bytes (in_place.h).
#include <algorithm>
#include <utility>

#include "graph/common/message.h"
#include "graph/memory/budget.h"
#include "graph/memory/in_place.h"
#include "graph/memory/lifetimes.h"
#include "graph/memory/packer.h"
#include "graph/memory/repack.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

constexpr int64_t kAlign = kMostAlign;
constexpr int64_t Aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

class Sweep {
 public:
  explicit Sweep(Draft& draft)
      : d_(draft),
        lives_(draft),
        in_place_(draft, lives_),
        packers_(draft.options.devices.size() + 1, Packer(draft, lives_)),
        used_(packers_.size()),
        block_(draft.instances.size(), -1),
        tenants_(packers_.size()),
        tenant_(draft.instances.size(), -1) {}

  void Run() {
    auto done = lives_.by_last().begin();
    for (const int32_t i : lives_.by_first()) {
      for (; lives_.last(*done) < lives_.first(i); ++done) Free(*done);
      Place(i);
      if (!d_.mistakes.empty()) return;
    }
    for (size_t a = 0; a < packers_.size(); ++a) {
      const auto device = static_cast<int32_t>(a) - 1;
      int64_t bytes = used_[a] ? Finish(a) : 0;
      if (device < 0) bytes = AddUnshared(bytes);
      if (bytes < 0) return ArenaTooLarge(d_, device);
      if (!used_[a]) continue;
      d_.arenas.push_back({device, bytes});
      CheckBudget(d_, d_.arenas.back());
    }
  }

 private:
  // Places pinned memory after the first `bytes`: what is in use before and after the run, and the tables of batches.
  // Returns the end, or -1 if it is too large.
  int64_t AddUnshared(int64_t bytes) {
    for (Instance& instance : d_.instances) {
      if (!instance.leased) continue;
      used_[0] = true;
      instance.offset = bytes;
      if (Aligned(instance.bytes) > kMaxBytes - bytes) return -1;
      bytes += Aligned(instance.bytes);
    }
    const int64_t pieces = CountPieces() * kPieceBytes;
    if (pieces == 0) return bytes;
    used_[0] = true;
    d_.pieces_offset = bytes;
    return pieces > kMaxBytes - bytes ? -1 : bytes + pieces;
  }

  // The copies in batches, whose tables drivers read.
  int64_t CountPieces() const {
    return std::count_if(d_.steps.begin(), d_.steps.end(),
                         [](const Step& step) { return step.batch >= 0 && !step.on_host(); });
  }

  static size_t ArenaOf(const Instance& i) { return static_cast<size_t>(int64_t{i.device} + 1); }  // -1: pinned

  void Place(int32_t index) {
    Instance& instance = d_.instances[index];
    if (!InArena(instance.space) || instance.leased) return;
    used_[ArenaOf(instance)] = true;
    instance.offset = 0;
    if (instance.bytes == 0) return;
    Packer& packer = packers_[ArenaOf(instance)];
    const int32_t giver = in_place_.giver(index);
    if (giver >= 0) packer.HandOver();
    const int32_t block = giver < 0 ? packer.Place(index, Aligned(instance.bytes)) : std::exchange(block_[giver], -1);
    if (block < 0) return ArenaTooLarge(d_, instance.device);
    block_[index] = block;
    instance.offset = packer.offset(block);
    AddTenant(index, giver);
  }

  void AddTenant(int32_t index, int32_t giver) {
    const Instance& instance = d_.instances[index];
    std::vector<Tenant>& tenants = tenants_[ArenaOf(instance)];
    int32_t& tenant = tenant_[index];
    if (giver < 0) {
      tenant = static_cast<int32_t>(tenants.size());
      tenants.push_back({index, index, Aligned(instance.bytes), instance.offset});
    } else {
      tenant = tenant_[giver];
      tenants[tenant].last = index;
    }
  }

  void Free(int32_t index) {
    const int32_t block = block_[index];
    if (block >= 0) packers_[ArenaOf(d_.instances[index])].Free(index, block);
  }

  // Fixes the places of instances that share bytes; returns how many they are.
  int64_t Finish(size_t arena) {
    const Packer& packer = packers_[arena];
    const auto device = static_cast<int32_t>(arena) - 1;
    const int64_t bytes = Repack(d_, lives_, packer.least(), packer.bytes(), tenants_[arena]);
    if (packer.reused() > 0) {
      d_.notes.push_back(ArenaName(d_, device) + ": " + std::to_string(packer.reused()) + " of " +
                         std::to_string(packer.placed()) + " instances reuse memory of earlier ones");
    }
    if (bytes < packer.bytes()) Move(arena, bytes);
    return bytes;
  }

  // Moves the tenants to where Repack has placed them.
  void Move(size_t arena, int64_t bytes) {
    const auto device = static_cast<int32_t>(arena) - 1;
    for (size_t i = 0; i < tenant_.size(); ++i) {
      Instance& instance = d_.instances[i];
      if (tenant_[i] < 0 || instance.device != device) continue;
      instance.offset = tenants_[arena][tenant_[i]].offset;
    }
    d_.notes.push_back(ArenaName(d_, device) + ": " + std::to_string(bytes) + " bytes, placed by size; " +
                       std::to_string(packers_[arena].bytes()) + " in the order of use");
  }

  Draft& d_;
  const Lifetimes lives_;
  const InPlace in_place_;
  std::vector<Packer> packers_;  // for pinned memory, then for each device
  std::vector<bool> used_;
  std::vector<int32_t> block_;  // for each instance; -1: none
  std::vector<std::vector<Tenant>> tenants_;  // for each arena
  std::vector<int32_t> tenant_;  // for each instance, in its arena; -1: none
};

}  // namespace

void Memory(Draft& draft) { Sweep(draft).Run(); }

}  // namespace penstock::graph
