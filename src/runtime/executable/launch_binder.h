// LaunchBinder: applies the bindings of a launch to a slot: checks every value and address, then patches what they
// change. Memory that the slot has already bound is left as it is.
//
// Ownership: belongs to the executable; borrows its context.
// Threads:   UseKeys is called before the first launch; the slot's owner calls the rest.
// Errors:    every mistake names the parameter, buffer or State, and the remedy. Nothing of the run has begun then.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/detail/bound_values.h"
#include "src/runtime/run/run_owner.h"
#include "src/runtime/run/run_slot.h"
#include "src/runtime/state/keyed_states.h"

namespace penstock::runtime {

// Whether both are models of one graph with the same parameters and buffers (a graph only grows). If so, bindings of
// one fit the other.
bool SameSignature(const Model& a, const Model& b);

class LaunchBinder {
 public:
  explicit LaunchBinder(RunContext& context) : context_(context) {}

  // Sets the keyed States, if the graph has some, and which of the devices that share them this one is.
  void UseKeys(std::shared_ptr<KeyedStates> keyed, int member) {
    keyed_ = std::move(keyed);
    member_ = member;
  }
  KeyedStates* keyed() const { return keyed_.get(); }
  int member() const { return member_; }

  absl::Status Bind(RunSlot& slot, const detail::BoundValues& bindings);
  // Called once it is decided on which lanes the run is submitted: makes them wait for the application's events and
  // stream. Returns the stream's device; -1 if there is none.
  absl::StatusOr<int> WaitForNative(RunSlot& slot, const detail::BoundValues& bindings);
  // Takes the slot's places in the order of its States. Called last: a run that has a ticket waits only for those with
  // earlier tickets.
  absl::Status EnterStates(RunSlot& slot);

 private:
  absl::StatusOr<bool> BindKey(RunSlot& slot, const detail::BoundValues& bindings);  // returns whether the key differs
  absl::Status CheckParams(const detail::BoundValues& bindings) const;
  bool BindParams(RunSlot& slot, const detail::BoundValues& bindings);
  bool IsStillBound(const RunSlot& slot, const detail::BoundValues& bindings) const;
  absl::Status BindBuffers(RunSlot& slot, const detail::BoundValues& bindings);
  absl::Status BindBuffer(RunSlot& slot, const BufferDecl& decl, size_t buffer, const BoundMemory& memory);
  // Checks that all bytes of the memory are where the buffer needs them. Returns whether they are pinned.
  absl::StatusOr<bool> CheckPlace(RunSlot& slot, const BufferDecl& decl, size_t buffer, const BoundMemory& memory,
                                  int64_t bytes) const;
  absl::Status BindPredecessors(RunSlot& slot, const detail::BoundValues& bindings);
  absl::Status CheckOverlaps(RunSlot& slot) const;
  void PatchPointers(RunSlot& slot);

  const Model& model() const { return context_.graph.model(); }
  const graph::Plan& plan() const { return context_.graph.plan(); }
  const Program& program() const { return context_.graph.program(); }
  driver::Driver& driver() const { return context_.graph.driver(); }

  RunContext& context_;
  std::shared_ptr<KeyedStates> keyed_;  // null: the graph has none
  int member_ = 0;
};

}  // namespace penstock::runtime
