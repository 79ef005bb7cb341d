// What the files of cgroups, versions 1 and 2, leave a process; they are read under a root of the test's own.
#include "src/base/limits.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/sysinfo.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace penstock::base::limits_test {
namespace {

constexpr char kNoLimit[] = "9223372036854771712";  // as version 1 writes it

class Cgroup : public testing::Test {
 protected:
  Cgroup() {
    std::string pattern = testing::TempDir() + "penstock_cgroup_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~Cgroup() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  void UseVersion2(const std::string& group, const std::string& mounted = "/") const {
    Write("/proc/self/cgroup", "0::" + group);
    Write("/proc/self/mountinfo", "22 1 0:20 / /proc rw - proc proc rw\n30 23 0:26 " + mounted +
                                      " /cg rw,nosuid shared:9 - cgroup2 cgroup2 rw");
  }
  void UseVersion1(const std::string& group, const std::string& mounted = "/") const {
    Write("/proc/self/cgroup", "9:pids:/\n4:memory:" + group + "\n3:cpuset:/\n2:cpu,cpuacct:" + group + "\n0::/");
    Write("/proc/self/mountinfo", "32 31 0:29 " + mounted + " /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 " +
                                      mounted +
                                      " /cg/memory rw - cgroup cgroup rw,memory\n36 31 0:33 / /cg/cpuset rw "
                                      "- cgroup cgroup rw,cpuset");
  }
  CgroupLimits limits() const { return CgroupLimits(root_); }

  std::string root_;
};

TEST_F(Cgroup, Version2LimitsByMaxAndHigh) {
  UseVersion2("/job");
  Write("/cg/job/memory.max", "314572800");
  Write("/cg/job/cpu.max", "150000 100000");
  EXPECT_EQ(limits().memory_bytes(), 314572800);
  EXPECT_EQ(limits().processors(), 2);  // rounded up
  Write("/cg/job/memory.high", "104857600");
  EXPECT_EQ(limits().memory_bytes(), 104857600);
}

TEST_F(Cgroup, Version1LimitsByItsControllers) {
  UseVersion1("/job");
  Write("/cg/memory/job/memory.limit_in_bytes", "314572800");
  Write("/cg/cpu/job/cpu.cfs_quota_us", "400000");
  Write("/cg/cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limits().memory_bytes(), 314572800);
  EXPECT_EQ(limits().processors(), 4);
}

TEST_F(Cgroup, TheLeastOfAllGroupsAboveCounts) {
  UseVersion2("/a/b/c");
  Write("/cg/a/memory.max", "1000");
  Write("/cg/a/b/memory.max", "max");
  Write("/cg/a/b/c/memory.max", "2000");
  Write("/cg/a/b/cpu.max", "50000 100000");
  Write("/cg/a/b/c/cpu.max", "800000 100000");
  EXPECT_EQ(limits().memory_bytes(), 1000);
  EXPECT_EQ(limits().processors(), 1);  // at least
  UseVersion1("/a/b/c");
  Write("/cg/memory/memory.limit_in_bytes", "500");
  Write("/cg/memory/a/b/c/memory.limit_in_bytes", "600");
  EXPECT_EQ(limits().memory_bytes(), 500);
}

// The path is that of the machine, of which a container sees its own part alone, or none.
TEST_F(Cgroup, WhatAContainerSeesOfItsGroupCounts) {
  Write("/cg/memory/memory.limit_in_bytes", "700");
  Write("/cg/memory/job/memory.limit_in_bytes", "600");
  UseVersion1("/docker/x/job", "/docker/x");
  EXPECT_EQ(limits().memory_bytes(), 600);
  for (const char* const other : {"/docker/x", "/../../other", "/docker/xy", "/"}) {
    UseVersion1(other, "/docker/x");
    EXPECT_EQ(limits().memory_bytes(), 700) << other;
  }
}

TEST_F(Cgroup, HybridsHaveBothVersions) {
  Write("/proc/self/cgroup", "4:memory:/m\n0::/u");
  Write("/proc/self/mountinfo",
        "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n36 31 0:33 / /cg/un\\040ified rw - cgroup2 none rw");
  Write("/cg/memory/m/memory.limit_in_bytes", kNoLimit);
  Write("/cg/un ified/u/cpu.max", "250000 100000");
  EXPECT_EQ(limits().processors(), 3);
  EXPECT_EQ(MemoryOfProcess(limits()).of_cgroup, false);
}

TEST_F(Cgroup, WhatMakesNoSenseLimitsNothing) {
  EXPECT_EQ(limits().memory_bytes(), std::nullopt);  // no file at all
  UseVersion2("/job");
  for (const char* const text : {"max", "", "-1", "0", "much", "99999999999999999999"}) {
    Write("/cg/job/memory.max", text);
    EXPECT_EQ(limits().memory_bytes(), std::nullopt) << text;
  }
  for (const char* const text : {"max 100000", "", "100000", "-1 100000", "100000 0", "0 100000", "x y"}) {
    Write("/cg/job/cpu.max", text);
    EXPECT_EQ(limits().processors(), std::nullopt) << text;
  }
  Write("/cg/job/cpu.max", "9223372036854775807 1");
  EXPECT_EQ(limits().processors(), std::numeric_limits<int>::max());
  UseVersion1("/job");
  Write("/cg/cpu/job/cpu.cfs_quota_us", "-1");
  Write("/cg/cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limits().processors(), std::nullopt);
  Write("/proc/self/cgroup", "nonsense\n0:\n4:memory");
  Write("/proc/self/mountinfo", "- - -\n35 31 0:32 / - cgroup\n");
  EXPECT_EQ(limits().memory_bytes(), std::nullopt);
}

TEST_F(Cgroup, TheSmallerOfMachineAndGroupIsWhatTheProcessMayUse) {
  struct sysinfo machine{};
  ASSERT_EQ(sysinfo(&machine), 0);
  const int64_t all = static_cast<int64_t>(machine.totalram) * machine.mem_unit;
  EXPECT_EQ(MemoryOfProcess(limits()).bytes, all);
  UseVersion2("/");
  Write("/cg/memory.max", "314572800");
  EXPECT_EQ(MemoryOfProcess(limits()).bytes, 314572800);
  EXPECT_TRUE(MemoryOfProcess(limits()).of_cgroup);
  Write("/cg/memory.max", kNoLimit);
  EXPECT_EQ(MemoryOfProcess(limits()).bytes, all);
  EXPECT_FALSE(MemoryOfProcess(limits()).of_cgroup);
}

TEST_F(Cgroup, ProcessorsAreThoseOfTheThreadsAffinityAndTheQuota) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(UsableProcessors(limits()), CPU_COUNT(&before));
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(UsableProcessors(limits()), 1);
  }).join();
  UseVersion2("/");
  Write("/cg/cpu.max", "100000 100000");
  EXPECT_EQ(UsableProcessors(limits()), 1);
}

}  // namespace
}  // namespace penstock::base::limits_test
