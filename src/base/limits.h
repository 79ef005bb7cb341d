// What this process may use of the machine: the processors and memory that its affinity (taskset, a cpuset) and its
// cgroups, such as a container's, leave it.
//
// A cgroup's limit applies to the groups inside it too, so the smallest of the process's own limit and all
// above it counts.
//
// Threads:   free functions and a stateless class. They read files, so call them once and keep the answer.
// Errors:    none. Files that cannot be read, or make no sense, impose no limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::base {

// The limits of a process's cgroups, versions 1 and 2, read below `root`: from proc/self/cgroup, proc/self/mountinfo,
// and the mounts that these name.
class CgroupLimits {
 public:
  explicit CgroupLimits(std::string root = "") : root_(std::move(root)) {}

  // The processors that the quota amounts to, rounded up.
  std::optional<int> processors() const;
  std::optional<int64_t> memory_bytes() const;

 private:
  // The directories of a controller's groups, from the process's own to the topmost visible one; `unified`: version 2.
  std::vector<std::string> Groups(const std::string& controller, bool unified) const;
  std::vector<std::string> Lines(const std::string& path) const;
  std::optional<int64_t> Number(const std::string& path) const;

  const std::string root_;
};

// The processors that the calling thread, and threads it starts, may run on, limited by the cgroups'
// quotas; at least 1.
int UsableProcessors(const CgroupLimits& cgroup = CgroupLimits());

struct UsableMemory {
  int64_t bytes = 0;  // the smaller of the machine's and the cgroups'
  bool of_cgroup = false;
};
UsableMemory MemoryOfProcess(const CgroupLimits& cgroup = CgroupLimits());

}  // namespace penstock::base
