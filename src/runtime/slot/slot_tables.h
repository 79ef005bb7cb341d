// SlotTables: what a slot submits: the operations of a run with their arguments, and the addresses and shapes that they
// were made from.
//
// A table is parallel to the Program's table that its comment names. Most entries are made once for each slot; a launch
// writes what its bindings change (box_shapes.h, copy_operations.h, apply_shapes.h).
//
// Ownership: belongs to the slot; `pieces` and `param_bytes` point into the slot's memory.
// Threads:   used only by the slot's owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/detail/arguments.h"
#include "penstock/detail/replaceable.h"
#include "src/base/aligned_bytes.h"
#include "src/driver/driver.h"
#include "src/runtime/program/program.h"

namespace penstock::runtime {

// The layout of a box in one run, in bytes: its offset from the first element of the buffer that owns the memory, its
// row and slice pitch, and the size of an element.
struct BoxInRun {
  Shape shape;
  int64_t offset = 0, row = 0, slice = 0, element = 0;
};

struct SlotTables {
  Table<InstanceId, void*> pointers;  // a launch sets those of bound memory
  Table<InstanceId, void*> staging;  // what `pointers` held when the slot was made
  Table<BoxId, BoxInRun> boxes;
  Table<ParamId, int64_t> param_values;  // of integer parameters only, for extents
  // The values of all parameters, as in `args` if params_known; in pinned memory if ParamTables::refs are used.
  std::span<std::byte> param_bytes;
  bool params_known = false;
  base::AlignedBytes args;
  std::vector<void*> argv;
  Table<CopyId, driver::CopyOp> copies;
  Table<CopyId, bool> copies_disabled;  // this run does not make the copy
  Table<BatchId, driver::BatchOp> batches;
  driver::CopyPiece* pieces = nullptr;  // what this run copies, for all batches; in pinned memory
  Table<FillId, driver::FillOp> fills;
  Table<CallId, driver::KernelOp> kernels;
  // Filled if the slot has callables of its own (graph_cache.h), otherwise empty. The addresses of the host
  // fallbacks are in `kernels` too.
  Table<CallId, detail::Replaceable> callables, fallbacks;
  Table<HostStepId, driver::CopyOp> host_copies;  // set for steps that copy
  Table<HostStepId, bool> is_noop;  // no work in this run, though other steps wait for it
  Table<BufferId, bool> bound_pinned;  // whether the memory bound in this run is pinned

  // The address of a box of an instance; null if the instance has no memory.
  void* AddressOf(InstanceId instance, BoxId box) const;
  // Writes addresses of instances, or of boxes of them, into `args`.
  void PatchPointers(const std::vector<PointerPatch>& patches);
  // The object that the host calls for a call (Program::calls) declared as `code`.
  void* CallableOf(CallId call, const NodeCode& code) const {
    return callables.empty() ? code.callable.get() : callables[call].object();
  }
};

}  // namespace penstock::runtime
