// Internals of the public handles on an executable, of its bindings and of leases of its slots.
//
// Threads: stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "penstock/bindings.h"
#include "penstock/detail/internals.h"
#include "penstock/executable.h"
#include "penstock/lease.h"

namespace penstock::detail {

template <>
class Internals<Bindings> {
 public:
  static Bindings Make(std::shared_ptr<const Model> model) { return Bindings(std::move(model)); }
  static Bindings Make(std::shared_ptr<runtime::PendingBindings> pending) {
    Bindings bindings;
    bindings.pending_ = std::move(pending);
    return bindings;
  }
  static BoundValues& ValuesOf(Bindings& bindings) { return bindings.values_; }
  static const BoundValues& ValuesOf(const Bindings& bindings) { return bindings.values_; }
};

template <>
class Internals<Executable> {
 public:
  static Executable Make(std::shared_ptr<runtime::ExecutableSet> set) { return Executable(std::move(set)); }
  static const std::shared_ptr<runtime::ExecutableSet>& SetOf(const Executable& executable) { return executable.set_; }
};

template <>
class Internals<Lease> {
 public:
  static Lease Make(std::shared_ptr<runtime::ExecutableCore> core, runtime::RunSlot* slot) {
    return Lease(std::move(core), slot);
  }
  static const runtime::RunSlot& SlotOf(const Lease& lease) { return *lease.slot_; }
  static std::pair<void*, size_t> Find(const Lease& lease, uint32_t graph, int32_t index, TypeInfo type) {
    return lease.Find(graph, index, type);
  }
};

}  // namespace penstock::detail
