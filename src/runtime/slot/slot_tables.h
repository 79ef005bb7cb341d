// SlotTables: what a slot submits: the operations of a run with their arguments, and the addresses and shapes that they
// were made from.
//
// A table is parallel to the one of the Program that it names. Most entries are made once for each slot; a launch
// writes what its bindings change (box_shapes.h, copy_operations.h, apply_shapes.h).
//
// Ownership: of the slot; `pieces` and `param_bytes` point into memory of the slot's.
// Threads:   belongs to whoever owns the slot.
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

// Where a box lies in one run, in bytes: from the first element of the buffer that has the memory, from row to row,
// from slice to slice, and of one element.
struct BoxInRun {
  Shape shape;
  int64_t offset = 0, row = 0, slice = 0, element = 0;
};

struct SlotTables {
  std::vector<void*> pointers;  // an instance each; a launch sets those of bound memory
  std::vector<void*> staging;  // what `pointers` held when the slot was made
  std::vector<BoxInRun> boxes;  // a buffer each, then a Program::slices each
  std::vector<int64_t> param_values;  // of integers only, for extents
  // Of all parameters, as `args` has them where params_known; in pinned memory where ParamTables::refs are.
  std::span<std::byte> param_bytes;
  bool params_known = false;
  base::AlignedBytes args;
  std::vector<void*> argv;
  std::vector<driver::CopyOp> copies;  // Program::copies
  std::vector<bool> copies_off;  // the same: this run does not make it
  std::vector<driver::BatchOp> batches;  // Program::batches
  driver::CopyPiece* pieces = nullptr;  // of all batches, in pinned memory: what this run copies
  std::vector<driver::FillOp> fills;  // Program::fills
  std::vector<driver::KernelOp> kernels;  // Program::calls
  // Program::calls where the slot has callables of its own (graph_cache.h), else empty. The addresses of the host
  // fallbacks are in `kernels` too.
  std::vector<detail::Replaceable> callables, fallbacks;
  std::vector<driver::CopyOp> host_copies;  // Program::hosts, of those that copy
  std::vector<bool> is_noop;  // the same: it has nothing to do in this run, and others still wait for it
  std::vector<bool> bound_pinned;  // a buffer each: whether the memory bound in this run is pinned

  // Where a box of an instance begins; null where the instance has no memory.
  void* AddressOf(int32_t instance, int32_t box) const;
  // Writes addresses into `args`: of an instance, or of where a box of it begins.
  void PatchPointers(const std::vector<PointerPatch>& patches);
  // What the host calls for a call (Program::calls) that was declared as `code`.
  void* CallableOf(int32_t call, const NodeCode& code) const {
    return callables.empty() ? code.callable.get() : callables[static_cast<size_t>(call)].object();
  }
};

}  // namespace penstock::runtime
