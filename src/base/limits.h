// What this process may use of the machine: the processors and the memory that its affinity (taskset, a cpuset) and its
// cgroups, as those of a container, leave it.
//
// A cgroup's limit holds for the groups inside it too, so the least of the process's own and all above it counts.
//
// Threads: free functions and a class without state. They read files, so ask once and keep the answer.
// Errors:  none. What cannot be read, or makes no sense, limits nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::base {

// The limits of the cgroups of a process, versions 1 and 2, as the files below `root` give them: proc/self/cgroup,
// proc/self/mountinfo, and what is mounted where that says.
class CgroupLimits {
 public:
  explicit CgroupLimits(std::string root = "") : root_(std::move(root)) {}

  // As many processors as the quota amounts to, rounded up.
  std::optional<int> processors() const;
  std::optional<int64_t> memory_bytes() const;

 private:
  // The directories of a controller's groups, from the process's own to the topmost that can be seen; `unified`: those
  // of version 2.
  std::vector<std::string> Groups(const std::string& controller, bool unified) const;
  std::vector<std::string> Lines(const std::string& path) const;
  std::optional<int64_t> Number(const std::string& path) const;

  const std::string root_;
};

// Processors that the calling thread, and threads it starts, may run on and the cgroups' quotas leave time for; at
// least 1.
int UsableProcessors(const CgroupLimits& cgroup = CgroupLimits());

struct UsableMemory {
  int64_t bytes = 0;  // the smaller of the machine's and the cgroups'
  bool of_cgroup = false;
};
UsableMemory MemoryOfProcess(const CgroupLimits& cgroup = CgroupLimits());

}  // namespace penstock::base
