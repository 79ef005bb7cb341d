// Compiles sources, several at a time, each once in a process, and takes from the disk what an earlier one has made.
//
// Threads:   thread-safe. It compiles on the calling thread and on some that live as long as the call; threads that
//            want the same kernel at once wait for the one that compiles it.
// Errors:    each kernel has a Status of its own, Nvrtc's, or ResourceExhausted for want of memory; what is wrong with
//            the cache is logged once and costs time only. FailedPrecondition for a call out of a hook's `tell`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/log_level.h"
#include "src/jit/kernel_image.h"
#include "src/jit/source_key.h"

namespace penstock::jit {

using SharedImage = std::shared_ptr<const KernelImage>;

struct CompileHooks {
  // Called now and then on the calling thread, with how many kernels are made; if it does not return OK, the call ends
  // soon, with that. It cannot compile sources itself, nor wait for a thread that does. May be empty.
  std::function<absl::Status(size_t done, size_t total)> tell{};
  // For warnings of the compiler and of the cache, on any of the threads; it may compile. May be empty.
  std::function<void(LogLevel level, std::string_view text)> log{};
};

// One result for each kernel, in this order. Not OK if `hooks.tell` has ended it.
absl::StatusOr<std::vector<absl::StatusOr<SharedImage>>> CompileSources(const std::vector<WantedKernel>& wanted,
                                                                        const CompileHooks& hooks);

// How many sources NVRTC has compiled in this process, and how many came from the disk; for tests.
struct CompileCounts {
  int64_t compiled = 0, from_disk = 0;
};
CompileCounts CountsOfCompiled();
// Forgets what the process has compiled, as a new process has; for tests and measurements.
void ForgetCompiled();

}  // namespace penstock::jit
