// InFlight: an executable as the runtime and the order of States see it: an object that has runs in flight.
//
// Ownership: shared; the runtime lists it by weak pointers, and a thread that waits for its events holds it meanwhile.
// Threads:   any thread may call every method. The caller holds no lock of the runtime, except StateOrder's for
//            Describe and Label.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace penstock::runtime {

class InFlight : public std::enable_shared_from_this<InFlight> {
 public:
  virtual ~InFlight() = default;

  // Advances every run in flight; never blocks.
  virtual void AdvanceAll() = 0;
  // Ends every run in flight for its user, with `why`; the work continues until it has drained.
  virtual void AbandonAll(const absl::Status& why) = 0;
  // The number of abandoned runs that have not drained.
  virtual int64_t CountAbandoned() = 0;
  // Whether no handle is left and only an abandoned run, which may never end, keeps this alive.
  virtual bool IsStuck() = 0;

  // `cause`, prefixed with the node of the plan (-1 for none) and where it was declared.
  virtual absl::Status Describe(int32_t node, const absl::Status& cause) const = 0;
  // What messages call its runs: "graph 'name'".
  virtual std::string Label() const = 0;
};

}  // namespace penstock::runtime
