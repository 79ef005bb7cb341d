// Lease: a slot of an executable, to be filled and read in place.
//
// Buffers declared kSlot have their memory in the slot: pinned, so that copies to and from devices go at full speed,
// and touched by nobody but the run and whoever has the lease. A producer writes its data there, launches, and a
// consumer reads the results there; no host copy lies between.
//
//   PS_ASSIGN_OR_RETURN(ps::Lease slot, exec.Acquire());
//   camera.ReadInto(slot.span(raw));
//   PS_ASSIGN_OR_RETURN(ps::Run run, slot.Launch(io));
//   PS_RETURN_IF_ERROR(run.Wait());
//   screen.Show(slot.span(edges));
//
// What an Input or InOut holds when a lease begins is not known: it is the next run's first contents.
//
// Ownership: the slot goes back when the lease is gone and its run has drained. A lease may outlive the handles of its
//            executable and runtime, its spans may not outlive the lease.
// Threads:   thread-compatible. While a run is in flight the memory is the run's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
#include "penstock/export.h"
#include "penstock/run.h"

namespace penstock {

namespace runtime {
class ExecutableCore;
struct RunSlot;
}  // namespace runtime

class PENSTOCK_EXPORT Lease {
 public:
  Lease() = default;  // of nothing: its spans are empty and Launch refuses it
  Lease(Lease&& other) noexcept : core_(std::move(other.core_)), slot_(std::exchange(other.slot_, nullptr)) {}
  Lease& operator=(Lease other) noexcept {  // the slot it had goes back
    std::swap(core_, other.core_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~Lease();

  // The slot's memory of a buffer declared kSlot, for its declared maximum: a run uses the first elements, as many as
  // its extent has then, its rows side by side or their pitch apart. Empty for any other buffer. A temporary lease
  // gives none away.
  template <class T>
  PENSTOCK_HIDDEN std::span<T> span(BufferHandle<T> buffer) const& {
    const Memory memory = Find(buffer.graph(), buffer.index(), detail::TypeOf<T>());
    return {static_cast<T*>(memory.data), memory.elements};
  }
  template <class T>
  PENSTOCK_HIDDEN std::span<T> span(BufferHandle<T> buffer) const&& = delete;

  // Starts a run in this slot, with bindings for everything but the kSlot buffers; as Executable::Launch otherwise, but
  // for the slot it need not wait, so it is allowed inside host nodes and callbacks. FailedPrecondition while the run
  // before is in flight.
  absl::StatusOr<Run> Launch(const Bindings& bindings, Deadline deadline = {});

 private:
  friend class Executable;
  friend class runtime::PipelineCore;
  struct Memory {
    void* data = nullptr;
    size_t elements = 0;
  };
  Lease(std::shared_ptr<runtime::ExecutableCore> core, runtime::RunSlot* slot) : core_(std::move(core)), slot_(slot) {}
  Memory Find(uint32_t graph, int32_t index, TypeInfo type) const;

  std::shared_ptr<runtime::ExecutableCore> core_;
  runtime::RunSlot* slot_ = nullptr;
};

}  // namespace penstock
