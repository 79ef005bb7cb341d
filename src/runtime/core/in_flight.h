// InFlight: something that has runs in flight, as the runtime and the order of States see it: an executable.
//
// Ownership: shared; the runtime lists it by weak pointers, and whoever waits for its events holds it meanwhile.
// Threads:   every method may be called by any thread, with no lock of the runtime's held except StateOrder's, with
//            which Describe and Label are called.
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
  // Ends every run in flight for its user, with `why`; the work goes on until it has drained.
  virtual void AbandonAll(const absl::Status& why) = 0;
  // How many runs have been abandoned and have not drained.
  virtual int64_t CountAbandoned() = 0;
  // Whether no handle is left, but an abandoned run, which may never end, holds it.
  virtual bool IsStuck() = 0;

  // `cause` with the node (of the plan; -1: none) and where it was declared in front.
  virtual absl::Status Describe(int32_t node, const absl::Status& cause) const = 0;
  // What its runs are called in messages: "graph 'name'".
  virtual std::string Label() const = 0;
};

}  // namespace penstock::runtime
