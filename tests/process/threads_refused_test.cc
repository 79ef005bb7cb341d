// A system that gives no more threads: whoever asked for them gets a Status with the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "tests/process/child.h"

namespace penstock::test_support::threads_refused_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// From now on: no system has room for such a stack.
bool RefuseThreads() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  return pthread_attr_setstacksize(&attributes, size_t{1} << 47) == 0 && pthread_setattr_default_np(&attributes) == 0;
}

const Scenario kThreadsRefused("threads refused", [](const std::string& devices) {
  if (!RefuseThreads()) return 2;
  const absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = devices, .host_device_threads = 5});
  std::printf("%s\n", runtime.status().ToString().c_str());
  return runtime.ok() ? 1 : 0;
});

TEST(ThreadsRefused, MakeCreateFailWithTheNumbers) {
  const ChildResult child = RunInChild(kThreadsRefused, "host:3");
  EXPECT_EQ(child.ended, "exit 0") << child;
  EXPECT_THAT(child.output,
              AllOf(HasSubstr("RESOURCE_EXHAUSTED: the system refuses threads for 3 host devices, 7 threads each: "),
                    HasSubstr("; ask for fewer devices or a smaller host_device_threads")));
}

// What is made after Create: the ring's threads, the one that answers devices, and a pipeline's.
const Scenario kThreadsRefusedLater("threads refused later", [](const std::string& devices) {
  Runtime runtime = *Runtime::Create({.devices = devices, .workers = 1, .host_device_threads = 1});
  Graph plain("plain"), staged("staged"), hostcalls("asks");
  auto x = plain.InOut<int>("x", 4);
  plain.Fill("fill", Write(x), 1);
  auto large = staged.InOut<std::byte>("large", int64_t{1} << 20);
  staged.Fill("fill", Write(large), std::byte{1});
  auto y = hostcalls.InOut<int>("y", 4);
  hostcalls.Fill("before", Write(y), 1);
  hostcalls.Host("host", [](std::span<int> v) { ++v[0]; }, ReadWrite(y)).Inline();
  hostcalls.Fill("after", Write(y), 2);
  Executable exec = *runtime.Compile(plain);
  if (!RefuseThreads()) return 2;
  std::printf("staged: %s\n", runtime.Compile(staged).status().ToString().c_str());
  std::printf("asks: %s\n", runtime.Compile(hostcalls).status().ToString().c_str());
  Stages<int> stages;
  stages.Host("host", [](int&) {}, {.workers = 3});
  stages.Run("run", exec, [](Item<int>&) {});
  std::printf("pipeline: %s\n", Pipeline<int>::Create(std::move(stages)).status().ToString().c_str());
  std::vector<int> v(4);
  return exec.Launch(exec.bindings().Set(x, v))->Wait().ok() ? 0 : 1;  // what is there already goes on
});

TEST(ThreadsRefused, AfterCreateFailWhatNeedsThemAndNothingElse) {
  const ChildResult child = RunInChild(kThreadsRefusedLater, "host:1");
  EXPECT_EQ(child.ended, "exit 0") << child;
  EXPECT_THAT(child.output, HasSubstr("staged: RESOURCE_EXHAUSTED: graph 'staged'"));
  EXPECT_THAT(child.output, HasSubstr("pipeline: RESOURCE_EXHAUSTED: pipeline: the system refuses its threads: "));
}

}  // namespace
}  // namespace penstock::test_support::threads_refused_test
