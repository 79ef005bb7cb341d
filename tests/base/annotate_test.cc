// Annotations for tools, as a tool of the tests' own hears them (nvtx_injection_cuda.cc). NVTX looks for a tool once a
// process, so each scenario is a child.
#include "src/base/annotate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "tests/process/child.h"
#include "tests/support/held_graph.h"
#include "tests/support/status.h"

namespace penstock::annotate_test {
namespace {

using test_support::ChildResult;
using test_support::RunInChild;
using test_support::Scenario;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// Compiles 'annotated', whose host node 'second' follows 'first', and runs it four times; the last run fails in
// 'first'.
int RunFourTimes(const std::string&) {
  Runtime runtime = *Runtime::Create({.devices = "host", .workers = 2, .host_device_threads = 1});
  Graph graph("annotated");
  const BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 4);
  int left = 3;
  graph.Host(
      "first", [&](std::span<int32_t>) { return left-- > 0 ? absl::OkStatus() : absl::InternalError("on purpose"); },
      ReadWrite(x));
  graph.Host("second", [](std::span<int32_t>) {}, ReadWrite(x));
  Executable exec = *runtime.Compile(graph, {.slots = 1, .mode = Mode::kStream});
  std::vector<int32_t> words(4);
  int failed = 0;
  for (int run = 0; run < 4; ++run) failed += exec.Launch(exec.bindings().Set(x, words))->Wait().ok() ? 0 : 1;
  return failed == 1 ? 0 : 1;
}
const Scenario kRuns("annotate: four runs", RunFourTimes);

// The second launch finds the only slot taken.
const Scenario kWaits("annotate: a wait for a slot", [](const std::string&) {
  HeldGraph held;
  Runtime runtime = HostRuntime();
  Executable exec = *runtime.Compile(held.graph, {.slots = 1, .mode = Mode::kStream});
  std::vector<int32_t> words(4);
  const Bindings io = exec.bindings().Set(held.x, words);
  auto first = exec.Launch(io);
  if (!held.latch.AwaitArrived()) return 1;
  std::thread opens([&] {
    while (runtime.Metrics().AllGraphs().waiting == 0) std::this_thread::yield();
    held.latch.Open();
  });
  const bool ok = exec.Launch(io)->Wait().ok();
  opens.join();
  return ok && first->Wait().ok() ? 0 : 1;
});

struct IsPositive {
  PENSTOCK_HOST_DEVICE bool operator()(const int32_t* x) const { return *x > 0; }
};

// The host drives a construct whose body has a host node that may fail.
const Scenario kConstruct("annotate: a construct", [](const std::string&) {
  Runtime runtime = HostRuntime();
  Graph graph("around");
  const BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 1);
  graph.If("maybe", When(IsPositive{}, Read(x)),
           [&](Graph& then) { then.Host("inside", [](std::span<int32_t>) {}, ReadWrite(x)); });
  Executable exec = *runtime.Compile(graph, {.slots = 1});
  std::vector<int32_t> words(1, 1);
  return exec.Launch(exec.bindings().Set(x, words))->Wait().ok() ? 0 : 1;
});

const Scenario kPipeline("annotate: a pipeline", [](const std::string&) {
  Runtime runtime = HostRuntime();
  Graph graph("in a pipeline");
  const BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 1, kSlot);
  graph.Host("inside", [](std::span<int32_t>) {}, ReadWrite(x));
  Executable exec = *runtime.Compile(graph, {.slots = 1});
  Stages<int> stages;
  stages.Host("decode", [](int&) {});
  stages.Run("work", exec, [](Item<int>&) {});
  auto pipe = Pipeline<int>::Create(std::move(stages));
  std::vector<int> items{1, 2, 3};
  size_t next = 0;
  const auto pull = [&]() -> std::optional<int> {
    return next < items.size() ? std::optional(items[next++]) : std::nullopt;
  };
  return pipe.ok() && pipe->Run(pull, [](Item<int>&) {}).ok() ? 0 : 1;
});

const Scenario kNamesAStream("annotate: a stream", [](const std::string&) {
  base::StartAnnotating();
  int stream = 0;
  base::AnnotateStream(&stream, "saxpy slot 0 upload lane 0");
  base::AnnotateStream(nullptr, "a host device's");
  return 0;
});

const Scenario kLooksForATool("annotate: whether there is a tool", [](const std::string&) {
  base::StartAnnotating();
  const bool any = base::Annotating() || base::AnnotationOf("text") != nullptr;
  std::printf("%s\n", any ? "a tool" : "no tool");
  return 0;
});

struct Call {
  std::string call, thread, domain, text, number;
};

std::vector<Call> CallsOf(const ChildResult& child) {
  std::vector<Call> calls;
  std::istringstream lines(child.output);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
    if (fields.size() == 6 && fields[0] == "nvtx")
      calls.push_back({fields[1], fields[2], fields[3], fields[4], fields[5]});
  }
  return calls;
}

std::vector<Call> CallsOf(const std::vector<Call>& all, const std::string& call) {
  std::vector<Call> of;
  for (const Call& one : all) {
    if (one.call == call) of.push_back(one);
  }
  return of;
}

ChildResult RunUnderTool(const Scenario& scenario, const std::string& tool = PENSTOCK_NVTX_INJECTION) {
  ChildResult child = RunInChild(scenario, "", {.environment = {"NVTX_INJECTION64_PATH=" + tool}});
  EXPECT_EQ(child.ended, "exit 0") << child;
  return child;
}

// A range of one thread, with those around it: "compile a > compile b".
struct Range {
  std::string path, thread, number;
};

std::vector<Range> RangesOf(const std::vector<Call>& calls) {
  std::vector<Range> ranges;
  std::map<std::string, std::vector<std::string>> open;  // by thread
  for (const Call& call : calls) {
    std::vector<std::string>& stack = open[call.thread];
    if (call.call == "push") {
      stack.push_back((stack.empty() ? "" : stack.back() + " > ") + call.text);
      ranges.push_back({stack.back(), call.thread, call.number});
    } else if (call.call == "pop") {
      EXPECT_FALSE(stack.empty()) << "a pop without a push on thread " << call.thread;
      if (!stack.empty()) stack.pop_back();
    }
  }
  for (const auto& [thread, stack] : open) EXPECT_THAT(stack, IsEmpty()) << "pushed and not popped on " << thread;
  return ranges;
}

std::vector<Range> RangesAt(const std::vector<Range>& ranges, const std::string& path) {
  std::vector<Range> at;
  for (const Range& range : ranges) {
    if (range.path == path) at.push_back(range);
  }
  return at;
}

TEST(Annotations, AreInADomainOfTheLibrarysOwn) {
  const std::vector<Call> calls = CallsOf(RunUnderTool(kRuns));
  EXPECT_EQ(CallsOf(calls, "domain").size(), 1u);
  for (const Call& call : calls) {
    if (call.call == "thread") continue;  // whose names are in no domain
    EXPECT_EQ(call.domain, "penstock") << call.call << " " << call.text;
  }
}

TEST(Annotations, RangesOfCompileLaunchAndHostNodesAreBalancedAndNamed) {
  const std::vector<Call> calls = CallsOf(RunUnderTool(kRuns));
  const std::vector<Range> ranges = RangesOf(calls);
  std::map<std::string, std::string> names;  // of threads
  for (const Call& call : CallsOf(calls, "thread")) names[call.number] = call.text;
  const std::vector<Range> compiles = RangesAt(ranges, "compile annotated"),
                           launches = RangesAt(ranges, "launch annotated"), first = RangesAt(ranges, "first"),
                           second = RangesAt(ranges, "second");
  ASSERT_EQ(compiles.size(), 1u);
  ASSERT_EQ(launches.size(), 4u);
  ASSERT_EQ(first.size(), 4u);
  ASSERT_EQ(second.size(), 3u);  // skipped in the run that fails
  EXPECT_EQ(ranges.size(), 12u);
  EXPECT_EQ(names.count(compiles[0].thread), 0u);  // the caller's, which is not the library's to name
  for (const Range& launch : launches) EXPECT_EQ(launch.thread, compiles[0].thread);
  for (size_t run = 0; run < first.size(); ++run) {
    EXPECT_EQ(first[run].number, std::to_string(run));
    EXPECT_THAT(names[first[run].thread], StartsWith("ps-worker"));
  }
}

TEST(Annotations, EachRunBeginsAndEndsOnce) {
  const std::vector<Call> calls = CallsOf(RunUnderTool(kRuns));
  std::set<std::string> open;
  size_t begun = 0;
  for (const Call& call : calls) {
    if (call.call == "start") {
      ++begun;
      EXPECT_EQ(call.text, "run of annotated");
      EXPECT_TRUE(open.insert(call.number).second);
    } else if (call.call == "end") {
      EXPECT_EQ(open.erase(call.number), 1u) << "an end without a beginning";
    }
  }
  EXPECT_EQ(begun, 4u);
  EXPECT_THAT(open, IsEmpty());
}

TEST(Annotations, NameTheLibrarysThreads) {
  std::multiset<std::string> names;
  for (const Call& call : CallsOf(CallsOf(RunUnderTool(kRuns)), "thread")) {
    EXPECT_EQ(call.thread, call.number) << "a thread names itself";
    names.insert(call.text);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"ps-worker/0", "ps-worker/1", "ps-completion", "ps-0-run0"}));
}

TEST(Annotations, AWaitForASlotIsARange) {
  const std::vector<Range> ranges = RangesOf(CallsOf(RunUnderTool(kWaits)));
  EXPECT_EQ(RangesAt(ranges, "wait for a slot of held").size(), 1u);
  EXPECT_EQ(RangesAt(ranges, "launch held").size(), 2u);
}

TEST(Annotations, RangesOfConstructsNest) {
  const std::vector<Call> calls = CallsOf(RunUnderTool(kConstruct));
  const std::vector<Range> ranges = RangesOf(calls);
  EXPECT_EQ(RangesAt(ranges, "compile around").size(), 1u);
  EXPECT_GE(std::count_if(ranges.begin(), ranges.end(),
                          [](const Range& range) { return range.path.starts_with("compile around > compile "); }),
            2);  // its condition and its body
  EXPECT_EQ(
      std::count_if(ranges.begin(), ranges.end(), [](const Range& range) { return range.path.ends_with("inside"); }),
      1);
  EXPECT_EQ(CallsOf(calls, "start").size(), CallsOf(calls, "end").size());
}

TEST(Annotations, CallsOfHostStagesAreRanges) {
  const std::vector<Call> calls = CallsOf(RunUnderTool(kPipeline));
  const std::vector<Range> decoded = RangesAt(RangesOf(calls), "decode");
  ASSERT_EQ(decoded.size(), 3u);
  for (const Call& call : CallsOf(calls, "thread")) {
    if (call.number == decoded[0].thread) {
      EXPECT_EQ(call.text, "ps-decode");
    }
  }
}

TEST(Annotations, NameStreamsOfCuda) {
  const std::vector<Call> calls = CallsOf(CallsOf(RunUnderTool(kNamesAStream)), "stream");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].text, "saxpy slot 0 upload lane 0");
}

TEST(Annotations, WithoutAToolNothingIsCalled) {
  unsetenv("NVTX_INJECTION64_PATH");
  const ChildResult untold = RunInChild(kRuns);
  EXPECT_EQ(untold.ended, "exit 0") << untold;
  EXPECT_EQ(untold.output, "");
  EXPECT_EQ(RunUnderTool(kRuns, "/nowhere/tool.so").output, "");
  EXPECT_EQ(RunInChild(kLooksForATool).output, "no tool\n");
  EXPECT_EQ(RunUnderTool(kLooksForATool, "/nowhere/tool.so").output, "no tool\n");
}

}  // namespace
}  // namespace penstock::annotate_test
