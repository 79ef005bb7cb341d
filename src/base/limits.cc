// Finds and reads cgroups; cgroups(7), proc(5). See limits.h.
#include "src/base/limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace penstock::base {
namespace {

// The smaller of two optional limits.
template <class T>
std::optional<T> Least(std::optional<T> a, std::optional<T> b) {
  return !a ? b : !b ? a : std::min(*a, *b);
}

bool Names(const std::string& list, const std::string& controller) {
  const std::vector<std::string> names = absl::StrSplit(list, ',');
  return std::find(names.begin(), names.end(), controller) != names.end();
}

// Mountinfo escapes blanks and backslashes in paths as \040 and the like.
std::string Unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size();
    out += escape ? static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8)) : text[i];
    if (escape) i += 3;
  }
  return out;
}

// A mounted hierarchy of groups: the path `group` is visible at `at`.
struct Mount {
  std::string group, at;
};

// "31 23 0:28 / /sys/fs/cgroup rw shared:9 - cgroup cgroup rw,memory"
std::optional<Mount> MountOf(const std::string& line, const std::string& controller, bool unified) {
  const size_t parting = line.find(" - ");
  if (parting == std::string::npos) return std::nullopt;
  const std::vector<std::string> place = absl::StrSplit(line.substr(0, parting), ' ');
  const std::vector<std::string> kind = absl::StrSplit(line.substr(parting + 3), ' ');
  if (place.size() < 5 || kind.size() < 3 || kind[0] != (unified ? "cgroup2" : "cgroup")) return std::nullopt;
  if (!unified && !Names(kind[2], controller)) return std::nullopt;
  return Mount{Unescaped(place[3]), Unescaped(place[4])};
}

// The process's group in "4:cpu,memory:/a/b" or, for version 2, "0::/a/b".
std::optional<std::string> GroupOf(const std::string& line, const std::string& controller, bool unified) {
  const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
  if (parts.size() < 3) return std::nullopt;
  const bool wanted = unified ? parts[0] == "0" && parts[1].empty() : Names(parts[1], controller);
  return wanted ? std::optional<std::string>(parts[2]) : std::nullopt;
}

// The part of the group's path below the mount. None if the group is elsewhere, as when a container's files are mounted
// without its namespace; then only the mount itself is visible.
std::string Below(const Mount& mount, const std::string& group) {
  const std::string above = mount.group == "/" ? "" : mount.group;
  if (group == above || !absl::StartsWith(group, above + "/") || absl::StrContains(group, "/..")) return "";
  return group == "/" ? "" : group.substr(above.size());
}

int ProcessorsOfAffinity() {
  for (size_t most = CPU_SETSIZE; most <= size_t{1} << 20; most *= 2) {
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(most);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int error = errno;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return count;
    if (error != EINVAL) break;  // EINVAL: the machine has more processors than the set holds
  }
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

std::vector<std::string> CgroupLimits::Lines(const std::string& path) const {
  std::vector<std::string> lines;
  std::ifstream in(root_ + path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// "max", -1 and other words mean no limit.
std::optional<int64_t> CgroupLimits::Number(const std::string& path) const {
  const std::vector<std::string> lines = Lines(path);
  int64_t number = 0;
  if (lines.empty() || !absl::SimpleAtoi(lines[0], &number) || number <= 0) return std::nullopt;
  return number;
}

std::vector<std::string> CgroupLimits::Groups(const std::string& controller, bool unified) const {
  std::optional<std::string> group;
  for (const std::string& line : Lines("/proc/self/cgroup")) {
    if (!group) group = GroupOf(line, controller, unified);
  }
  std::vector<std::string> groups;
  if (!group) return groups;
  for (const std::string& line : Lines("/proc/self/mountinfo")) {
    const std::optional<Mount> mount = MountOf(line, controller, unified);
    if (!mount) continue;
    for (std::string below = Below(*mount, *group);; below.resize(below.rfind('/'))) {
      groups.push_back(mount->at + below);
      if (below.empty()) break;
    }
  }
  return groups;
}

std::optional<int> CgroupLimits::processors() const {
  std::optional<double> least;
  for (const std::string& group : Groups("cpu", /*unified=*/false)) {
    const std::optional<int64_t> quota = Number(group + "/cpu.cfs_quota_us");
    const std::optional<int64_t> period = Number(group + "/cpu.cfs_period_us");
    if (quota && period)
      least = Least(least, std::optional(static_cast<double>(*quota) / static_cast<double>(*period)));
  }
  for (const std::string& group : Groups("cpu", /*unified=*/true)) {
    for (const std::string& line : Lines(group + "/cpu.max")) {
      std::istringstream in(line);  // "50000 100000", "max 100000"
      double quota = 0, period = 0;
      if (in >> quota >> period && quota > 0 && period > 0) least = Least(least, std::optional(quota / period));
    }
  }
  if (!least) return std::nullopt;
  return static_cast<int>(std::ceil(std::clamp(*least, 1.0, double{std::numeric_limits<int>::max()})));
}

std::optional<int64_t> CgroupLimits::memory_bytes() const {
  std::optional<int64_t> least;
  for (const std::string& group : Groups("memory", /*unified=*/false)) {
    least = Least(least, Number(group + "/memory.limit_in_bytes"));
  }
  for (const std::string& group : Groups("memory", /*unified=*/true)) {
    least = Least(least, Number(group + "/memory.max"));
    least = Least(least, Number(group + "/memory.high"));  // beyond it the process is throttled to a crawl
  }
  return least;
}

int UsableProcessors(const CgroupLimits& cgroup) {
  const int allowed = std::max(1, ProcessorsOfAffinity());
  return std::min(allowed, cgroup.processors().value_or(allowed));
}

UsableMemory MemoryOfProcess(const CgroupLimits& cgroup) {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const int64_t limit = cgroup.memory_bytes().value_or(machine);  // version 1 without a limit has 2^63 less a page
  return limit < machine ? UsableMemory{limit, true} : UsableMemory{machine, false};
}

}  // namespace penstock::base
