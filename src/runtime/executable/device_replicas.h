// ExecutableSet: what an Executable handle refers to: one graph compiled for one or several devices. It chooses the
// device that takes a launch.
//
// Ownership: shared by the handles; holds each device's executable as a handle does (ExecutableCore::HandleOn).
// Threads:   thread-safe; constant after Create.
// Errors:    as ExecutableCore; see also penstock/executable.h.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/executable.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/state/keyed_states.h"

namespace penstock::runtime {

class ExecutableSet {
 public:
  struct Member {
    std::shared_ptr<ExecutableCore> core;
    DeviceShare share;
  };

  static absl::StatusOr<std::shared_ptr<ExecutableSet>> Create(const std::shared_ptr<RuntimeCore>& runtime,
                                                               const Model& model, const CompileOptions& options);
  explicit ExecutableSet(std::vector<Member> members) : members_(std::move(members)) {}

  absl::StatusOr<Run> Launch(const Bindings& bindings, Deadline deadline, Wait wait) const;
  // A slot of any device, for its holder alone.
  absl::StatusOr<std::pair<std::shared_ptr<ExecutableCore>, RunSlot*>> Lease(Deadline deadline, Wait wait) const;

  const std::vector<Member>& members() const { return members_; }
  // Bindings in which nothing is set. Any number of threads may launch with them.
  const Bindings& nothing_set() const;
  ExecutableCore& first() const { return *members_[0].core; }
  KeyedStates* keyed() const { return first().binder().keyed(); }
  // The member on the device; -1 if there is none.
  int MemberOn(int device) const;
  // Where the key's States are, as a member of this set, which must have keyed States. `only`: the member that they
  // must be on; -1: any.
  absl::StatusOr<KeyedHome> FindHome(uint64_t key, int only = -1) const;
  absl::StatusOr<std::shared_ptr<ExecutableSet>> On(int device) const;
  Mode DecideMode();
  SubmissionReport submission_report() const;
  MemoryReport memory() const;

 private:
  struct TakenSlot {
    int member = -1;
    RunSlot* slot = nullptr;  // null: none was free
  };
  // `only`: the member whose slots are acceptable; -1: any.
  absl::StatusOr<TakenSlot> TakeSlot(int only, Deadline deadline, Wait wait) const;
  TakenSlot TakeBest(int only) const;
  absl::Status CheckOnTime(int only, Deadline deadline) const;

  const std::vector<Member> members_;
  mutable std::once_flag made_nothing_set_;
  mutable Bindings nothing_set_;  // made when it is first asked for
  mutable std::atomic<int64_t> waiting_{0};  // launches that wait for a slot, if there are several devices
};

}  // namespace penstock::runtime
