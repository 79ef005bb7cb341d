// Each rule of graphs behind the checked driver, in front of graphs that do nothing: what is judged is what was asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/driver/checked/checked_driver.h"
#include "tests/conformance/driver/packed_args.h"
#include "tests/driver/checked/checked_fixture.h"
#include "tests/support/forwarding_driver.h"

namespace penstock::driver::checked::checked_graphs_test {
namespace {

using conformance::PackedArgs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Graphs of numbered nodes that do nothing when they are launched.
class IdleGraphs final : public ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;

  absl::StatusOr<Graph> CreateGraph(int /*device*/) override { return Graph{made_ += 1000}; }
  void DestroyGraph(Graph graph) override { nodes_.erase(graph.bits); }
  absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> /*after*/, const NodeOp& /*op*/,
                                  NodePlace /*place*/) override {
    Happen();
    return first_number + nodes_[graph.bits]++;
  }
  absl::StatusOr<GraphExec> Instantiate(Graph /*graph*/) override {
    Happen();
    return GraphExec{made_ += 1000};
  }
  void DestroyExec(GraphExec /*exec*/) override { ++destroyed_execs; }
  absl::Status Upload(GraphExec exec, Stream /*stream*/) override { return Note("upload", exec); }
  absl::Status LaunchGraph(GraphExec exec, Stream /*stream*/) override { return Note("launch", exec); }
  absl::Status SetNode(GraphExec exec, int32_t /*node*/, const NodeOp& /*op*/) override { return Note("set", exec); }
  absl::Status EnableNode(GraphExec exec, int32_t /*node*/, bool /*enabled*/) override { return Note("enable", exec); }

  int32_t first_number = 0;
  int destroyed_execs = 0;
  std::vector<std::string> calls;  // that reached an exec
  absl::Status answer = absl::OkStatus();
  std::function<void()> during = [] {};  // the next call that reaches a graph or an exec

 private:
  void Happen() {
    std::exchange(during, [] {})();
  }
  absl::Status Note(const char* what, GraphExec exec) {
    Happen();
    EXPECT_EQ(exec.bits % 1000, 0u) << "the handle below, not the caller's";
    calls.emplace_back(what);
    return answer;
  }
  uint64_t made_ = 0;
  std::map<uint64_t, int32_t> nodes_;
};

class CheckedGraphTest : public CheckedFixture {
 protected:
  void SetUp() override {
    CheckedFixture::SetUp();
    graph_ = *driver_->CreateGraph(0);
  }
  void TearDown() override {
    EXPECT_EQ(Violation(), "") << "which the test has not looked at";
    Finish(stream_);
    Finish(other_);
    for (const GraphExec exec : execs_) driver_->DestroyExec(exec);
    driver_->DestroyGraph(graph_);
    CheckedFixture::TearDown();
  }
  std::unique_ptr<Driver> InFrontOf(std::unique_ptr<Driver> host) override {
    auto graphs = std::make_unique<IdleGraphs>(std::move(host));
    below_ = graphs.get();
    return graphs;
  }

  // Operations for plan node `node` on bytes of the device block.
  FillOp Fill(size_t from, size_t bytes, int32_t node = -1) {
    return {.dst = device_ + from, .count = bytes, .tag = {nullptr, node}};
  }
  CopyOp Down(size_t from, size_t bytes, int32_t node = -1) {
    return {.kind = CopyKind::kDeviceToHost,
            .dst = pinned_ + from,
            .src = device_ + from,
            .width = bytes,
            .tag = {nullptr, node}};
  }
  CopyOp Up(size_t from, size_t bytes, int32_t node = -1) {
    return {.kind = CopyKind::kHostToDevice,
            .dst = device_ + from,
            .src = pinned_ + from,
            .width = bytes,
            .tag = {nullptr, node}};
  }
  template <class Op>
  int32_t Add(const std::vector<int32_t>& after, const Op& op) {
    const absl::StatusOr<int32_t> node = driver_->AddNode(graph_, after, &op, {});
    EXPECT_EQ(node.status(), absl::OkStatus());
    return node.value_or(-1);
  }
  int32_t AddKernel(const std::vector<int32_t>& after, std::byte* argument, const UseSource* uses, int32_t node = -1) {
    PackedArgs args;
    args.Add(argument);
    KernelOp op = args.op();
    op.uses = uses;
    op.tag.node = node;
    const int32_t added = Add(after, op);
    args.Scribble();
    return added;
  }
  // An exec until the test ends.
  GraphExec Instantiate() {
    const absl::StatusOr<GraphExec> exec = driver_->Instantiate(graph_);
    EXPECT_EQ(exec.status(), absl::OkStatus());
    execs_.push_back(exec.value_or(GraphExec{}));
    return execs_.back();
  }
  absl::Status LaunchNew(Stream stream) { return driver_->LaunchGraph(Instantiate(), stream); }
  void Follow(Stream later, Stream earlier) {
    ASSERT_OK(driver_->Record(event_, earlier));
    ASSERT_OK(driver_->Wait(later, event_));
  }

  IdleGraphs* below_ = nullptr;
  Graph graph_;
  std::vector<GraphExec> execs_;
};

// --- handles ---

TEST_F(CheckedGraphTest, AGraphOrExecThatWasDestroyedIsNotUsedAgain) {
  const FillOp fill = Fill(0, 8);
  const Graph graph = *driver_->CreateGraph(0);
  const GraphExec exec = *driver_->Instantiate(graph);
  driver_->DestroyGraph(graph);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_)) << "it needs the graph no longer";
  Finish(stream_);
  driver_->DestroyExec(exec);
  EXPECT_EQ(below_->destroyed_execs, 1);
  ExpectRefused(driver_->AddNode(graph, {}, &fill, {}).status(), "graph is alive", "AddNode: graph 2 was destroyed");
  ExpectRefused(driver_->Instantiate(Graph{9}).status(), "graph is alive", "graph 9 was never made by this driver");
  ExpectRefused(driver_->Upload(exec, stream_), "exec is alive", "Upload: exec 1 was destroyed before");
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "exec is alive", "LaunchGraph: exec 1 was destroyed before");
  ExpectRefused(driver_->SetNode(exec, 0, &fill), "exec is alive", "SetNode: exec 1");
  ExpectRefused(driver_->EnableNode(GraphExec{}, 0, true), "exec is alive", "EnableNode: a null exec");
  driver_->DestroyGraph(graph);
  EXPECT_THAT(Violation(), HasSubstr("'destroyed once': DestroyGraph: graph 2 was destroyed before"));
  driver_->DestroyExec(exec);
  EXPECT_THAT(Violation(), HasSubstr("'destroyed once': DestroyExec: exec 1 was destroyed before"));
  EXPECT_EQ(below_->destroyed_execs, 1);
  driver_->DestroyGraph(Graph{});
  driver_->DestroyExec(GraphExec{});
}

TEST_F(CheckedGraphTest, AnExecIsDestroyedWhenTheHostHasSeenItsLaunchesAndUploadsEnd) {
  for (const bool upload : {false, true}) {
    const auto submit = [&](GraphExec exec) {
      return upload ? driver_->Upload(exec, stream_) : driver_->LaunchGraph(exec, stream_);
    };
    const GraphExec seen = *driver_->Instantiate(graph_), unseen = *driver_->Instantiate(graph_);
    ASSERT_OK(submit(seen));
    Finish(stream_);
    driver_->DestroyExec(seen);
    EXPECT_EQ(Violation(), "");
    const int destroyed = below_->destroyed_execs;
    ASSERT_OK(submit(unseen));
    driver_->DestroyExec(unseen);
    EXPECT_THAT(Violation(), AllOf(HasSubstr("'destroyed when idle': DestroyExec: exec "),
                                   HasSubstr("has 1 launches or uploads, and the host has not seen")));
    EXPECT_EQ(below_->destroyed_execs, destroyed) << "a launch may still use it";
  }
}

TEST_F(CheckedGraphTest, GraphsAndExecsThatAreLeftAliveAreTold) {
  const GraphExec exec = *driver_->Instantiate(graph_);
  EXPECT_EQ(witness_->gauges().graphs, 1);
  EXPECT_EQ(witness_->gauges().execs, 1);
  EXPECT_THAT(TextOf(witness_->gauges()), HasSubstr("1 graphs, 1 execs"));
  driver_->DestroyExec(exec);
  EXPECT_EQ(witness_->gauges().execs, 0);
}

TEST_F(CheckedGraphTest, AGraphOrExecIsInOneCallAtATime) {
  const FillOp fill = Fill(0, 8);
  Add({}, fill);
  const GraphExec exec = Instantiate(), other = Instantiate();
  // What another thread would do meanwhile.
  below_->during = [&] {
    ExpectRefused(driver_->SetNode(exec, 0, &fill), "one thread at a time", "SetNode: exec 1 is in use");
    driver_->DestroyExec(exec);
    EXPECT_THAT(Violation(), HasSubstr("'one thread at a time': DestroyExec: exec 1 is in use"));
    EXPECT_EQ(driver_->SetNode(other, 0, &fill), absl::OkStatus());
  };
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->SetNode(exec, 0, &fill));
  below_->during = [&] {
    ExpectRefused(driver_->AddNode(graph_, {}, &fill, {}).status(), "one thread at a time", "AddNode: graph 1 is in");
    driver_->DestroyGraph(graph_);
    EXPECT_THAT(Violation(), HasSubstr("'one thread at a time': DestroyGraph: graph 1 is in use"));
  };
  ASSERT_OK(driver_->Instantiate(graph_).status());
  driver_->DestroyExec(GraphExec{3});
  EXPECT_EQ(Add({}, fill), 1);
}

// --- devices ---

TEST_F(CheckedGraphTest, GraphsAreUsedWithTheirDeviceCurrent) {
  const FillOp fill = Fill(0, 8);
  Add({}, fill);
  const GraphExec exec = Instantiate();
  const int token = driver_->MakeCurrent(1);
  const std::string text = " 1 of device 0 while the thread's current device is 1";
  ExpectRefused(driver_->AddNode(graph_, {}, &fill, {}).status(), "device is current", "AddNode of graph" + text);
  ExpectRefused(driver_->Instantiate(graph_).status(), "device is current", "Instantiate of graph" + text);
  ExpectRefused(driver_->Upload(exec, stream_), "device is current", "Upload of exec" + text);
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "device is current", "LaunchGraph of exec" + text);
  ExpectRefused(driver_->SetNode(exec, 0, &fill), "device is current", "SetNode of exec" + text);
  ExpectRefused(driver_->EnableNode(exec, 0, false), "device is current", "EnableNode of exec" + text);
  driver_->RestoreCurrent(token);
  ExpectRefused(driver_->CreateGraph(2).status(), "device exists", "CreateGraph: device 2 of 2");
  EXPECT_THAT(below_->calls, testing::IsEmpty());
}

TEST_F(CheckedGraphTest, AnExecIsLaunchedOnALiveStreamOfItsDevice) {
  const GraphExec exec = Instantiate();
  const Stream elsewhere = *driver_->CreateStream(1, 0);
  ExpectRefused(driver_->LaunchGraph(exec, elsewhere), "one device",
                "LaunchGraph: exec 1 of device 0 on stream 3 of device 1");
  ExpectRefused(driver_->Upload(exec, elsewhere), "one device", "Upload: exec 1 of device 0 on stream 3 of device 1");
  driver_->DestroyStream(elsewhere);
  ExpectRefused(driver_->LaunchGraph(exec, elsewhere), "stream is alive", "LaunchGraph: stream 3 was destroyed before");
  ExpectRefused(driver_->Upload(exec, Stream{}), "stream is alive", "Upload: a null stream");
}

TEST_F(CheckedGraphTest, AStreamWithALaunchIsNotIdle) {
  const Stream stream = *driver_->CreateStream(0, 0);
  ASSERT_OK(driver_->LaunchGraph(Instantiate(), stream));
  driver_->DestroyStream(stream);
  EXPECT_THAT(Violation(), HasSubstr("'destroyed when idle': DestroyStream: stream 3 has 1 operations"));
  execs_.clear();  // nobody can see its end now
  EXPECT_EQ(witness_->gauges().execs, 1);
  driver_->DestroyExec(GraphExec{1});
  EXPECT_THAT(Violation(), HasSubstr("'destroyed when idle': DestroyExec: exec 1"));
}

// --- nodes ---

TEST_F(CheckedGraphTest, NodesComeAfterEarlierNodes) {
  const FillOp fill = Fill(0, 8);
  EXPECT_EQ(Add({}, fill), 0);
  for (const int32_t unknown : {-1, 1, 7}) {
    ExpectRefused(driver_->AddNode(graph_, std::vector<int32_t>{0, unknown}, &fill, {}).status(), "after earlier nodes",
                  "AddNode: node 1 of graph 1 after node " + std::to_string(unknown));
  }
  EXPECT_EQ(Add({0}, fill), 1);
  below_->first_number = 5;
  ExpectRefused(driver_->AddNode(graph_, {}, &fill, {}).status(), "nodes count from 0",
                "node 2 of graph 1 is number 7 of the driver below");
}

TEST_F(CheckedGraphTest, OnlyNodesOfTheExecAreChanged) {
  const FillOp fill = Fill(0, 8);
  Add({}, fill);
  const GraphExec exec = Instantiate();
  Add({}, fill);  // which the exec does not have
  for (const int32_t unknown : {-1, 1}) {
    const std::string text = ": node " + std::to_string(unknown) + " of exec 1, which has 1";
    ExpectRefused(driver_->SetNode(exec, unknown, &fill), "node exists", "SetNode" + text);
    ExpectRefused(driver_->EnableNode(exec, unknown, true), "node exists", "EnableNode" + text);
  }
  ASSERT_OK(driver_->EnableNode(exec, 0, true));
  EXPECT_THAT(below_->calls, ElementsAre("enable"));
}

TEST_F(CheckedGraphTest, SizesThatOverflowAreNoNodes) {
  CopyOp copy = Up(0, 8);
  copy.height = 3;
  copy.dst_pitch = copy.src_pitch = size_t{1} << 63;
  EXPECT_EQ(driver_->AddNode(graph_, {}, &copy, {}).status().code(), absl::StatusCode::kInvalidArgument);
  FillOp fill = Fill(0, 8);
  Add({}, fill);
  fill.pattern_size = 17;
  EXPECT_EQ(driver_->SetNode(Instantiate(), 0, &fill).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(below_->calls, testing::IsEmpty());
}

// --- order ---

TEST_F(CheckedGraphTest, AMissingEdgeIsFoundAndNamesBothNodes) {
  Add({}, Fill(0, 64, 11));
  Add({}, Fill(64, 64, 12));
  Add({1}, Down(32, 64, 13));
  const absl::Status refused = LaunchNew(stream_);
  EXPECT_THAT(base::Str(refused.message()),
              AllOf(HasSubstr("read by graph node 2 of operation 1 of exec 1 for node 13 collides with"),
                    HasSubstr("written by graph node 0 of operation 1 of exec 1 for node 11"),
                    HasSubstr("no edge orders them")));
  ExpectRefused(refused, "ordered accesses", "Copy: the source");
  EXPECT_THAT(below_->calls, testing::IsEmpty());
}

TEST_F(CheckedGraphTest, EdgesOrderAlsoThroughNodesThatAreNotEnabled) {
  Add({}, Fill(0, 64));
  Add({0}, Fill(64, 64));
  Add({1}, Down(0, 64));
  const GraphExec exec = Instantiate();
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->EnableNode(exec, 1, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
}

TEST_F(CheckedGraphTest, EdgesAreThoseOfTheGraphWhenItWasInstantiated) {
  Add({}, Fill(0, 64));
  const GraphExec before = Instantiate();
  Add({}, Fill(0, 64));
  ASSERT_OK(driver_->LaunchGraph(before, stream_));
  ExpectRefused(LaunchNew(stream_), "ordered accesses", "graph node 1 of operation 1 of exec 2");
}

// Against a search for paths.
TEST_F(CheckedGraphTest, RandomGraphsAreRefusedExactlyWhereNoPathOrdersTwoNodes) {
  std::mt19937 random(20261122);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    constexpr int kNodes = 7;
    const Graph graph = *driver_->CreateGraph(0);
    bool path[kNodes][kNodes] = {};
    int box[kNodes];
    bool clash = false;
    for (int node = 0; node < kNodes; ++node) {
      box[node] = static_cast<int>(random() % 3);
      std::vector<int32_t> after;
      for (int before = 0; before < node; ++before) {
        if (random() % 2 == 0) continue;
        after.push_back(before);
        path[before][node] = true;
      }
      const FillOp fill = Fill(static_cast<size_t>(box[node]) * 8, 8);
      ASSERT_OK(driver_->AddNode(graph, after, &fill, {}).status());
    }
    for (int k = 0; k < kNodes; ++k) {
      for (int i = 0; i < kNodes; ++i) {
        for (int j = 0; j < kNodes; ++j) path[i][j] = path[i][j] || (path[i][k] && path[k][j]);
      }
    }
    for (int i = 0; i < kNodes; ++i) {
      for (int j = i + 1; j < kNodes; ++j) clash = clash || (box[i] == box[j] && !path[i][j]);
    }
    execs_.push_back(*driver_->Instantiate(graph));
    ASSERT_EQ(driver_->LaunchGraph(execs_.back(), stream_).ok(), !clash) << round;
    EXPECT_EQ(Violation() != "", clash);
    refused += clash;
    driver_->DestroyGraph(graph);
  }
  EXPECT_GT(refused, 50);
  EXPECT_LT(refused, 350);
}

TEST_F(CheckedGraphTest, ALaunchComesAfterWhatItsStreamComesAfter) {
  Add({}, Down(0, 64));
  ASSERT_OK(Upload(stream_, 0, 64));
  ExpectRefused(LaunchNew(other_), "ordered accesses", "written by operation 1 of stream 1 for node 4");
  ASSERT_OK(LaunchNew(stream_));
  Follow(other_, stream_);
  ASSERT_OK(LaunchNew(other_));
}

TEST_F(CheckedGraphTest, WhatFollowsALaunchOnItsStreamComesAfterAllOfItsNodes) {
  Add({}, Fill(0, 64));
  Add({}, Fill(64, 64, 12));
  ASSERT_OK(LaunchNew(stream_));
  ExpectRefused(Download(other_, 64, 8), "ordered accesses",
                "written by graph node 1 of operation 1 of exec 1 for node 12");
  ASSERT_OK(Download(stream_, 0, 128));
  Follow(other_, stream_);
  ASSERT_OK(Upload(other_, 0, 128));
}

TEST_F(CheckedGraphTest, LaunchesOfOneExecComeAfterOneAnother) {
  Add({}, Fill(0, 64));
  Add({}, Fill(64, 64));
  const GraphExec exec = Instantiate();
  ASSERT_OK(Upload(stream_, 128, 64));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->LaunchGraph(exec, other_));
  ASSERT_OK(Download(other_, 0, 192)) << "the second comes after the first, and what that came after";
  ExpectRefused(LaunchNew(stream_), "ordered accesses", "operation 2 of exec 1");  // another exec does not
}

TEST_F(CheckedGraphTest, AnUploadIsNoLaunchThatOthersWaitFor) {
  Add({}, Fill(0, 64));
  const GraphExec exec = Instantiate();
  ASSERT_OK(Upload(stream_, 0, 64));
  ASSERT_OK(driver_->Upload(exec, stream_));
  ExpectRefused(driver_->LaunchGraph(exec, other_), "ordered accesses", "written by operation 1 of stream 1");
}

TEST_F(CheckedGraphTest, MemoryIsFreedWhenTheHostHasSeenTheLaunchEnd) {
  std::byte *const seen = Device(0), *const unseen = Device(0);
  FillOp fill{.dst = seen, .count = 8};
  Add({}, fill);
  const GraphExec exec = Instantiate();
  ASSERT_OK(driver_->LaunchGraph(exec, other_));
  Follow(stream_, other_);
  Finish(stream_);
  driver_->FreeDevice(0, seen);
  EXPECT_EQ(Violation(), "");
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "memory is alive", "graph node 0 of operation 2 of exec 1");
  fill.dst = unseen;
  ASSERT_OK(driver_->SetNode(exec, 0, &fill));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  driver_->FreeDevice(0, unseen);
  EXPECT_THAT(Violation(), AllOf(HasSubstr("'freed when idle'"), HasSubstr("graph node 0 of operation 3 of exec 1")));
}

// --- what nodes do ---

TEST_F(CheckedGraphTest, NodesKeepTheRulesOfOperations) {
  std::byte* const elsewhere = Device(1);
  const auto refuse = [&](const auto& op, const std::string& rule, const std::string& text) {
    const Graph graph = *driver_->CreateGraph(0);
    ASSERT_OK(driver_->AddNode(graph, {}, &op, {}).status());
    const GraphExec exec = *driver_->Instantiate(graph);
    const absl::Status refused = driver_->LaunchGraph(exec, stream_);
    EXPECT_THAT(base::Str(refused.message()), HasSubstr("graph node 0 of operation 1 of exec"));
    ExpectRefused(refused, rule, text);
    execs_.push_back(exec);
    driver_->DestroyGraph(graph);
  };
  refuse(Fill(kBytes - 8, 9), "inside the allocation", "by 1 bytes");
  refuse(FillOp{.dst = elsewhere, .count = 8}, "one device", "expected memory of device 0");
  refuse(Down(0, 8), "written before read", "never written");
  std::byte local[8] = {};
  refuse(CopyOp{.dst = device_, .src = local, .width = 8}, "memory is alive", "the source");
  ASSERT_OK(driver_->Fill(stream_, {.dst = device_, .count = kBytes}));
  refuse(CopyOp{.kind = CopyKind::kDeviceToDevice, .dst = device_, .src = device_ + 7, .width = 8},
         "source and destination apart", "by graph node 0");
  PackedArgs args;
  args.Add(elsewhere);
  refuse(args.op(), "one device", "Launch: an argument");
  driver_->FreeDevice(1, elsewhere);
}

TEST_F(CheckedGraphTest, ANodeThatIsNotEnabledTouchesNothingAndIsNotAsked) {
  class Unasked final : public UseSource {
    void AppendUses(int32_t node, std::vector<MemoryUse>& /*out*/) const override { ADD_FAILURE() << node; }
  } unasked;
  Add({}, Fill(0, 64));
  Add({}, Fill(0, 64));
  AddKernel({}, device_, &unasked);
  const GraphExec exec = Instantiate();
  ASSERT_OK(driver_->EnableNode(exec, 1, false));
  ASSERT_OK(driver_->EnableNode(exec, 2, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->EnableNode(exec, 1, true));
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "ordered accesses", "graph node 1 of operation 2 of exec 1");
}

TEST_F(CheckedGraphTest, WhatIsSetInANodeCountsFromTheNextLaunch) {
  FillOp fill = Fill(0, 64);
  Add({}, fill);
  fill.dst = nullptr;  // the graph has it by value
  const GraphExec exec = Instantiate();
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  fill = Fill(64, 64);
  ASSERT_OK(driver_->SetNode(exec, 0, &fill));
  fill.dst = nullptr;
  ASSERT_OK(Upload(other_, 64, 64)) << "not yet";
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "ordered accesses", "written by operation 1 of stream 2");
  below_->answer = absl::UnavailableError("no");
  fill = Fill(128, 64);
  EXPECT_EQ(driver_->SetNode(exec, 0, &fill), below_->answer);
  EXPECT_EQ(driver_->EnableNode(exec, 0, false), below_->answer);
  below_->answer = absl::OkStatus();
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "ordered accesses", "written by operation 1 of stream 2");
}

TEST_F(CheckedGraphTest, KernelsAreAskedForTheirUsesAtEachLaunch) {
  std::byte* const first = Device(0);
  std::byte* const second = Device(0);
  Uses uses({{.data = first, .width = 64, .writes = true}});
  AddKernel({}, device_, &uses, 5);
  const GraphExec exec = Instantiate();
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->Fill(other_, {.dst = second, .count = 8}));
  uses = Uses({{.data = second, .width = 64, .writes = true}});
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "ordered accesses",
                "written by graph node 0 of operation 2 of exec 1 for node 5");
  Finish(stream_);
  Finish(other_);
  driver_->FreeDevice(0, first);
  driver_->FreeDevice(0, second);
  ASSERT_OK(driver_->EnableNode(exec, 0, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
}

TEST_F(CheckedGraphTest, PointersOfKernelsAreAliveAtEachLaunch) {
  std::byte* const memory = Device(0);
  AddKernel({}, memory, nullptr, 5);
  const GraphExec exec = Instantiate();
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->Copy(stream_, {.kind = CopyKind::kDeviceToHost, .dst = pinned_, .src = memory, .width = 8}))
      << "nobody knows what it wrote";
  driver_->FreeDevice(0, memory);
  EXPECT_THAT(Violation(), HasSubstr("'freed when idle'"));
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "memory is alive",
                "used by graph node 0 of operation 2 of exec 1");
  PackedArgs args;
  args.Add(device_);
  const KernelOp set = args.op();
  ASSERT_OK(driver_->SetNode(exec, 0, &set));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
}

TEST_F(CheckedGraphTest, TheTableOfABatchIsReadAtTheLaunch) {
  CopyPiece* const table = Table(2);
  Add({}, BatchOp{.pieces = table, .count = 2});
  const GraphExec exec = Instantiate();
  table[0] = {.dst = device_, .src = pinned_, .width = 16};
  table[1] = {.dst = device_ + 16, .src = pinned_, .width = 16};
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(Download(stream_, 0, 32));
  Finish(stream_);
  table[1].dst = device_ + 15;
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "pieces apart", "graph node 0 of operation 2 of exec 1: piece 0");
  Finish(stream_);
  driver_->FreePinned(table);
  tables_.clear();
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "memory is alive", "CopyBatch: the table");
}

// --- records and faults ---

TEST_F(CheckedGraphTest, CallsAreCountedAndRecorded) {
  witness_->KeepCalls(true);
  const Graph graph = *driver_->CreateGraph(0);
  const FillOp fill = Fill(0, 64, 7);
  const BatchOp batch{.pieces = Table(1), .count = 1, .size = {96, 96}, .tag = {nullptr, 8}};
  const CopyOp copy = Up(0, 32, 9);
  ASSERT_OK(driver_->AddNode(graph, {}, &fill, {}).status());
  ASSERT_OK(driver_->AddNode(graph, {}, &batch, {}).status());
  ASSERT_OK(driver_->AddNode(graph, std::vector<int32_t>{0}, &copy, {}).status());
  const GraphExec exec = Instantiate(), second = *driver_->Instantiate(graph);
  driver_->DestroyGraph(graph);
  ASSERT_OK(driver_->Upload(second, stream_));
  ASSERT_OK(driver_->EnableNode(second, 1, false));
  ASSERT_OK(driver_->SetNode(second, 2, &copy));
  ASSERT_OK(driver_->LaunchGraph(second, other_));
  Finish(other_);
  Finish(stream_);
  driver_->DestroyExec(second);
  EXPECT_EQ(exec.bits, 1u);
  const CallLog log = witness_->log();
  std::vector<std::string> calls;
  for (const Call& call : log.calls()) {
    if (call.kind >= CallKind::kCreateGraph) calls.push_back(TextOf(call));
  }
  EXPECT_THAT(
      calls,
      ElementsAre("CreateGraph device 0", "AddNode graph 2 node 7 64 bytes", "AddNode graph 2 node 8 96 bytes",
                  "AddNode graph 2 node 9 32 bytes", "Instantiate graph 1", "Instantiate graph 2",
                  "DestroyGraph graph 2", "Upload stream 1 exec 2", "EnableNode exec 2 graph node 1",
                  "SetNode exec 2 graph node 2 node 9 32 bytes", "LaunchGraph stream 2 exec 2", "DestroyExec exec 2"));
  EXPECT_EQ(log.count(CallKind::kAddNode), 3);
  EXPECT_EQ(log.count(CallKind::kCopy) + log.count(CallKind::kFill) + log.count(CallKind::kCopyBatch), 0);
}

TEST_F(CheckedGraphTest, ALaunchCountsAsWhatItsEnabledNodesDo) {
  CopyPiece* const table = Table(3);
  for (int i = 0; i < 3; ++i) table[i] = {.dst = device_ + 1000 + 16 * i, .src = pinned_ + 2048 + 16 * i, .width = 16};
  Add({}, BatchOp{.pieces = table, .count = 3});
  Add({}, Up(0, 64));
  Add({1}, Down(0, 32));
  Add({}, FillOp{.dst = device_ + 64, .pattern_size = 4, .count = 4, .height = 5, .pitch = 64});
  Add({1}, CopyOp{.kind = CopyKind::kDeviceToDevice, .dst = device_ + 512, .src = device_, .width = 8});
  AddKernel({}, device_, nullptr);
  const GraphExec exec = Instantiate();
  const Totals before = witness_->totals();
  const Totals once{.uploads = {1, 64},
                    .downloads = {1, 32},
                    .inside = {1, 8},
                    .batch_uploads = {1, 48},
                    .pieces = 3,
                    .fills = {1, 80}};
  ASSERT_OK(driver_->Upload(exec, stream_));
  EXPECT_EQ(witness_->totals(), before);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  EXPECT_EQ(witness_->totals() - before, once);
  for (const int32_t node : {0, 2, 3, 4}) ASSERT_OK(driver_->EnableNode(exec, node, false));
  const CopyOp longer = Up(0, 100);
  ASSERT_OK(driver_->SetNode(exec, 1, &longer));
  const Totals between = witness_->totals();
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  EXPECT_EQ(witness_->totals() - between, (Totals{.uploads = {1, 100}}));
  below_->answer = absl::UnavailableError("no");
  EXPECT_FALSE(driver_->LaunchGraph(exec, stream_).ok());
  EXPECT_EQ(witness_->totals() - between, (Totals{.uploads = {1, 100}})) << "what failed does not count";
  below_->answer = absl::OkStatus();
}

TEST_F(CheckedGraphTest, TheNthCallFailsWithoutEffectAndTheNextDoesNot) {
  const FillOp fill = Fill(0, 64);
  Add({}, fill);
  const GraphExec exec = Instantiate();
  const struct {
    CallKind kind;
    std::function<absl::Status()> call;
  } kCalls[] = {
      {CallKind::kCreateGraph, [&] { return driver_->CreateGraph(0).status(); }},
      {CallKind::kAddNode, [&] { return driver_->AddNode(graph_, {}, &fill, {}).status(); }},
      {CallKind::kInstantiate, [&] { return driver_->Instantiate(graph_).status(); }},
      {CallKind::kUpload, [&] { return driver_->Upload(exec, stream_); }},
      {CallKind::kLaunchGraph, [&] { return driver_->LaunchGraph(exec, stream_); }},
      {CallKind::kSetNode, [&] { return driver_->SetNode(exec, 0, &fill); }},
      {CallKind::kEnableNode, [&] { return driver_->EnableNode(exec, 0, true); }},
  };
  for (const auto& [kind, call] : kCalls) {
    const Gauges gauges = witness_->gauges();
    const size_t calls = below_->calls.size();
    witness_->FailNth(kind, 1, absl::ResourceExhaustedError("planned"));
    EXPECT_EQ(call(), absl::ResourceExhaustedError("planned")) << NameOf(kind);
    EXPECT_EQ(witness_->gauges(), gauges) << NameOf(kind);
    EXPECT_EQ(below_->calls.size(), calls) << NameOf(kind);
    EXPECT_EQ(call(), absl::OkStatus()) << NameOf(kind);
  }
  driver_->DestroyGraph(Graph{2});
  driver_->DestroyExec(GraphExec{2});
}

TEST_F(CheckedGraphTest, ADeadDevicesExecsGoWithoutAnEvent) {
  const GraphExec exec = *driver_->Instantiate(graph_);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  witness_->DieAtNth(CallKind::kLaunchGraph, 1);
  const absl::Status died = driver_->LaunchGraph(exec, stream_);
  EXPECT_FALSE(died.ok());
  EXPECT_EQ(driver_->CreateGraph(0).status(), died);
  driver_->DestroyExec(exec);
  EXPECT_EQ(Violation(), "");
  witness_->ClearFaults();
}

}  // namespace
}  // namespace penstock::driver::checked::checked_graphs_test
