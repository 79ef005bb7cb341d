// A system that gives no more threads: whoever asked for them gets a Status with the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdio>
#include <string>

#include "penstock/runtime.h"
#include "tests/process/child.h"

namespace penstock::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Scenario kThreadsRefused("threads refused", [](const std::string& devices) {
  // No system has room for such a stack.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, size_t{1} << 46) != 0) return 2;
  if (pthread_setattr_default_np(&attributes) != 0) return 3;
  const absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = devices, .host_device_threads = 5});
  std::printf("%s\n", runtime.status().ToString().c_str());
  return runtime.ok() ? 1 : 0;
});

TEST(ThreadsRefused, MakeCreateFailWithTheNumbers) {
  const ChildResult child = RunInChild(kThreadsRefused, "host:3");
  EXPECT_EQ(child.ended, "exit 0") << child;
  EXPECT_THAT(child.output, AllOf(HasSubstr("RESOURCE_EXHAUSTED: the system refuses threads for 3 host devices, 5 "
                                            "compute and 2 copy threads each: "),
                                  HasSubstr("; ask for fewer devices or a smaller host_device_threads")));
}

}  // namespace
}  // namespace penstock::testing
