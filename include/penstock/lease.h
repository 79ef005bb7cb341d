// Lease: a slot of an executable, to be filled and read in place.
//
// Buffers declared kSlot have their memory in the slot. It is pinned, so that copies to and from devices run at full
// speed, and only the run and the holder of the lease touch it. A producer writes its data there and launches, and a
// consumer reads the results there, without a host copy in between.
//
//   PS_ASSIGN_OR_RETURN(ps::Lease slot, exec.Acquire());
//   camera.ReadInto(slot.span(raw));
//   PS_ASSIGN_OR_RETURN(ps::Run run, slot.Launch(io));
//   PS_RETURN_IF_ERROR(run.Wait());
//   screen.Show(slot.span(edges));
//
// The contents of an Input or InOut are unspecified when a lease begins: they are whatever the next run starts from.
//
// Ownership: the slot is returned when the lease is gone and its run has drained. A lease may outlive the handles of
//            its executable and runtime; its spans must not outlive the lease.
// Threads:   thread-compatible. While a run is in flight the memory belongs to the run.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
#include "penstock/detail/internals.h"
#include "penstock/export.h"
#include "penstock/run.h"

namespace penstock {

namespace runtime {
class ExecutableCore;
struct RunSlot;
}  // namespace runtime

class PENSTOCK_EXPORT Lease {
 public:
  Lease() = default;  // holds no slot: its spans are empty and Launch refuses it
  Lease(Lease&& other) noexcept : core_(std::move(other.core_)), slot_(std::exchange(other.slot_, nullptr)) {}
  Lease& operator=(Lease other) noexcept {  // returns the slot it held
    std::swap(core_, other.core_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~Lease();

  // The slot's memory of a buffer declared kSlot, at its declared maximum size: a run uses its first elements, as many
  // as its extent has then, with rows adjacent or a pitch apart. Empty for any other buffer. Not available on a
  // temporary lease.
  template <class T>
  PENSTOCK_HIDDEN std::span<T> span(BufferHandle<T> buffer) const& {
    const auto [data, elements] = Find(buffer.graph(), buffer.index(), detail::TypeOf<T>());
    return {static_cast<T*>(data), elements};
  }
  template <class T>
  PENSTOCK_HIDDEN std::span<T> span(BufferHandle<T> buffer) const&& = delete;

  // Starts a run in this slot, with bindings for everything except the kSlot buffers. Otherwise as Executable::Launch,
  // but it need not wait for a slot, so it is allowed inside host nodes and callbacks. FailedPrecondition: the previous
  // run is still in flight.
  absl::StatusOr<Run> Launch(const Bindings& bindings, Deadline deadline = {});

 private:
  friend class detail::Internals<Lease>;
  Lease(std::shared_ptr<runtime::ExecutableCore> core, runtime::RunSlot* slot) : core_(std::move(core)), slot_(slot) {}
  std::pair<void*, size_t> Find(uint32_t graph, int32_t index, TypeInfo type) const;

  std::shared_ptr<runtime::ExecutableCore> core_;
  runtime::RunSlot* slot_ = nullptr;
};

}  // namespace penstock
