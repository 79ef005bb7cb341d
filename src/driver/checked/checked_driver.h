// CheckedDriver: a decorator for any driver that asserts the rules of the driver interface on every call.
//
// For the objects that a call names, it asserts: handles are alive, belong to this driver and are destroyed once;
// memory, event and stream are on one device, which is current; copies, fills and kernel pointers stay inside live
// blocks, and copies use pinned host memory; device memory is written before it is read; no two unordered accesses
// touch the same bytes, one of them writing; memory is freed and streams are destroyed only after the host has seen
// their work end; waits name only recorded events; code that stands in for a GPU's calls nothing. A box that a kernel
// writes or uses as scratch without needing its contents is filled with kPoison before the kernel.
//
// For graphs: nodes and predecessors exist, each graph and exec is in one call at a time, and at every launch each
// enabled node obeys the rules of a stream operation, ordered by edges alone; a missing edge is reported with its two
// nodes. Nothing is poisoned for a kernel in a graph, since that would need an extra node.
//
// A call that violates a rule is refused with FailedPrecondition, naming the rule and the numbers, and the CallRecorder
// counts it. The fault is then the library's, or memory was bound to two runs simultaneously.
//
// Ownership: owns the driver below; objects alive at its end are a violation too (unless a planned fault was fatal).
// Threads:   thread-safe. mu_ guards the books; it is not held during calls of the driver below.
// Errors:    those of the driver below, planned faults (CallRecorder::FailNth), violations.
#pragma once

#include <memory>

#include "src/driver/checked/call_recorder.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

inline constexpr unsigned char kPoison = 0xFD;

std::unique_ptr<Driver> CreateCheckedDriver(std::unique_ptr<Driver> inner, std::shared_ptr<CallRecorder> witness);

}  // namespace penstock::driver::checked
