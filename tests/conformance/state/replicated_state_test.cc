// ReplicatedStates on every driver: an executable uses its device's replica, and Broadcast and Reduce bring them
// together. What is expected is computed without the library.
#include <string>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::replicated_state_test {
namespace {

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, int32_t by, View<int32_t> sum) const {
    sum(i.y, i.x) += by * static_cast<int32_t>(i.y * 100 + i.x);
  }
};
struct Plus {
  PENSTOCK_HOST_DEVICE int32_t operator()(int32_t a, int32_t b) const { return a + b; }
};
struct Digits {  // of what was there, and then of the other: tells the order
  PENSTOCK_HOST_DEVICE int32_t operator()(int32_t a, int32_t b) const { return a * 10 + b; }
};

class ReplicatedStateConformance : public GraphConformance {
 protected:
  static constexpr int64_t kH = 7, kW = 30;
  int devices() const { return static_cast<int>(runtime_->devices().size()); }
  template <class F>
  void Launched(Graph& graph, CompileOptions options, F bind) {
    auto exec = runtime_->Compile(graph, std::move(options));
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    bind(io);
    auto run = exec->Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  }
  static std::vector<int32_t> Contents(const State<int32_t>& state, int64_t n) {
    std::vector<int32_t> contents = Poisoned(n);
    EXPECT_OK(state.Read(contents));
    return contents;
  }
};

TEST_P(ReplicatedStateConformance, EachDeviceAddsToItsOwnAndTheSumGoesToAll) {
  std::vector<int32_t> initial(kH * kW, 4);
  auto made = runtime_->MakeReplicatedState<int32_t>("gradient", {kH, kW}, initial);
  ASSERT_OK(made.status());
  ReplicatedState<int32_t> gradient = *made;
  EXPECT_EQ(gradient.devices().size(), static_cast<size_t>(devices()));
  Graph g("add");
  const auto by = g.Param<int32_t>("by");
  g.ParallelFor("add", {kH, kW}, AddTo{}, by, ReadWrite(gradient));
  auto exec = runtime_->Compile(g, {.devices = runtime_->all_devices()});
  ASSERT_OK(exec.status());
  for (int d = 0; d < devices(); ++d) {
    auto on = exec->On(d);
    auto run = on->Launch(on->bindings().Set(by, d + 1));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  }
  const auto at = [&](int64_t i) { return static_cast<int32_t>(i / kW * 100 + i % kW); };
  int32_t all = 0;
  for (int d = 0; d < devices(); ++d) {
    const std::vector<int32_t> own = Contents(gradient.On(d), kH * kW);
    for (int64_t i = 0; i < kH * kW; ++i) ASSERT_EQ(own[static_cast<size_t>(i)], 4 + (d + 1) * at(i)) << d;
    all += d + 1;
  }
  Graph sync("sync");
  Reduce(sync, "sum", gradient, Plus{}, 0);
  Broadcast(sync, "spread", gradient, 0);
  if (devices() > 1) Launched(sync, {}, [](Bindings&) {});
  for (int d = 0; d < devices(); ++d) {
    const std::vector<int32_t> own = Contents(gradient.On(d), kH * kW);
    for (int64_t i = 0; i < kH * kW; ++i) {
      ASSERT_EQ(own[static_cast<size_t>(i)], 4 * devices() + all * at(i)) << "device " << d;
    }
  }
  EXPECT_OK(gradient.Reset());
  EXPECT_EQ(Contents(gradient.On(devices() - 1), kH * kW), std::vector<int32_t>(kH * kW, 0));
}

TEST_P(ReplicatedStateConformance, ReduceGoesThroughTheDevicesInTheirOrderAndLeavesTheOthers) {
  if (devices() < 3) GTEST_SKIP() << "there are fewer than three devices";
  auto made = runtime_->MakeReplicatedState<int32_t>("digits", 5, {}, {.devices = {2, 0, 1}});
  ASSERT_OK(made.status());
  for (int d = 0; d < 3; ++d) ASSERT_OK(made->On(d).Set(std::vector<int32_t>(5, d + 1)));
  Graph sync("sync");
  Reduce(sync, "digits", *made, Digits{}, 1);
  Launched(sync, {}, [](Bindings&) {});
  EXPECT_EQ(Contents(made->On(1), 5), std::vector<int32_t>(5, 231));
  EXPECT_EQ(Contents(made->On(0), 5), std::vector<int32_t>(5, 1));
  EXPECT_EQ(Contents(made->On(2), 5), std::vector<int32_t>(5, 3));
}

TEST_P(ReplicatedStateConformance, MistakesAreToldWithWhatToDo) {
  EXPECT_EQ(runtime_->MakeReplicatedState<int32_t>("x", 5, {}, {.devices = {0, 0}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(runtime_->MakeReplicatedState<int32_t>("x", 5, {}, {.devices = {99}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  ReplicatedState<int32_t> none;
  EXPECT_EQ(none.Reset().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.On(0).status().code(), absl::StatusCode::kFailedPrecondition);
  if (devices() < 2) return;
  auto made = runtime_->MakeReplicatedState<int32_t>("here", {kH, kW}, {}, {.devices = {1}});
  ASSERT_OK(made.status());
  Graph g("there");
  g.ParallelFor("add", {kH, kW}, AddTo{}, 1, ReadWrite(*made));
  const absl::Status status = runtime_->Compile(g, {.device = 0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("has no replica on device 0"), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(Host, ReplicatedStateConformance, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, ReplicatedStateConformance, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::replicated_state_test
