// Predecessor: a run that another one waits for, as that one sees it.
//
// Ownership: counted; a pointer is kept together with a count.
// Threads:   thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/core/in_flight.h"

namespace penstock::runtime {

class Predecessor {
 public:
  // How far it has come. If `ended`, there is nothing to wait for. Otherwise, once `submitted`, one waits for the
  // events of `done`, which are valid while `owner` is held.
  struct Tail {
    bool submitted = false, ended = false;
    const std::vector<driver::Event>* done = nullptr;
    std::shared_ptr<const void> owner{};
  };
  // If the run has failed, returns the error that runs waiting for it fail with.
  virtual absl::StatusOr<Tail> LookAtTail() const = 0;
  // Another run waits for this one from now on: the event count is notified whenever the tail changes.
  virtual void Follow() = 0;
  virtual void Unref() = 0;

 protected:
  ~Predecessor() = default;
};

// What must be done before bound device memory may be touched. `external_dep` is an entry of Plan::external_deps.
struct RunPredecessor {
  int32_t external_dep;
  Predecessor* run;  // counted
};
struct EventPredecessor {
  int32_t external_dep;
  void* event;
};

// The predecessors of one run.
struct Predecessors {
  std::vector<RunPredecessor> runs;  // sorted by external_dep
  size_t runs_ended = 0;  // this many of them, from the first, are known to have ended
  std::vector<EventPredecessor> events;  // the application's, sorted by external_dep
  driver::Event stream;  // what the application's stream held before the run; null if none or done

  void Release() {
    for (const RunPredecessor& before : runs) before.run->Unref();
    runs.clear();
    runs_ended = 0;
    events.clear();
    stream = {};
  }
};

}  // namespace penstock::runtime
