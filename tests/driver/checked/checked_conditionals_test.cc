// Each rule of conditional nodes that the checked driver asserts, with host devices below it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/driver/checked/checked_driver.h"
#include "tests/driver/checked/checked_fixture.h"

namespace penstock::driver::checked::checked_conditionals_test {
namespace {

using testing::HasSubstr;
using enum ConditionalKind;

class CheckedConditionalTest : public CheckedFixture {
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
    for (const Graph graph : graphs_) driver_->DestroyGraph(graph);
    CheckedFixture::TearDown();
  }

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
  template <class Op>
  int32_t Add(Graph graph, const std::vector<int32_t>& after, const Op& op) {
    const absl::StatusOr<int32_t> node = driver_->AddNode(graph, after, &op, {});
    EXPECT_OK(node.status());
    return node.value_or(-1);
  }
  // Its value is 0, so that no body of a loop or an if runs.
  ConditionalNode AddConditional(Graph graph, const std::vector<int32_t>& after, ConditionalKind kind,
                                 int32_t bodies = 1) {
    const absl::StatusOr<ConditionalHandle> handle = driver_->CreateConditional(graph);
    EXPECT_OK(handle.status());
    absl::StatusOr<ConditionalNode> node = driver_->AddConditional(graph, after, *handle, kind, bodies);
    EXPECT_OK(node.status());
    return *std::move(node);
  }
  GraphExec Instantiate(Graph graph) {
    const absl::StatusOr<GraphExec> exec = driver_->Instantiate(graph);
    EXPECT_OK(exec.status());
    execs_.push_back(exec.value_or(GraphExec{}));
    return execs_.back();
  }
  // A graph of a loop in an if.
  Graph graph_;
  std::vector<Graph> graphs_;
  std::vector<GraphExec> execs_;
};

// --- memory ---

TEST_F(CheckedConditionalTest, ABodyThatDoesNotRunIsJudgedToo) {
  const ConditionalNode branch = AddConditional(graph_, {}, kIf, 2);
  Add(branch.bodies[1], {}, Down(0, 8, 3));
  ExpectRefused(driver_->LaunchGraph(Instantiate(graph_), stream_), "written before read", "for node 3");
}

TEST_F(CheckedConditionalTest, NodesOfABodyNeedEdgesAmongThemselves) {
  const ConditionalNode loop = AddConditional(graph_, {}, kWhile);
  Add(loop.bodies[0], {}, Fill(0, 8, 1));
  Add(loop.bodies[0], {}, Fill(16, 8, 2));
  Add(loop.bodies[0], {0}, Fill(4, 8, 3));
  Add(loop.bodies[0], {0}, Fill(16, 4, 4));
  ExpectRefused(driver_->LaunchGraph(Instantiate(graph_), stream_), "ordered accesses", "no edge orders them");
}

TEST_F(CheckedConditionalTest, ABodyNeedsEdgesAroundItsNode) {
  const ConditionalNode outer = AddConditional(graph_, {}, kIf);
  const ConditionalNode inner = AddConditional(outer.bodies[0], {}, kIf);
  Add(inner.bodies[0], {}, Fill(0, 8, 1));
  Add(graph_, {}, Fill(4, 8, 2));
  ExpectRefused(driver_->LaunchGraph(Instantiate(graph_), stream_), "ordered accesses", "for node 2");
}

TEST_F(CheckedConditionalTest, WhatIsOrderedInAndAroundBodiesIsAccepted) {
  Add(graph_, {}, Fill(0, 64, 1));
  const ConditionalNode branch = AddConditional(graph_, {0}, kSwitch, 2);
  Add(branch.bodies[0], {}, Fill(0, 8, 2));
  Add(branch.bodies[1], {}, Fill(0, 8, 3));  // which never runs beside it
  const ConditionalNode loop = AddConditional(branch.bodies[1], {0}, kWhile);
  Add(loop.bodies[0], {}, Down(0, 8, 4));
  Add(loop.bodies[0], {0}, Fill(4, 8, 5));
  Add(branch.bodies[1], {1}, Down(0, 16, 6));
  Add(graph_, {1}, Down(0, 8, 7));
  ASSERT_OK(driver_->LaunchGraph(Instantiate(graph_), stream_));
}

// Nodes 1 and 2 are alternatives; node 3 is of the same body as node 2.
TEST_F(CheckedConditionalTest, OfAlternativesOnlyOneRuns) {
  const auto exec_of = [&](int32_t of, int32_t body) {
    graphs_.push_back(*driver_->CreateGraph(0));
    const Graph graph = graphs_.back();
    Add(graph, {}, Fill(64, 8, 0));
    Add(graph, {0}, Fill(0, 8, 1));
    Add(graph, {0}, Fill(0, 8, 2));
    Add(graph, {0}, Fill(4, 8, 3));
    EXPECT_OK(driver_->AddSwitch(graph, 1, {.of = 0, .body = 0}).status());
    EXPECT_OK(driver_->AddSwitch(graph, 2, {.of = of, .body = body}).status());
    EXPECT_OK(driver_->AddSwitch(graph, 3, {.of = 0, .body = 2}).status());
    return Instantiate(graph);
  };
  ASSERT_OK(driver_->LaunchGraph(exec_of(0, 1), stream_));
  for (const auto& [of, body] : {std::pair{0, 0}, {0, 2}, {-1, 1}, {3, 1}}) {
    ExpectRefused(driver_->LaunchGraph(exec_of(of, body), stream_), "ordered accesses", "for node 2");
  }
}

TEST_F(CheckedConditionalTest, ABodyIsJudgedAsItIsSetAndSwitched) {
  Add(graph_, {}, Fill(0, 16, 1));
  const ConditionalNode outer = AddConditional(graph_, {0}, kIf);
  Add(outer.bodies[0], {}, Fill(100, 8, 2));
  const ConditionalNode inner = AddConditional(outer.bodies[0], {0}, kIf);
  Add(inner.bodies[0], {}, Fill(200, 8, 3));
  Add(inner.bodies[0], {0}, Down(0, 8, 4));
  Add(graph_, {1}, Down(100, 8, 5));
  const GraphExec exec = Instantiate(graph_);
  const GraphExec body = *driver_->BodyOf(exec, inner.bodies[0]);
  ASSERT_OK(driver_->EnableNode(body, 0, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_)) << "node 2 is still on";
  const CopyOp unwritten = Down(300, 8, 4);
  ASSERT_OK(driver_->SetNode(body, 1, &unwritten));
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "written before read", "for node 4");
  ASSERT_OK(driver_->EnableNode(body, 1, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  driver_->DestroyExec(body);
}

// --- handles ---

TEST_F(CheckedConditionalTest, BodiesGoWithTheirGraph) {
  const Graph graph = *driver_->CreateGraph(0);
  const Graph body = AddConditional(graph, {}, kIf).bodies[0];
  const Graph deeper = AddConditional(body, {}, kIf).bodies[0];
  EXPECT_EQ(witness_->gauges().graphs, 2) << "bodies are no graphs to destroy";
  driver_->DestroyGraph(body);
  EXPECT_THAT(Violation(), HasSubstr("'a body goes with its graph': DestroyGraph: graph 3 is a body in graph 2"));
  EXPECT_OK(driver_->CountNodes(body).status());
  driver_->DestroyGraph(graph);
  ExpectRefused(driver_->CountNodes(body).status(), "graph is alive", "graph 3 was destroyed before");
  ExpectRefused(driver_->CreateConditional(deeper).status(), "graph is alive", "graph 4 was destroyed before");
  ExpectRefused(driver_->AddConditional(body, {}, {}, kIf, 1).status(), "graph is alive", "AddConditional: graph 3");
}

TEST_F(CheckedConditionalTest, WhatBodyOfReturnsIsDestroyedOnceAndBeforeItsExec) {
  const Graph body = AddConditional(graph_, {}, kIf).bodies[0];
  const GraphExec exec = *driver_->Instantiate(graph_), of = *driver_->BodyOf(exec, body);
  EXPECT_EQ(witness_->gauges().execs, 2) << "so what is left alive is told";
  driver_->DestroyExec(exec);
  EXPECT_THAT(Violation(), HasSubstr("'bodies before their exec': DestroyExec: exec 1 while exec 2"));
  ExpectRefused(driver_->BodyOf(exec, body).status(), "exec is alive", "BodyOf: exec 1 was destroyed before");
  driver_->DestroyExec(of);
  driver_->DestroyExec(of);
  EXPECT_THAT(Violation(), HasSubstr("'destroyed once'"));
  EXPECT_EQ(witness_->gauges().execs, 0);
}

TEST_F(CheckedConditionalTest, AConditionalNodeComesAfterEarlierNodes) {
  const ConditionalHandle handle = *driver_->CreateConditional(graph_);
  ExpectRefused(driver_->AddConditional(graph_, std::vector{0}, handle, kIf, 1).status(), "after earlier nodes",
                "AddConditional: node 0 of graph 1 after node 0");
}

// --- one loop at a time ---

TEST_F(CheckedConditionalTest, LoopsThatNoEdgeOrdersAreRefused) {
  AddConditional(graph_, {}, kWhile);
  AddConditional(AddConditional(graph_, {0}, kIf).bodies[0], {}, kWhile);
  AddConditional(graph_, {}, kIf);
  const Graph body = AddConditional(graph_, {1}, kSwitch, 2).bodies[1];
  AddConditional(body, {}, kWhile);
  Instantiate(graph_);
  AddConditional(body, {}, kWhile);
  const absl::Status refused = driver_->Instantiate(graph_).status();
  ExpectRefused(refused, "one loop at a time", "nodes 0 and 1 of a body in graph 1 are loops that no edge orders");
}

TEST_F(CheckedConditionalTest, ALoopInABranchBesideALoopIsRefused) {
  AddConditional(graph_, {}, kWhile);
  AddConditional(AddConditional(graph_, {}, kIf).bodies[0], {}, kWhile);
  ExpectRefused(driver_->Instantiate(graph_).status(), "one loop at a time", "nodes 0 and 1 of graph 1");
}

TEST_F(CheckedConditionalTest, LoopsInTwoBodiesOfOneNodeNeverRunBoth) {
  const ConditionalNode branch = AddConditional(graph_, {}, kIf, 2);
  AddConditional(branch.bodies[0], {}, kWhile);
  AddConditional(branch.bodies[1], {}, kWhile);
  ASSERT_OK(driver_->LaunchGraph(Instantiate(graph_), stream_));
}

// --- records ---

TEST_F(CheckedConditionalTest, CallsAreRecordedAndCanBeMadeToFail) {
  const std::pair<CallKind, const char*> kinds[] = {{CallKind::kCreateConditional, "CreateConditional graph 1"},
                                                    {CallKind::kAddConditional, "AddConditional graph 1"},
                                                    {CallKind::kBodyOf, "BodyOf graph 2 exec 1"}};
  const Graph body = AddConditional(graph_, {}, kIf).bodies[0];
  const ConditionalHandle handle = *driver_->CreateConditional(graph_);
  const GraphExec exec = Instantiate(graph_);
  for (const auto& [kind, text] : kinds) {
    witness_->KeepCalls(true);
    witness_->FailNth(kind, 1, absl::AbortedError("planned"));
    const absl::Status status = kind == CallKind::kCreateConditional ? driver_->CreateConditional(graph_).status()
                                : kind == CallKind::kAddConditional
                                    ? driver_->AddConditional(graph_, {}, handle, kIf, 1).status()
                                    : driver_->BodyOf(exec, body).status();
    EXPECT_EQ(status, absl::AbortedError("planned"));
    EXPECT_EQ(TextOf(witness_->log().calls().back()), text);
  }
  EXPECT_EQ(driver_->CountNodes(graph_).value_or(-1), 1);
}

// Nobody here knows how often a body runs.
TEST_F(CheckedConditionalTest, WhatBodiesMoveIsNotCounted) {
  Add(graph_, {}, Fill(0, 8));
  Add(AddConditional(graph_, {0}, kIf).bodies[0], {}, Fill(0, 8));
  const Totals before = witness_->totals();
  ASSERT_OK(driver_->LaunchGraph(Instantiate(graph_), stream_));
  EXPECT_EQ(TextOf(witness_->totals() - before), "fills 1 with 8 bytes");
}

}  // namespace
}  // namespace penstock::driver::checked::checked_conditionals_test
