// InFlightList: the live executables of a runtime.
//
// Ownership: holds weak pointers; a call keeps alive what it works on.
// Threads:   thread-safe.
// Locks:     mu_ is a leaf: nothing is called with it held.
#pragma once

#include <memory>
#include <vector>

#include "src/base/mutex.h"
#include "src/runtime/core/in_flight.h"

namespace penstock::runtime {

class InFlightList {
 public:
  void Add(const std::shared_ptr<InFlight>& executable);
  // Advances every run in flight.
  void AdvanceAll() const;
  void AbandonAll(const absl::Status& why) const;
  // Like AdvanceAll; returns how many runs are then abandoned and how many executables are stuck.
  struct Left {
    int64_t abandoned = 0, stuck = 0;
  };
  Left AdvanceAndCount() const;

 private:
  std::vector<std::shared_ptr<InFlight>> Alive() const;

  mutable base::Mutex mu_;
  std::vector<std::weak_ptr<InFlight>> executables_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
