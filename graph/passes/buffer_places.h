// BufferPlaces: the places that a buffer's contents may be in, and what each is for.
//
//   bound    the user's memory (Input, Output, InOut). Host nodes use it directly.
//   pinned   the slot's pinned memory: for staging a kHost buffer, for a Buffer that host nodes use or that is declared
//            kPinned, for a buffer declared kSlot, which has no bound memory, or for a parameter.
//   device   one for each device
//
// Ownership: borrows the stages.
// Threads:   immutable.
#pragma once

#include <cstdint>

#include "graph/passes/draft.h"

namespace penstock::graph {

inline constexpr int32_t kBoundPlace = 0, kPinnedPlace = 1, kFirstDevicePlace = 2;

class BufferPlaces {
 public:
  BufferPlaces(const Records& records, const Placed& placed)
      : records_(records), placed_(placed), count_(kFirstDevicePlace + records.options.devices.count()) {}

  int32_t count() const { return count_; }
  bool is_state(BufferId b) const { return decl(b).role == BufferRole::kState; }
  bool is_leased(BufferId b) const {  // or a parameter or a count: in the slot before or after the run
    return IsInSlot(decl(b).role) || (IsBound(decl(b).role) && decl(b).where == Where::kSlot);
  }
  bool is_bound(BufferId b) const {  // to host memory
    return IsBound(decl(b).role) && (decl(b).where == Where::kHost || decl(b).where == Where::kPinned);
  }
  bool is_on_device(BufferId b) const { return !is_bound(b) && decl(b).where == Where::kDevice; }  // as declared
  // Where the contents must be at the end, for buffers that outlive the run.
  int32_t home(BufferId b) const {
    if (placed_.home[b] >= 0) return kFirstDevicePlace + placed_.home[b];
    return is_leased(b) ? kPinnedPlace : kBoundPlace;
  }
  // Whether it is device memory that the slot does not own. Access to that is ordered on a lane; so copies through the
  // ring, which has none, also go through the slot's arena.
  bool IsHome(BufferId b, int32_t place) const {
    return placed_.home[b] >= 0 && place == kFirstDevicePlace + placed_.home[b];
  }
  // Whether the contents are at home before the run.
  bool has_contents(BufferId b, const Checked& checked) const {
    const BufferRole role = decl(b).role;
    return role == BufferRole::kInput || role == BufferRole::kInOut || role == BufferRole::kState ||
           role == BufferRole::kParam || checked.partial_output[b];
  }
  // The place that host code uses, and the place that copies to and from devices use.
  int32_t host_place(BufferId b) const { return is_bound(b) ? kBoundPlace : kPinnedPlace; }
  int32_t copy_place(BufferId b) const {
    return is_bound(b) && (decl(b).where == Where::kPinned || rings(b)) ? kBoundPlace : kPinnedPlace;
  }
  // Whether its bound memory is staged through the ring if it is not pinned.
  bool rings(BufferId b) const {
    return is_bound(b) && decl(b).where == Where::kHost && records_.buffer_bytes[b] > records_.options.ring_from_bytes;
  }
  // Whether the buffer's contents must be where the access is made: what it reads, or what it may leave unwritten in
  // its box.
  bool NeedsContents(const BoxRef& ref) const {
    if (ref.mode == AccessMode::kScratch || ref.box < 0) return false;
    const bool drops = ref.mode == AccessMode::kWrite || (ref.mode == AccessMode::kWriteSome && !KeepsRest(ref.base));
    return !drops || !ref.exact;
  }

 private:
  // Whether elements that no node writes keep their values.
  bool KeepsRest(BufferId b) const { return decl(b).role != BufferRole::kInternal && !decl(b).is_counted; }
  const BufferFacts& decl(BufferId b) const { return records_.buffers[b]; }

  const Records& records_;
  const Placed& placed_;
  const int32_t count_;
};

}  // namespace penstock::graph
