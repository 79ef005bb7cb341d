// KeyedStates: the States of the keys of one executable: which key has which, and on which of its devices.
//
// All of them are made with the executable: as many *places* as the graph declares keys (the fewest of its
// KeyedStates), shared between the devices by their weights; each place has a State of each KeyedState. A key takes a
// place when it is first seen, on the device with the largest part of its places free, and keeps it until Forget, which
// leaves zeros there.
//
// A launch finds its key's place and enters the order of the States later. Forget ends the place's *turn* before it
// takes its own place in that order, and who has entered looks whether the turn still is the one it has found: so
// either Forget waits for the run, or the run is refused.
//
// Ownership: owns the States; shared by the executables of all devices.
// Threads:   thread-safe.
// Locks:     mu_ guards the table; nothing is called with it held.
// Errors:    Find: ResourceExhausted where no place is left. Forget: as State::Reset.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/compile_options.h"
#include "penstock/detail/model.h"
#include "src/base/mutex.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

// Where the States of a run's key are.
struct KeyedHome {
  int member = -1;  // which of the executable's devices
  int place = -1;  // of all; -1: none
  uint64_t turn = 0;  // of the place
};

class KeyedStates {
 public:
  using Home = KeyedHome;

  // Null: the graph has no KeyedState.
  static absl::StatusOr<std::shared_ptr<KeyedStates>> Create(const std::shared_ptr<RuntimeCore>& runtime,
                                                             const Model& model, std::span<const DeviceShare> devices);

  // The key's place, taken now where it has none. `member`: where it must be; -1: anywhere.
  absl::StatusOr<Home> Find(uint64_t key, int member = -1);
  // Whether the place still is the key's that has found it.
  bool IsStill(const Home& home) const {
    return places_[static_cast<size_t>(home.place)]->turn.load(std::memory_order_acquire) == home.turn;
  }
  absl::Status Forget(uint64_t key, Deadline deadline);
  // OK, or which failed run has poisoned a State of the key.
  absl::Status PoisonOf(uint64_t key);

  // Indices in Model::buffers, and of each the State of a place.
  std::span<const int32_t> buffers() const { return buffers_; }
  const std::shared_ptr<StateCore>& state(const Home& home, size_t buffer) const {
    return places_[static_cast<size_t>(home.place)]->states[buffer];
  }

 private:
  struct Place {
    int member = 0;
    std::atomic<uint64_t> turn{0};  // another one for each key that has had it
    std::vector<std::shared_ptr<StateCore>> states{};  // parallel to buffers_
  };
  struct Entry {
    int place;
    bool going = false;  // Forget is at it
  };

  absl::Status AddPlaces(const std::shared_ptr<RuntimeCore>& runtime, const Model& model, int member,
                         const DeviceShare& on, int count);
  // -1: none is free.
  int TakeFree(int member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Full(uint64_t key, int member) const;

  std::string prefix_;  // of the graph, for messages
  std::vector<int32_t> buffers_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<int> counts_;  // of each member: its places
  std::vector<bool> chosen_;  // whether it gets keys that name no device

  base::Mutex mu_;
  absl::flat_hash_map<uint64_t, Entry> places_of_keys_ ABSL_GUARDED_BY(mu_);
  std::vector<std::vector<int>> free_ ABSL_GUARDED_BY(mu_);  // places of each member
};

}  // namespace penstock::runtime
