// CheckedDriver: a decorator of any driver that asserts the rules of the driver interface on every call.
//
// What it asserts, of a call that names it: handles alive and of this driver, once destroyed not again; memory, event
// and stream of one device, which is current; copies, fills and kernel pointers inside live blocks, host memory of
// copies pinned; device memory written before it is read; no two unordered accesses of the same bytes, one of them
// writing; memory freed and streams destroyed only when the host has seen their work end; waits only for events that
// were recorded; nothing called from code that stands for a GPU's. A box that a kernel declares as `Write` is filled
// with kPoison before the kernel.
//
// Of graphs: nodes and predecessors are there, each graph and exec is in one call at a time, and at every launch each
// enabled node keeps the rules of a stream's operation, ordered by the edges alone: where one is missing, the two nodes
// are named. Nothing is poisoned for a kernel in a graph, which would take a node that nobody asked for.
//
// What a violation does: the call is refused with FailedPrecondition, naming the rule and the numbers, and the
// CallRecorder counts it. It is the library that is wrong then, or memory bound to two runs at once.
//
// Ownership: owns the driver below; what is alive when it goes is a violation too (unless a planned fault was fatal).
// Threads:   thread-safe. mu_ guards the books; it is not held while the driver below is called.
// Errors:    those of the driver below, planned faults (CallRecorder::FailNth), violations.
#pragma once

#include <memory>

#include "src/driver/checked/call_recorder.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

inline constexpr unsigned char kPoison = 0xFD;

std::unique_ptr<Driver> CreateCheckedDriver(std::unique_ptr<Driver> inner, std::shared_ptr<CallRecorder> witness);

}  // namespace penstock::driver::checked
