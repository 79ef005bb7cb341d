// Compiles a fuzzed graph and launches it with bindings as the bytes say: right ones, and ones with every mistake a
// binding can have.
//
// Threads: one.
#pragma once

#include <string>

#include "penstock/runtime.h"
#include "tests/fuzz/hostile_graph.h"

namespace penstock::fuzz {

// A runtime of two host devices, kept until the process ends.
Runtime& TwoHostDevices();

// The graph has no mistake and is small. Empty, or what is wrong: a bad request accepted, a good one refused, a refusal
// that names neither thing nor number, a run that ends in another way than its callables.
std::string CheckLaunches(const HostileGraph& graph, Runtime& runtime, ByteSource& bytes);

// Empty, or what is wrong with how a status tells of mistakes: every line begins with the graph and holds no control
// character, and some line (`any`) or one for each (`!any`) has the texts of the known ones.
std::string CheckRefusal(const absl::Status& status, const std::vector<Known>& known, bool any);

}  // namespace penstock::fuzz
