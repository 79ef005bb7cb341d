// What a Task needs on host devices (penstock/task.h): a thread's memory for it, and the failure of one that takes more
// than was declared.
//
// Threads: any.
#include <algorithm>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "penstock/task.h"
#include "src/base/catch_all.h"
#include "src/base/kernel_limits.h"
#include "src/base/status.h"

namespace penstock::detail {
namespace {

// Grows to what any Task may have at once, so a thread allocates once.
struct MemoryOfThread {
  std::unique_ptr<std::byte[]> bytes;
  int64_t size = 0;
};
thread_local MemoryOfThread memory_of_tasks;

}  // namespace

std::byte* TaskMemory(int64_t bytes) {
  MemoryOfThread& memory = memory_of_tasks;
  if (bytes > memory.size) {
    const int64_t size = std::max(bytes, base::KernelLimits().shared_bytes);
    memory.bytes = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(size));
    memory.size = size;
  }
  return memory.bytes.get();
}

void RefuseShared(int64_t count, int64_t bytes_each, int64_t from_byte, int64_t declared_bytes) {
  throw base::CallFailure(absl::OutOfRangeError(base::Av(
      "the callable took " + std::to_string(count) + " elements of " + std::to_string(bytes_each) +
      " bytes, from byte " + std::to_string(from_byte) + " on, of a shared memory of " +
      std::to_string(declared_bytes) +
      " bytes; declare enough in TaskOptions::shared_bytes, and begin at a multiple of the elements' alignment")));
}

}  // namespace penstock::detail
