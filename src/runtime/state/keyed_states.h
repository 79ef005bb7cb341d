// KeyedStates: the States of the keys of one executable: which key has which States, and on which device.
//
// All are made with the executable: as many *places* as the graph declares keys (the minimum over its KeyedStates),
// divided among the devices by weight. Each place has one State of each KeyedState. A new key takes a place on the
// device with the largest share of its places free, and keeps it until Forget, which zeroes its States.
//
// A launch finds its key's place and enters the order of the States later. Forget changes the place's `turn` before it
// takes its own place in that order, and a run that has entered checks that `turn` is still the one that it found: so
// either Forget waits for the run, or the run is refused.
//
// Ownership: owns the States; shared by the executables of all devices.
// Threads:   thread-safe.
// Locks:     mu_ guards the table; nothing is called with it held.
// Errors:    Find returns ResourceExhausted if no place is left. Forget fails like State::Reset.
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

// The location of a key's States for a run.
struct KeyedHome {
  int member = -1;  // which of the executable's devices
  int place = -1;  // index among all places; -1: none
  uint64_t turn = 0;  // the place's `turn` when it was found
};

class KeyedStates {
 public:
  using Home = KeyedHome;

  // Returns null if the graph has no KeyedState.
  static absl::StatusOr<std::shared_ptr<KeyedStates>> Create(const std::shared_ptr<RuntimeCore>& runtime,
                                                             const Model& model, std::span<const DeviceShare> devices);

  // The key's place; a key without one takes one now. `member`: the device that it must be on; -1: any.
  absl::StatusOr<Home> Find(uint64_t key, int member = -1);
  // Whether the place still belongs to the key that found it.
  bool IsStill(const Home& home) const {
    return places_[home.place]->turn.load(std::memory_order_acquire) == home.turn;
  }
  absl::Status Forget(uint64_t key, Deadline deadline);
  // OK, or the failed run that poisoned one of the key's States.
  absl::Status PoisonOf(uint64_t key);

  // Indices in Model::buffers; below, the State in a place for each of them.
  std::span<const int32_t> buffers() const { return buffers_; }
  const std::shared_ptr<StateCore>& state(const Home& home, size_t buffer) const {
    return places_[home.place]->states[buffer];
  }

 private:
  struct Place {
    int member = 0;
    std::atomic<uint64_t> turn{0};  // changes when a key gives the place up
    std::vector<std::shared_ptr<StateCore>> states{};  // parallel to buffers_
  };
  struct Entry {
    int place;
    bool going = false;  // Forget is at work on it
  };

  absl::Status AddPlaces(const std::shared_ptr<RuntimeCore>& runtime, const Model& model, int member,
                         const DeviceShare& on, int count);
  // Returns -1 if none is free.
  int TakeFree(int member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Full(uint64_t key, int member) const;

  std::string prefix_;  // the graph's, for messages
  std::vector<int32_t> buffers_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<int> counts_;  // the number of places of each member
  std::vector<bool> chosen_;  // for each member: whether it takes keys that name no device

  base::Mutex mu_;
  absl::flat_hash_map<uint64_t, Entry> places_of_keys_ ABSL_GUARDED_BY(mu_);
  std::vector<std::vector<int>> free_ ABSL_GUARDED_BY(mu_);  // for each member: its free places
};

}  // namespace penstock::runtime
