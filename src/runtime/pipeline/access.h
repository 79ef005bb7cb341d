// PipelineAccess: operations on public handles that pipelines need and users do not have.
//
// Threads: stateless.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "penstock/bindings.h"
#include "penstock/executable.h"
#include "penstock/item.h"
#include "penstock/lease.h"
#include "penstock/run.h"

namespace penstock::runtime {

class PipelineAccess {
 public:
  static const std::shared_ptr<ExecutableSet>& SetOf(const Executable& executable) { return executable.set_; }
  static Lease LeaseOn(std::shared_ptr<ExecutableCore> core, RunSlot* slot) { return Lease(std::move(core), slot); }
  static const RunSlot& SlotOf(const Lease& lease) { return *lease.slot_; }
  static std::pair<void*, size_t> Find(const Lease& lease, uint32_t graph, int32_t index, TypeInfo type) {
    const Lease::Memory memory = lease.Find(graph, index, type);
    return {memory.data, memory.elements};
  }
  // An item owned elsewhere, lent to a stage.
  static AnyItem Borrow(PipelineItem& item) { return AnyItem(nullptr, &item); }
  static bool Exists(const Run& run) { return run.state_ != nullptr; }
  static bool IsDrained(const Run& run) { return run.drained(); }
  static void Reset(Bindings& bindings) { bindings.Reset(); }
  static void SetBuffer(Bindings& bindings, uint32_t graph, int32_t index, TypeInfo type, BoundMemory memory) {
    bindings.SetBuffer(graph, index, type, std::move(memory));
  }
  static void AddPredecessor(Bindings& bindings, uint32_t graph, int32_t index, TypeInfo type, const Run& run) {
    bindings.AddPredecessor(graph, index, type, &run, nullptr);
  }
};

}  // namespace penstock::runtime
