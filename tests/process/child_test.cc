// The watcher of children itself: every way to end is told apart, a hang is reported and not waited for.
#include "tests/process/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace penstock::test_support::child_test {
namespace {

using ::testing::HasSubstr;

const Scenario kReturns("child: returns its argument", [](const std::string& code) { return std::stoi(code); });
const Scenario kQuits("child: quick_exit", [](const std::string&) -> int { std::quick_exit(5); });
const Scenario kCrashes("child: segmentation fault", [](const std::string&) {
  signal(SIGSEGV, SIG_DFL);  // sanitizers have a handler of their own
  return raise(SIGSEGV);
});
const Scenario kHangs("child: hangs", [](const std::string&) -> int {
  std::fputs("about to hang\n", stderr);
  for (;;) pause();
});
const Scenario kPrints("child: prints", [](const std::string& text) {
  std::printf("%s|", text.c_str());
  std::fflush(stdout);
  const char* variable = std::getenv("PENSTOCK_CHILD_TEST");
  std::fprintf(stderr, "%s\n", variable == nullptr ? "unset" : variable);
  return 0;
});
const Scenario kLeavesAChildBehind("child: leaves a child behind", [](const std::string&) {
  if (fork() == 0) {
    for (;;) pause();
  }
  return 0;
});

TEST(Child, AReturnIsItsExitCode) {
  EXPECT_EQ(RunInChild(kReturns, "0").ended, "exit 0");
  EXPECT_EQ(RunInChild(kReturns, "42").ended, "exit 42");
}

TEST(Child, QuickExitIsItsExitCode) { EXPECT_EQ(RunInChild(kQuits).ended, "exit 5"); }

TEST(Child, ASignalIsNamed) { EXPECT_EQ(RunInChild(kCrashes).ended, "signal 11 (Segmentation fault)"); }

TEST(Child, OutputArgumentAndEnvironmentArrive) {
  EXPECT_EQ(RunInChild(kPrints, "an argument").output, "an argument|unset\n");
  EXPECT_EQ(RunInChild(kPrints, "", {.environment = {"PENSTOCK_CHILD_TEST=set"}}).output, "|set\n");
}

TEST(Child, AHangIsReportedWithItsThreads) {
  const ChildResult result = RunInChild(kHangs, "", {.limit = std::chrono::milliseconds(1500)});
  EXPECT_EQ(result.ended, "hang");
  EXPECT_THAT(result.output, HasSubstr("about to hang\nthread "));
}

TEST(Child, WhatItLeavesBehindIsNotWaitedFor) { EXPECT_EQ(RunInChild(kLeavesAChildBehind).ended, "exit 0"); }

}  // namespace
}  // namespace penstock::test_support::child_test
