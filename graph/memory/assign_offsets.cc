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

using ArenaId = Id<struct ArenaTag>;  // pinned memory, then each device

class Sweep {
 public:
  Sweep(const Records& records, const Ordered& ordered, const Reduced& reduced, Findings& findings)
      : records_(records),
        ordered_(ordered),
        reduced_(reduced),
        findings_(findings),
        lives_(ordered, reduced),
        in_place_(records, ordered, reduced, lives_, findings),
        packers_(records.options.devices.size() + 1, Packer(reduced, lives_)),
        used_(packers_.size()),
        block_(ordered.instances.size(), -1),
        tenants_(packers_.size()),
        tenant_(ordered.instances.size(), -1) {
    packed_.offset.assign(ordered.instances.size(), -1);
  }

  Packed Run() {
    SweepSteps();
    if (findings_.mistakes.empty()) FinishArenas();
    return std::move(packed_);
  }

 private:
  void SweepSteps() {
    auto done = lives_.by_last().begin();
    for (const InstanceId i : lives_.by_first()) {
      for (; lives_.last(*done) < lives_.first(i); ++done) Free(*done);
      Place(i);
      if (!findings_.mistakes.empty()) return;
    }
  }

  void FinishArenas() {
    for (const ArenaId a : packers_.ids()) {
      const DeviceId device = DeviceOf(a);
      int64_t bytes = used_[a] ? Finish(a) : 0;
      if (device < 0) bytes = AddUnshared(bytes);
      if (bytes < 0) return ArenaTooLarge(records_, ordered_, findings_, device);
      if (!used_[a]) continue;
      packed_.arenas.push_back({device, bytes, device >= 0 && records_.options.in_order});
      CheckBudget(records_, ordered_, findings_, packed_.arenas.back());
    }
  }

  // Places pinned memory after the first `bytes`: what is in use before and after the run, and the tables of batches.
  // Returns the end, or -1 if it is too large.
  int64_t AddUnshared(int64_t bytes) {
    for (const InstanceId i : ordered_.instances.ids()) {
      const Instance& instance = ordered_.instances[i];
      if (!instance.leased) continue;
      used_[0] = true;
      packed_.offset[i] = bytes;
      if (Aligned(instance.bytes) > kMaxBytes - bytes) return -1;
      bytes += Aligned(instance.bytes);
    }
    const int64_t pieces = CountPieces() * kPieceBytes;
    if (pieces == 0) return bytes;
    used_[0] = true;
    packed_.pieces_offset = bytes;
    return pieces > kMaxBytes - bytes ? -1 : bytes + pieces;
  }

  // The copies in batches, whose tables drivers read.
  int64_t CountPieces() const {
    return std::count_if(ordered_.steps.begin(), ordered_.steps.end(),
                         [](const Step& step) { return step.batch >= 0 && !step.on_host(); });
  }

  static ArenaId ArenaOf(const Instance& i) { return i.device + 1; }
  static DeviceId DeviceOf(ArenaId arena) { return arena - 1; }  // none: pinned memory

  void Place(InstanceId index) {
    const Instance& instance = ordered_.instances[index];
    if (!InArena(instance.space) || instance.leased) return;
    used_[ArenaOf(instance)] = true;
    packed_.offset[index] = 0;
    if (instance.bytes == 0) return;
    Packer& packer = packers_[ArenaOf(instance)];
    const InstanceId giver = in_place_.giver(index);
    if (giver >= 0) packer.HandOver();
    const int32_t block = giver < 0 ? packer.Place(index, Aligned(instance.bytes)) : std::exchange(block_[giver], -1);
    if (block < 0) return ArenaTooLarge(records_, ordered_, findings_, instance.device);
    block_[index] = block;
    packed_.offset[index] = packer.offset(block);
    AddTenant(index, giver);
  }

  void AddTenant(InstanceId index, InstanceId giver) {
    const Instance& instance = ordered_.instances[index];
    std::vector<Tenant>& tenants = tenants_[ArenaOf(instance)];
    int32_t& tenant = tenant_[index];
    if (giver < 0) {
      tenant = static_cast<int32_t>(tenants.size());
      tenants.push_back({index, index, Aligned(instance.bytes), packed_.offset[index]});
    } else {
      tenant = tenant_[giver];
      tenants[tenant].last = index;
    }
  }

  void Free(InstanceId index) {
    const int32_t block = block_[index];
    if (block >= 0) packers_[ArenaOf(ordered_.instances[index])].Free(index, block);
  }

  // Fixes the places of instances that share bytes; returns how many they are.
  int64_t Finish(ArenaId arena) {
    const Packer& packer = packers_[arena];
    const DeviceId device = DeviceOf(arena);
    const int64_t bytes = Repack(reduced_, lives_, packer.least(), packer.bytes(), tenants_[arena]);
    if (packer.reused() > 0) {
      findings_.remarks.push_back(ArenaName(records_, device) + ": " + std::to_string(packer.reused()) + " of " +
                                  std::to_string(packer.placed()) + " instances reuse memory of earlier ones");
    }
    if (bytes < packer.bytes()) Move(arena, bytes);
    return bytes;
  }

  // Moves the tenants to where Repack has placed them.
  void Move(ArenaId arena, int64_t bytes) {
    const DeviceId device = DeviceOf(arena);
    for (const InstanceId i : tenant_.ids()) {
      if (tenant_[i] < 0 || ordered_.instances[i].device != device) continue;
      packed_.offset[i] = tenants_[arena][tenant_[i]].offset;
    }
    findings_.remarks.push_back(ArenaName(records_, device) + ": " + std::to_string(bytes) +
                                " bytes, placed by size; " + std::to_string(packers_[arena].bytes()) +
                                " in the order of use");
  }

  const Records& records_;
  const Ordered& ordered_;
  const Reduced& reduced_;
  Findings& findings_;
  Packed packed_;
  const Lifetimes lives_;
  const InPlace in_place_;
  Table<ArenaId, Packer> packers_;
  Table<ArenaId, bool> used_;
  Table<InstanceId, int32_t> block_;  // in its arena; -1: none
  Table<ArenaId, std::vector<Tenant>> tenants_;
  Table<InstanceId, int32_t> tenant_;  // in its arena; -1: none
};

}  // namespace

Packed Memory(const Records& records, const Ordered& ordered, const Reduced& reduced, Findings& findings) {
  return Sweep(records, ordered, reduced, findings).Run();
}

}  // namespace penstock::graph
