// Progress: how far a long call of the library has come, for a program that shows it or wants to be able to stop.
//
//   ps::CompileOptions options;
//   options.progress = [](const ps::Progress& at) {
//     std::printf("%.*s (%ld of %ld)\n", int(at.what.size()), at.what.data(), long(at.done), long(at.total));
//     return !interrupted;
//   };
//
// A call that takes less than a tenth of a second tells nothing, and a longer one at most ten times a second. What is
// told is about to begin; a step that takes long is not told of again while it lasts.
//
// Threads: the function is called on the thread that made the call, with no lock of the library held. The call then
//          waits for it. Like other user code that the library calls, it may not launch and wait for runs. Nor may it
//          compile graphs with kernels from sources, which is refused with FailedPrecondition, or wait for a thread
//          that does.
// Errors:  a function that returns false ends the call with Cancelled, one that throws with Internal and what it threw.
//          The call then has had no effect. An empty function is never called.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace penstock {

// The next step of a call.
struct Progress {
  std::string_view what;  // "graph 'solver': loading kernels"; valid while the function runs
  int64_t done = 0;  // how many steps of `what` are over
  int64_t total = 0;  // how many it has
};

// Returns whether to go on.
using ProgressFunction = std::function<bool(const Progress&)>;

}  // namespace penstock
