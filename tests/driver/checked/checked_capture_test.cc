// Captures and children behind the checked driver: what a capture may be given, and that what it was given is judged at
// each launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/driver/checked/checked_driver.h"
#include "tests/conformance/driver/packed_args.h"
#include "tests/driver/checked/checked_fixture.h"
#include "tests/support/forwarding_driver.h"

namespace penstock::driver::checked::checked_capture_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using After = std::vector<int32_t>;

// Counts what ends below, and may fail it.
class Spy final : public ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;

  absl::StatusOr<Graph> EndCapture(Stream stream) override {
    ++ended;
    const absl::StatusOr<Graph> graph = ForwardingDriver::EndCapture(stream);
    if (answer.ok()) return graph;
    DestroyGraph(*graph);
    return answer;
  }
  void DestroyGraph(Graph graph) override {
    ++destroyed;
    ForwardingDriver::DestroyGraph(graph);
  }
  absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child) override {
    std::exchange(during, [] {})();
    return ForwardingDriver::AddChild(graph, after, child);
  }

  int ended = 0, destroyed = 0;
  absl::Status answer = absl::OkStatus();  // to EndCapture
  std::function<void()> during = [] {};  // the next AddChild
};

class CheckedCaptureTest : public CheckedFixture {
 protected:
  void SetUp() override {
    CheckedFixture::SetUp();
    ASSERT_OK(driver_->Fill(stream_, {.dst = device_, .count = kBytes}));
    Finish(stream_);
  }
  void TearDown() override {
    EXPECT_EQ(Violation(), "") << "which the test has not looked at";
    Finish(stream_);
    Finish(other_);
    for (const GraphExec exec : execs_) driver_->DestroyExec(exec);
    for (const Graph graph : graphs_) driver_->DestroyGraph(graph);
    CheckedFixture::TearDown();
  }
  std::unique_ptr<Driver> InFrontOf(std::unique_ptr<Driver> host) override {
    auto spy = std::make_unique<Spy>(std::move(host));
    below_ = spy.get();
    return spy;
  }

  // Until the test ends.
  Graph Keep(const absl::StatusOr<Graph>& graph) {
    EXPECT_EQ(graph.status(), absl::OkStatus());
    graphs_.push_back(graph.value_or(Graph{}));
    return graphs_.back();
  }
  Graph NewGraph() { return Keep(driver_->CreateGraph(0)); }
  Graph Capture(const std::function<absl::Status()>& submit) {
    EXPECT_EQ(driver_->BeginCapture(stream_), absl::OkStatus());
    EXPECT_EQ(submit(), absl::OkStatus());
    return Keep(driver_->EndCapture(stream_));
  }
  GraphExec NewExec(Graph graph) {
    const absl::StatusOr<GraphExec> exec = driver_->Instantiate(graph);
    EXPECT_EQ(exec.status(), absl::OkStatus());
    execs_.push_back(exec.value_or(GraphExec{}));
    return execs_.back();
  }
  // Of a graph whose only node, number 0, is the child.
  GraphExec NewExecOf(Graph child) {
    const Graph graph = NewGraph();
    EXPECT_EQ(driver_->AddChild(graph, {}, child).value_or(-1), 0);
    return NewExec(graph);
  }
  FillOp FillOf(size_t from, size_t bytes, int32_t node = -1) {
    return {.dst = device_ + from, .count = bytes, .tag = {nullptr, node}};
  }
  absl::Status Fill(Stream stream, size_t from, size_t bytes, int32_t node = -1) {
    return driver_->Fill(stream, FillOf(from, bytes, node));
  }

  Spy* below_ = nullptr;
  std::vector<Graph> graphs_;
  std::vector<GraphExec> execs_;
};

// --- who may give what to a capture ---

TEST_F(CheckedCaptureTest, ACaptureIsOfWorkAndIsBrokenByAnythingElseOnItsStream) {
  ASSERT_OK(driver_->Record(event_, other_));
  const GraphExec exec = NewExec(NewGraph());
  const std::pair<std::string, std::function<absl::Status()>> calls[] = {
      {"Record", [&] { return driver_->Record(event_, stream_); }},
      {"Wait", [&] { return driver_->Wait(stream_, event_); }},
      {"WaitNative", [&] { return driver_->WaitNative(stream_, nullptr); }},
      {"Upload", [&] { return driver_->Upload(exec, stream_); }},
      {"LaunchGraph", [&] { return driver_->LaunchGraph(exec, stream_); }},
  };
  for (const auto& [name, call] : calls) {
    ASSERT_OK(driver_->BeginCapture(stream_));
    const int ended = below_->ended, destroyed = below_->destroyed;
    const absl::Status refused = call();
    ExpectRefused(refused, "a capture is of work only", name + " on stream 1, which captures");
    EXPECT_EQ(driver_->EndCapture(stream_).status(), refused);
    EXPECT_EQ(below_->ended, ended + 1);
    EXPECT_EQ(below_->destroyed, destroyed + 1) << "the graph that nobody gets";
  }
  EXPECT_EQ(witness_->gauges().captures, 0);
  ASSERT_OK(driver_->Record(event_, stream_));
}

TEST_F(CheckedCaptureTest, ItsThreadAsksForNothingElseMeanwhileAndOthersMay) {
  ASSERT_OK(driver_->Record(event_, other_));
  std::byte* const block = Device(0);
  ASSERT_OK(driver_->BeginCapture(stream_));
  ExpectRefused(driver_->Query(event_).status(), "a capture is of work only",
                "Query was called by the thread for which stream 1 captures");
  ExpectRefused(driver_->CreateEvent(0, false).status(), "a capture is of work only", "CreateEvent was called");
  ExpectRefused(driver_->AllocateDevice(0, 8).status(), "a capture is of work only", "AllocateDevice was called");
  ExpectRefused(driver_->CreateGraph(0).status(), "a capture is of work only", "CreateGraph was called");
  driver_->FreeDevice(0, block);
  EXPECT_THAT(Violation(), HasSubstr("'a capture is of work only': FreeDevice was called"));
  ASSERT_OK(Fill(other_, 0, 8)) << "work of another stream";
  std::thread([&] {
    driver_->MakeCurrent(0);
    EXPECT_EQ(driver_->Query(event_).status(), absl::OkStatus());
    driver_->FreeDevice(0, Device(0));
  }).join();
  ASSERT_OK(Fill(stream_, 0, 8));
  EXPECT_EQ(driver_->CountNodes(Keep(driver_->EndCapture(stream_))).value(), 1);
  ASSERT_OK(driver_->Query(event_).status());
}

TEST_F(CheckedCaptureTest, OneThreadFeedsACaptureAndEndsIt) {
  ASSERT_OK(driver_->BeginCapture(stream_));
  std::thread([&] {
    driver_->MakeCurrent(0);
    ExpectRefused(Fill(stream_, 0, 8), "one thread feeds a capture", "Fill on stream 1, which captures for another");
    ExpectRefused(Launch(stream_, device_), "one thread feeds a capture", "Launch on stream 1");
    ExpectRefused(driver_->Record(event_, stream_), "one thread feeds a capture", "Record on stream 1");
    ExpectRefused(driver_->EndCapture(stream_).status(), "one thread feeds a capture",
                  "EndCapture: stream 1 captures for another thread");
  }).join();
  EXPECT_EQ(below_->ended, 0);
  ASSERT_OK(Fill(stream_, 0, 8));
  EXPECT_EQ(driver_->CountNodes(Keep(driver_->EndCapture(stream_))).value(), 1);
}

TEST_F(CheckedCaptureTest, AStreamCapturesOnceAtATime) {
  ExpectRefused(driver_->EndCapture(stream_).status(), "a capture ends once", "EndCapture: stream 1 does not capture");
  ExpectRefused(driver_->EndCapture(Stream{77}).status(), "stream is alive", "stream 77 was never made");
  ExpectRefused(driver_->BeginCapture(Stream{77}), "stream is alive", "BeginCapture: stream 77 was never made");
  const int token = driver_->MakeCurrent(1);
  ExpectRefused(driver_->BeginCapture(stream_), "device is current", "BeginCapture on stream 1 of device 0");
  driver_->RestoreCurrent(token);
  ASSERT_OK(driver_->BeginCapture(stream_));
  ExpectRefused(driver_->BeginCapture(stream_), "one capture a stream", "stream 1 captures already");
  ASSERT_OK(driver_->BeginCapture(other_));
  EXPECT_EQ(witness_->gauges().captures, 2);
  const absl::Status told = driver_->EndCapture(stream_).status();
  EXPECT_THAT(std::string(told.message()), HasSubstr("stream 1 captures already"));
  Keep(driver_->EndCapture(other_));
  EXPECT_EQ(witness_->gauges().captures, 0);
}

TEST_F(CheckedCaptureTest, ACaptureThatIsLeftOpenIsTold) {
  const Stream stream = *driver_->CreateStream(0, 0);
  ASSERT_OK(driver_->BeginCapture(stream));
  EXPECT_THAT(TextOf(witness_->gauges()), HasSubstr("1 captures"));
  driver_->DestroyStream(stream);
  EXPECT_THAT(Violation(), HasSubstr("'a capture ends before its stream': DestroyStream: stream 3"));
  EXPECT_EQ(witness_->gauges().captures, 0);
  EXPECT_EQ(witness_->gauges().streams, 2);
  ASSERT_OK(driver_->Query(event_).status()) << "its thread is free again";
}

// --- what is captured is judged when it is launched ---

TEST_F(CheckedCaptureTest, WhatIsCapturedTouchesMemoryAtEachLaunch) {
  ASSERT_OK(Fill(other_, 0, 64, 11));
  const Graph graph = Capture([&] { return Fill(stream_, 0, 64, 4); });
  const GraphExec exec = NewExec(graph), as_child = NewExecOf(graph);
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "ordered accesses",
                "written by graph node 0 of operation 1 of exec 1 for node 4 collides with");
  ExpectRefused(driver_->LaunchGraph(as_child, stream_), "ordered accesses",
                "written by child node 0 of graph node 0 of operation 1 of exec 2 for node 4 collides with");
  Finish(other_);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->LaunchGraph(as_child, stream_));
  ExpectRefused(Fill(other_, 0, 8), "ordered accesses",
                "written by child node 0 of graph node 0 of operation 2 of exec 2 for node 4");
}

TEST_F(CheckedCaptureTest, EveryKindOfWorkThatIsCapturedIsJudged) {
  CopyPiece* const table = Table(1);
  table[0] = {.dst = device_, .src = pinned_, .width = 16};
  const Uses reads({{.data = device_, .width = 16, .reads = true}});
  const std::function<absl::Status()> works[] = {
      [&] { return Upload(stream_, 0, 16); },
      [&] { return Batch(CopyKind::kHostToDevice, table, 1); },
      [&] { return Fill(stream_, 0, 16); },
      [&] { return Launch(stream_, device_, &reads); },
  };
  ASSERT_OK(Fill(other_, 0, 8));
  for (const auto& work : works) {
    const GraphExec exec = NewExec(Capture(work));
    EXPECT_FALSE(driver_->LaunchGraph(exec, stream_).ok());
    EXPECT_THAT(Violation(), AllOf(HasSubstr("'ordered accesses'"), HasSubstr("graph node 0 of operation 1 of exec")));
  }
}

TEST_F(CheckedCaptureTest, WhatForeignCodeDeclaresIsAskedAndJudgedAtEachLaunch) {
  class Asked final : public UseSource {
   public:
    void AppendUses(int32_t node, std::vector<MemoryUse>& out) const override {
      EXPECT_EQ(node, 5);
      ++times;
      out.push_back(use);
    }
    MemoryUse use{};
    mutable int times = 0;
  } uses;
  std::byte* const apart = Device(0);
  uses.use = {.data = apart, .width = 64, .writes = true};
  const Graph child = Capture([&] { return driver_->LaunchContext(stream_, {nullptr, 5}, uses); });
  EXPECT_EQ(uses.times, 0) << "nobody knows yet what a run will bind";
  EXPECT_EQ(driver_->CountNodes(child).value(), 0) << "and nothing was poisoned";
  const Graph graph = NewGraph();
  const FillOp fill = FillOf(0, 64, 6);
  ASSERT_EQ(driver_->AddNode(graph, {}, &fill, {}).value(), 0);
  ASSERT_EQ(driver_->AddChild(graph, {}, child).value(), 1);
  const GraphExec exec = NewExec(graph);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  EXPECT_EQ(uses.times, 1);
  uses.use.data = device_ + 32;
  const absl::Status refused = driver_->LaunchGraph(exec, stream_);
  EXPECT_THAT(base::Str(refused.message()),
              AllOf(HasSubstr("child node 0 of graph node 1 of operation 2 of exec 1 for node 5 collides with"),
                    HasSubstr("graph node 0 of operation 2 of exec 1 for node 6"), HasSubstr("no edge orders them")));
  ExpectRefused(refused, "ordered accesses", "Launch: an argument");
  EXPECT_EQ(uses.times, 2);
  Finish(stream_);
  driver_->FreeDevice(0, apart);
}

TEST_F(CheckedCaptureTest, NothingIsPoisonedForAKernelThatIsCaptured) {
  Uses writes({{.data = device_, .width = 64, .writes = true}});
  const Graph graph = Capture([&] { return Launch(stream_, device_, &writes); });
  EXPECT_EQ(driver_->CountNodes(graph).value(), 1);
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_OK(Download(stream_, 0, 64));
  Finish(stream_);
  EXPECT_EQ(pinned_[0], std::byte{0});
}

TEST_F(CheckedCaptureTest, WhatIsCapturedCountsWhenItIsLaunched) {
  const Totals before = witness_->totals();
  const Graph graph = Capture([&]() -> absl::Status {
    EXPECT_EQ(Upload(stream_, 0, 64), absl::OkStatus());
    EXPECT_EQ(Fill(stream_, 64, 16), absl::OkStatus());
    return Download(stream_, 0, 32);
  });
  EXPECT_EQ(witness_->totals(), before);
  const Totals once{.uploads = {1, 64}, .downloads = {1, 32}, .fills = {1, 16}};
  ASSERT_OK(driver_->LaunchGraph(NewExecOf(graph), stream_));
  EXPECT_EQ(witness_->totals() - before, once);
}

TEST_F(CheckedCaptureTest, WhatIsRefusedIsNotCaptured) {
  const Graph graph = Capture([&] {
    EXPECT_FALSE(Fill(stream_, kBytes, 8).ok());  // the driver below refuses what lies outside
    return Fill(stream_, 0, 8);
  });
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
}

// --- order in children ---

TEST_F(CheckedCaptureTest, WhatIsCapturedComesOneAfterTheOther) {
  const Graph graph = Capture([&]() -> absl::Status {
    EXPECT_EQ(Upload(stream_, 0, 64), absl::OkStatus());
    EXPECT_EQ(Fill(stream_, 0, 64), absl::OkStatus());
    return Download(stream_, 0, 64);
  });
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_OK(driver_->LaunchGraph(NewExecOf(graph), stream_));
}

// Fills of three boxes in children of children, against a search for paths among all of them.
TEST_F(CheckedCaptureTest, RandomGraphsOfChildrenAreRefusedExactlyWhereNoPathOrdersTwoOfTheirNodes) {
  std::mt19937 random(20261123);
  int refused = 0;
  constexpr int kRounds = 300;
  // The operations of a graph: their boxes, and whether there is a path from one to another.
  struct Made {
    Graph graph;
    std::vector<int> boxes{};
    std::vector<std::vector<bool>> path{};  // path[later][earlier]
  };
  const std::function<Made(int)> make = [&](int depth) {
    Made made{.graph = *driver_->CreateGraph(0)};
    std::vector<std::vector<bool>> before;  // of its own nodes
    std::vector<size_t> owners;  // the node of each operation
    const int nodes = 1 + static_cast<int>(random() % 3);
    for (int node = 0; node < nodes; ++node) {
      After after;
      std::vector<bool>& mine = before.emplace_back(static_cast<size_t>(node), false);
      for (int32_t earlier = 0; earlier < node; ++earlier) {
        if (random() % 4 == 0) continue;
        after.push_back(earlier);
        const auto at = static_cast<size_t>(earlier);
        mine[at] = true;
        for (size_t k = 0; k < before[at].size(); ++k) mine[k] = mine[k] || before[at][k];
      }
      Made inside;
      if (depth > 0 && random() % 2 == 0) {
        inside = make(depth - 1);
        EXPECT_EQ(driver_->AddChild(made.graph, after, inside.graph).value_or(-1), node);
        driver_->DestroyGraph(inside.graph);
      } else {
        inside.boxes = {static_cast<int>(random() % 4)};
        inside.path = {{}};
        const FillOp fill = FillOf(static_cast<size_t>(inside.boxes[0]) * 8, 8);
        EXPECT_EQ(driver_->AddNode(made.graph, after, &fill, {}).value_or(-1), node);
      }
      const size_t first = made.boxes.size();
      for (size_t i = 0; i < inside.boxes.size(); ++i) {
        std::vector<bool>& row = made.path.emplace_back();
        for (size_t k = 0; k < first; ++k) row.push_back(mine[owners[k]]);
        for (size_t k = 0; k < i; ++k) row.push_back(inside.path[i][k]);
        made.boxes.push_back(inside.boxes[i]);
      }
      owners.resize(made.boxes.size(), static_cast<size_t>(node));
    }
    return made;
  };
  for (int round = 0; round < kRounds; ++round) {
    const Made made = make(2);
    bool clash = false;
    for (size_t i = 0; i < made.boxes.size(); ++i) {
      for (size_t k = 0; k < i; ++k) clash = clash || (made.boxes[i] == made.boxes[k] && !made.path[i][k]);
    }
    execs_.push_back(*driver_->Instantiate(made.graph));
    driver_->DestroyGraph(made.graph);
    ASSERT_EQ(driver_->LaunchGraph(execs_.back(), stream_).ok(), !clash) << round;
    EXPECT_EQ(Violation() != "", clash);
    refused += clash;
  }
  EXPECT_GT(refused, kRounds / 8);
  EXPECT_LT(refused, kRounds * 7 / 8);
}

TEST_F(CheckedCaptureTest, AnotherGraphForAChildIsJudgedFromTheNextLaunch) {
  const Graph first = Capture([&] { return Fill(stream_, 0, 64, 1); });
  // As many operations below, but one more that is declared.
  Uses uses({{.data = device_ + 64, .width = 64, .reads = true}});
  const Graph second = Capture([&] {
    EXPECT_EQ(driver_->LaunchContext(stream_, {nullptr, 2}, uses), absl::OkStatus());
    return Fill(stream_, 64, 64, 3);
  });
  const GraphExec exec = NewExecOf(first);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->SetChild(exec, 0, second));
  ASSERT_OK(Fill(other_, 64, 64)) << "not yet";
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "ordered accesses",
                "read by child node 0 of graph node 0 of operation 2 of exec 1 for node 2");
  Finish(other_);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_)) << "the child's own nodes are in order";
  ExpectRefused(Fill(other_, 64, 8), "ordered accesses", "child node 1 of graph node 0 of operation 3 of exec 1");
  // What is refused below leaves it as it was.
  EXPECT_FALSE(driver_->SetChild(exec, 0, NewGraph()).ok());
  ExpectRefused(Fill(other_, 64, 8), "ordered accesses", "operation 3 of exec 1");
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ExpectRefused(Fill(other_, 64, 8), "ordered accesses", "operation 4 of exec 1");
}

// --- handles ---

TEST_F(CheckedCaptureTest, ChildrenAndTheirNumbersAreThere) {
  const Graph graph = NewGraph(), child = NewGraph(), gone = *driver_->CreateGraph(0);
  driver_->DestroyGraph(gone);
  ExpectRefused(driver_->CountNodes(gone).status(), "graph is alive", "CountNodes: graph 3 was destroyed");
  ExpectRefused(driver_->AddChild(graph, {}, gone).status(), "graph is alive", "AddChild: graph 3 was destroyed");
  ExpectRefused(driver_->AddChild(graph, {}, graph).status(), "no child of itself", "AddChild: graph 1 to itself");
  ExpectRefused(driver_->AddChild(graph, After{0}, child).status(), "after earlier nodes",
                "AddChild: node 0 of graph 1 after node 0, which is not there");
  ASSERT_EQ(driver_->AddChild(graph, {}, child).value(), 0);
  const GraphExec exec = NewExec(graph);
  ExpectRefused(driver_->SetChild(exec, 1, child), "node exists", "SetChild: node 1 of exec 1, which has 1");
  ExpectRefused(driver_->SetChild(exec, 0, gone), "graph is alive", "SetChild: graph 3 was destroyed");
  ExpectRefused(driver_->SetChild(GraphExec{8}, 0, child), "exec is alive", "SetChild: exec 8 was never made");
  const Graph elsewhere = *driver_->CreateGraph(1);
  EXPECT_EQ(driver_->AddChild(graph, {}, elsewhere).value(), 1) << "whose device is not current";
  ExpectRefused(driver_->AddChild(elsewhere, {}, child).status(), "device is current",
                "AddChild of graph 4 of device 1");
  driver_->DestroyGraph(elsewhere);
}

TEST_F(CheckedCaptureTest, AChildIsInOneCallAtATimeToo) {
  const Graph graph = NewGraph(), child = NewGraph();
  // What another thread would do meanwhile.
  below_->during = [&] {
    for (const Graph used : {graph, child}) {
      driver_->DestroyGraph(used);
      EXPECT_THAT(Violation(), HasSubstr("'one thread at a time': DestroyGraph: graph"));
    }
  };
  ASSERT_EQ(driver_->AddChild(graph, {}, child).value(), 0);
}

// --- records and faults ---

TEST_F(CheckedCaptureTest, CallsAreRecorded) {
  witness_->KeepCalls(true);
  const Graph child = Capture([&] { return Fill(stream_, 0, 64, 7); }), graph = NewGraph();
  ASSERT_OK(driver_->CountNodes(child).status());
  ASSERT_OK(driver_->AddChild(graph, {}, child).status());
  ASSERT_OK(driver_->SetChild(NewExec(graph), 0, child));
  const CallLog log = witness_->log();
  std::vector<std::string> calls;
  for (const Call& call : log.calls()) calls.push_back(TextOf(call));
  EXPECT_THAT(calls, ElementsAre("BeginCapture stream 1", "Fill stream 1 node 7 64 bytes", "EndCapture stream 1",
                                 "CreateGraph device 0", "CountNodes graph 1", "AddChild graph 2 child graph 1",
                                 "Instantiate graph 2", "SetChild exec 1 graph node 0 child graph 1"));
}

TEST_F(CheckedCaptureTest, TheNthCallFailsWithoutEffectAndTheNextDoesNot) {
  const Graph child = Capture([&] { return Fill(stream_, 0, 64); }), graph = NewGraph();
  const GraphExec exec = NewExecOf(child);
  const std::pair<CallKind, std::function<absl::Status()>> calls[] = {
      {CallKind::kCountNodes, [&] { return driver_->CountNodes(child).status(); }},
      {CallKind::kAddChild, [&] { return driver_->AddChild(graph, {}, child).status(); }},
      {CallKind::kSetChild, [&] { return driver_->SetChild(exec, 0, child); }},
      {CallKind::kBeginCapture, [&] { return driver_->BeginCapture(stream_); }},
  };
  for (const auto& [kind, call] : calls) {
    const Gauges gauges = witness_->gauges();
    witness_->FailNth(kind, 1, absl::ResourceExhaustedError("planned"));
    EXPECT_EQ(call(), absl::ResourceExhaustedError("planned")) << NameOf(kind);
    EXPECT_EQ(witness_->gauges(), gauges) << NameOf(kind);
    EXPECT_EQ(call(), absl::OkStatus()) << NameOf(kind);
  }
  Keep(driver_->EndCapture(stream_));
  EXPECT_EQ(driver_->CountNodes(graph).value(), 1);
}

TEST_F(CheckedCaptureTest, AnEndThatFailsEndsTheCaptureAllTheSame) {
  const absl::Status planned = absl::ResourceExhaustedError("planned");
  const Gauges gauges = witness_->gauges();
  for (const bool below : {false, true}) {
    ASSERT_OK(driver_->BeginCapture(stream_));
    ASSERT_OK(Fill(stream_, 0, 8));
    if (below) {
      below_->answer = planned;
    } else {
      witness_->FailNth(CallKind::kEndCapture, 1, planned);
    }
    EXPECT_EQ(driver_->EndCapture(stream_).status(), planned);
    EXPECT_EQ(below_->ended, below ? 2 : 1);
    EXPECT_EQ(below_->destroyed, below_->ended);
    EXPECT_EQ(witness_->gauges(), gauges);
  }
  below_->answer = absl::OkStatus();
  const Graph graph = Capture([&] { return Fill(stream_, 0, 8); });
  EXPECT_EQ(driver_->CountNodes(graph).value(), 1);
}

TEST_F(CheckedCaptureTest, ADeadDevicesCaptureEndsToo) {
  ASSERT_OK(driver_->BeginCapture(stream_));
  ASSERT_OK(Fill(stream_, 0, 8));
  witness_->DieAtNth(CallKind::kFill, 1);
  const absl::Status died = Fill(stream_, 0, 8);
  EXPECT_FALSE(died.ok());
  EXPECT_EQ(driver_->EndCapture(stream_).status(), died);
  EXPECT_EQ(below_->ended, 1);
  EXPECT_EQ(below_->destroyed, 1);
  EXPECT_EQ(witness_->gauges().captures, 0);
  EXPECT_EQ(driver_->EndCapture(stream_).status(), died) << "which is all that is told of a dead device";
  witness_->ClearFaults();
}

}  // namespace
}  // namespace penstock::driver::checked::checked_capture_test
