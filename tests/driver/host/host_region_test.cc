// Regions as nodes of a host driver's graph: their operations run in order, and as one node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/driver/host/host_graph.h"
#include "tests/conformance/driver/packed_args.h"
#include "tests/driver/host/host_driver_fixture.h"

namespace penstock::driver::host::host_region_test {
namespace {

using conformance::PackedArgs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Edge = RegionOp::Edge;

// Argument 0 is an array, 1 what is multiplied with its elements, 2 what is then added.
void MultiplyAdd(void* const* argv, int64_t first, int64_t end) {
  int32_t* const data = *static_cast<int32_t* const*>(argv[0]);
  for (int64_t i = first; i < end; ++i) {
    data[i] = data[i] * *static_cast<const int32_t*>(argv[1]) + *static_cast<const int32_t*>(argv[2]);
  }
}
void Throw(void* const* /*argv*/, int64_t /*first*/, int64_t /*end*/) { throw std::runtime_error("broken"); }
// Argument 0 is the word of a switch.
void SwitchOff(void* const* argv, int64_t /*first*/, int64_t /*end*/) {
  std::atomic_ref(**static_cast<uint32_t* const*>(argv[0])).store(0, std::memory_order_relaxed);
}

// A MultiplyAdd of some elements.
struct Step {
  Step(int32_t* data, int32_t factor, int32_t summand, OpTag tag = {}) {
    args.Add(data).Add(factor).Add(summand);
    op = args.op();
    op.range = &MultiplyAdd;
    op.rows = kRows;
    op.tag = tag;
  }
  static constexpr int64_t kRows = 4;
  PackedArgs args;
  KernelOp op;
};

class HostRegionTest : public HostDriverTest {
 protected:
  void SetUp() override {
    HostDriverTest::SetUp();
    graph_ = *driver_->CreateGraph(0);
    data_ = Device<int32_t>(Step::kRows);
    ASSERT_OK(driver_->Fill(stream_, FillOf(data_, kBytes, 0)));
    ASSERT_TRUE(Finish(stream_));
  }
  absl::StatusOr<int32_t> TryAdd(const std::vector<NodeOp>& ops, std::vector<Edge> edges = {}, OpTag tag = {}) {
    const RegionOp region{.ops = ops, .edges = edges, .tag = tag};
    return driver_->AddNode(graph_, {}, &region, {});
  }
  void Add(const std::vector<NodeOp>& ops, OpTag tag = {}) { ASSERT_OK(TryAdd(ops, Chain(ops.size()), tag).status()); }
  static std::vector<Edge> Chain(size_t ops) {
    std::vector<Edge> edges;
    for (int32_t i = 1; i < static_cast<int32_t>(ops); ++i) edges.push_back({i - 1, i});
    return edges;
  }
  GraphExec Instantiate() { return *driver_->Instantiate(graph_); }
  // The data after a launch.
  std::vector<int32_t> Launch(GraphExec exec) {
    EXPECT_OK(driver_->LaunchGraph(exec, stream_));
    return Download(data_, Step::kRows);
  }
  FillOp Ones() const { return FillOf(data_, kBytes, 1); }  // 0x01010101
  static std::vector<int32_t> All(int32_t value) { return std::vector<int32_t>(Step::kRows, value); }

  static constexpr size_t kBytes = Step::kRows * sizeof(int32_t);
  static constexpr int32_t kOnes = 0x01010101;
  Graph graph_;
  int32_t* data_ = nullptr;
};

// --- what runs ---

TEST_F(HostRegionTest, KernelsFillsAndCopiesRunInOrderLaunchAfterLaunch) {
  int32_t* const copied = Device<int32_t>(Step::kRows);
  const FillOp zero = FillOf(data_, kBytes, 0);
  const CopyOp copy{.kind = CopyKind::kDeviceToDevice, .dst = copied, .src = data_, .width = kBytes};
  const Step add(data_, 1, 5), twice(data_, 2, 1), last(copied, 3, 0);
  Add({&zero, &add.op, &twice.op, &copy, &last.op, &add.op});
  const GraphExec exec = Instantiate();
  for (int launch = 0; launch < 2; ++launch) {
    EXPECT_EQ(Launch(exec), All((0 + 5) * 2 + 1 + 5));
    EXPECT_EQ(Download(copied, Step::kRows), All(((0 + 5) * 2 + 1) * 3));
  }
}

TEST_F(HostRegionTest, TheGraphKeepsArgumentsAndTheRegionItself) {
  {
    Step add(data_, 1, 5);
    std::vector<NodeOp> ops = {&add.op};
    Add(ops);
    ops[0] = NodeOp();
    add.args.Scribble();
    add.op = {};
  }
  const GraphExec exec = Instantiate();
  driver_->DestroyGraph(graph_);
  EXPECT_EQ(Launch(exec), All(5));
}

TEST_F(HostRegionTest, WhatIsEmptyDoesNothing) {
  FillOp fill = FillOf(nullptr, 0, 1), rows = Ones();
  rows.height = 0;
  const CopyOp copy{.kind = CopyKind::kDeviceToDevice, .dst = nullptr, .src = nullptr, .width = 0};
  Step none(data_, 1, 5), add(data_, 1, 7);
  none.op.rows = 0;
  Add({&fill, &rows, &none.op, &add.op, &copy});
  EXPECT_EQ(Launch(Instantiate()), All(7));
  graph_ = *driver_->CreateGraph(0);
  Add({&fill, &rows, &none.op, &copy});
  EXPECT_EQ(Launch(Instantiate()), All(7));
}

TEST_F(HostRegionTest, ComesAfterWhatItsNodeComesAfterAndBeforeWhatComesAfterIt) {
  const Step add(data_, 1, 5), twice(data_, 2, 0);
  const FillOp ones = Ones();
  const std::vector<NodeOp> ops = {&add.op, &twice.op};
  const RegionOp region{.ops = ops, .edges = {}};
  ASSERT_OK(driver_->AddNode(graph_, {}, &ones, {}).status());
  ASSERT_OK(driver_->AddNode(graph_, std::vector<int32_t>{0}, &region, {}).status());
  ASSERT_OK(driver_->AddNode(graph_, std::vector<int32_t>{1}, &add.op, {}).status());
  EXPECT_EQ(Launch(Instantiate()), All((kOnes + 5) * 2 + 5));
}

TEST_F(HostRegionTest, AChildHasRegions) {
  const Step add(data_, 1, 5), twice(data_, 2, 0), thrice(data_, 3, 0);
  Add({&add.op, &twice.op});
  const Graph child = std::exchange(graph_, *driver_->CreateGraph(0));
  ASSERT_OK(driver_->AddChild(graph_, {}, child).status());
  ASSERT_OK(driver_->AddChild(graph_, std::vector<int32_t>{0}, child).status());
  driver_->DestroyGraph(child);
  const GraphExec exec = Instantiate();
  EXPECT_EQ(Launch(exec), All((5 * 2 + 5) * 2));

  const Graph changed = std::exchange(graph_, *driver_->CreateGraph(0));
  Add({&thrice.op, &add.op});
  ASSERT_OK(driver_->SetChild(exec, 1, graph_));
  EXPECT_EQ(Launch(exec), All((30 + 5) * 2 * 3 + 5));
  EXPECT_EQ(driver_->SetNode(exec, 0, &add.op).code(), kRefused);
  driver_->DestroyGraph(changed);
}

// --- failures ---

TEST_F(HostRegionTest, AFailureNamesItsNodeAndTheRestIsLeftOut) {
  RunFault fault;
  const Step before(data_, 1, 5, {&fault, 3}), after(data_, 1, 7, {&fault, 5});
  const KernelOp broken{.range = &Throw, .rows = 1, .tag = {&fault, 4}};
  Add({&before.op, &broken, &after.op}, {&fault, 2});
  const GraphExec exec = Instantiate();
  EXPECT_EQ(Launch(exec), All(5));
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 4);
  EXPECT_THAT(Text(fault.status()), HasSubstr("broken"));
  EXPECT_EQ(Launch(exec), All(5)) << "the run has failed before";
  fault.Reset();
  EXPECT_EQ(Launch(exec), All(10)) << "another run";
}

TEST_F(HostRegionTest, ARunThatHasFailedBeforeDoesNothing) {
  RunFault fault;
  const Step step(data_, 1, 5, {&fault, 3});
  Add({&step.op});  // the node itself belongs to no run
  const GraphExec exec = Instantiate();
  fault.Fail(9, absl::DataLossError("before"));
  EXPECT_EQ(Launch(exec), All(0));
  EXPECT_EQ(fault.node(), 9);
  fault.Reset();
  EXPECT_EQ(Launch(exec), All(5));
}

TEST_F(HostRegionTest, AnOperationWithoutARunFailsTheOneOfTheNode) {
  RunFault fault;
  const KernelOp broken{.range = &Throw, .rows = 1};
  const Step after(data_, 1, 5);
  Add({&broken, &after.op}, {&fault, 2});
  EXPECT_EQ(Launch(Instantiate()), All(0));
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 2);
}

// --- what is set ---

TEST_F(HostRegionTest, ARegionTakesOtherOperations) {
  const Step add(data_, 1, 5), twice(data_, 2, 1);
  const FillOp ones = Ones();
  Add({&add.op, &twice.op});
  const GraphExec exec = Instantiate();
  EXPECT_EQ(Launch(exec), All(5 * 2 + 1));
  const std::vector<NodeOp> ops = {&ones, &add.op};
  const RegionOp other{.ops = ops, .edges = {}};
  ASSERT_OK(driver_->SetNode(exec, 0, &other));
  EXPECT_EQ(Launch(exec), All(kOnes + 5));
  ASSERT_OK(driver_->EnableNode(exec, 0, false));
  ASSERT_OK(driver_->Fill(stream_, FillOf(data_, kBytes, 0)));
  EXPECT_EQ(Launch(exec), All(0));
  for (const NodeOp& op : {NodeOp(&ones), NodeOp(&add.op)}) {
    EXPECT_EQ(driver_->SetNode(exec, 0, op).code(), kRefused);
    EXPECT_THAT(Text(driver_->SetNode(exec, 0, op)), HasSubstr("this one is a region and cannot become a "));
  }
}

TEST_F(HostRegionTest, WhatIsSetLeavesEarlierLaunchesAlone) {
  const Step add(data_, 1, 5), twice(data_, 2, 0);
  Add({&add.op});
  const GraphExec exec = Instantiate();
  Latch& held = NewLatch();
  ASSERT_OK(driver_->Launch(stream_, CallOf(held)));
  ASSERT_TRUE(held.AwaitArrived());
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  const NodeOp op = &twice.op;
  const RegionOp other{.ops = {&op, 1}, .edges = {}};
  ASSERT_OK(driver_->SetNode(exec, 0, &other));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  driver_->DestroyExec(exec);
  held.Open();
  EXPECT_EQ(Download(data_, Step::kRows), All(10));
}

TEST_F(HostRegionTest, AKernelBeforeItSwitchesItOff) {
  int32_t* const decides = Device<int32_t>(Step::kRows);
  const Step nothing(decides, 0, 0), add(data_, 1, 5);
  ASSERT_OK(driver_->AddNode(graph_, {}, &nothing.op, {}).status());
  const NodeOp op = &add.op;
  const RegionOp region{.ops = {&op, 1}, .edges = {}};
  ASSERT_OK(driver_->AddNode(graph_, std::vector<int32_t>{0}, &region, {}).status());
  const absl::StatusOr<NodeSwitch> made = driver_->AddSwitch(graph_, 1, {});
  ASSERT_OK(made.status());
  const GraphExec exec = Instantiate();
  EXPECT_EQ(Launch(exec), All(5));

  PackedArgs args;
  args.Add(made->bits);
  KernelOp off = args.op();
  off.range = &SwitchOff;
  off.rows = 1;
  ASSERT_OK(driver_->SetNode(exec, 0, &off));
  EXPECT_EQ(Launch(exec), All(5));
  ASSERT_OK(driver_->SetNode(exec, 0, &nothing.op));
  EXPECT_EQ(Launch(exec), All(10)) << "it is on when a launch begins";
}

// --- what is refused ---

TEST_F(HostRegionTest, ARefusalNamesTheOperation) {
  std::vector<int32_t> pageable(Step::kRows);
  const FillOp none = FillOf(nullptr, 0, 1), ones = Ones();
  const Step step(pageable.data(), 1, 5);
  const absl::Status refused = TryAdd({&none, &ones, &step.op}).status();
  EXPECT_EQ(refused.code(), kRefused);
  EXPECT_THAT(Text(refused), HasSubstr("operation 2 of a region: kernel: pointer 0 of the arguments"));
  EXPECT_EQ(*driver_->CountNodes(graph_), 0);
}

TEST_F(HostRegionTest, WhatNoRegionHasIsRefused) {
  const CopyOp upload{.dst = data_, .src = Pinned(4), .width = 4};
  const Step add(data_, 1, 5);
  for (const absl::Status& status :
       {TryAdd({}).status(), TryAdd({&upload}).status(), TryAdd({&add.op}, {{0, 0}}).status()}) {
    EXPECT_EQ(status.code(), kRefused);
  }
  Add({&add.op});
  const GraphExec exec = Instantiate();
  const RegionOp empty;
  EXPECT_EQ(driver_->SetNode(exec, 0, &empty).code(), kRefused);
  const std::vector<NodeOp> two(2, &add.op);
  const RegionOp more{.ops = two, .edges = {}};
  EXPECT_THAT(Text(driver_->SetNode(exec, 0, &more)), HasSubstr("this one has 1 and cannot have 2"));
  EXPECT_EQ(Launch(exec), All(5));
}

}  // namespace
}  // namespace penstock::driver::host::host_region_test
