// Executables compiled for several devices, on every driver: every launch is computed once, on a device that is free,
// by weight, or on the one that was named.
#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::several_devices_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kN = 257;

struct TwiceAndMore {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t more, const int32_t* x, int32_t* y) const {
    y[i] = 2 * x[i] + more;
  }
};

// Holds host nodes until it is opened.
class Door {
 public:
  void Pass() {
    std::unique_lock<std::mutex> lock(mu_);
    ++waiting_;
    cv_.notify_all();
    cv_.wait(lock, [&] { return open_; });
  }
  void AwaitWaiting(int count) {
    std::unique_lock<std::mutex> lock(mu_);
    cv_.wait(lock, [&] { return waiting_ >= count; });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mu_);
    open_ = true;
    cv_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  int waiting_ = 0;
  bool open_ = false;
};

class SeveralDevices : public GraphConformance {
 protected:
  int devices() const { return static_cast<int>(runtime_->devices().size()); }
};

TEST_P(SeveralDevices, EveryLaunchIsComputedOnceAndEachDeviceTakesSome) {
  Graph g("several");
  const auto more = g.Param<int32_t>("more");
  const auto x = g.Input<int32_t>("x", kN);
  const auto y = g.Output<int32_t>("y", kN);
  g.ParallelFor("twice", kN, TwiceAndMore{}, more, Read(x), Write(y));
  auto exec = runtime_->Compile(g, {.slots = 2, .devices = runtime_->all_devices()});
  ASSERT_OK(exec.status());
  EXPECT_EQ(exec->slots(), 2 * devices());
  constexpr int kRuns = 60;
  std::vector<std::vector<int32_t>> in, out;
  std::vector<penstock::Run> runs;
  Bindings io = exec->bindings();
  for (int r = 0; r < kRuns; ++r) {
    in.push_back(Random(kN));
    out.push_back(Poisoned(kN));
  }
  for (int r = 0; r < kRuns; ++r) {
    const auto i = static_cast<size_t>(r);
    auto run = exec->Launch(io.Set(more, r).Set(x, in[i]).Set(y, out[i]), seconds(60));
    ASSERT_OK(run.status());
    runs.push_back(*run);
  }
  for (const penstock::Run& run : runs) EXPECT_OK(run.Wait());
  for (int r = 0; r < kRuns; ++r) {
    const auto i = static_cast<size_t>(r);
    for (size_t e = 0; e < kN; ++e) ASSERT_EQ(out[i][e], 2 * in[i][e] + r) << "run " << r;
  }
  EXPECT_EQ(exec->launches(), kRuns);
  int64_t sum = 0;
  for (const int d : exec->devices()) {
    auto on = exec->On(d);
    ASSERT_OK(on.status());
    EXPECT_GE(on->launches(), 1) << "device " << d;
    sum += on->launches();
  }
  EXPECT_EQ(sum, kRuns);
}

// With a run stuck on one device all others pass it by, and where all are stuck a launch says so.
TEST_P(SeveralDevices, NobodyWaitsForADeviceThatIsHeldUp) {
  auto door = std::make_shared<Door>();
  Graph g("held");
  const auto hold = g.Param<int32_t>("hold");
  g.Host(
       "door",
       [door](int32_t held) {
         if (held != 0) door->Pass();
       },
       hold)
      .Concurrency(8);
  auto exec = runtime_->Compile(g, {.slots = 1, .devices = runtime_->all_devices()});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  std::vector<penstock::Run> held;
  const int most = std::min(devices(), 2);  // as many as there are workers
  for (int d = 0; d < most; ++d) {
    const bool last = d + 1 == devices();
    auto run = exec->Launch(io.Set(hold, 1), seconds(60));
    ASSERT_OK(run.status());
    held.push_back(*run);
    door->AwaitWaiting(d + 1);
    std::vector<int64_t> before;
    for (const int on : exec->devices()) before.push_back(exec->On(on)->launches());
    if (last) {
      EXPECT_EQ(exec->TryLaunch(io.Set(hold, 0)).status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(exec->TryAcquire().status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(exec->Launch(io.Set(hold, 0), milliseconds(5)).status().code(), absl::StatusCode::kDeadlineExceeded);
    } else if (d == 0) {
      for (int r = 0; r < 12; ++r) {
        auto free = exec->Launch(io.Set(hold, 0), seconds(60));
        ASSERT_OK(free.status());
        EXPECT_OK(free->Wait());
      }
      std::vector<int64_t> grown;
      for (size_t i = 0; i < before.size(); ++i) grown.push_back(exec->On(static_cast<int>(i))->launches() - before[i]);
      EXPECT_EQ(std::count(grown.begin(), grown.end(), 0), 1) << "all but the one that is held up";
    }
  }
  door->Open();
  for (const penstock::Run& run : held) EXPECT_OK(run.Wait());
}

TEST_P(SeveralDevices, OneOfWeightZeroGetsOnlyWhatNamesIt) {
  if (devices() < 2) GTEST_SKIP() << "there is one device";
  Graph g("weights");
  g.Host("nothing", [] {});
  auto exec = runtime_->Compile(g, {.devices = {{0, 0.0}, {1, 1.0}}});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (int r = 0; r < 10; ++r) {
    auto run = exec->Launch(io);
    ASSERT_OK(run.status());
    EXPECT_OK(run->Wait());
  }
  auto first = exec->On(0);
  ASSERT_OK(first.status());
  EXPECT_EQ(first->launches(), 0);
  auto run = first->Launch(io);
  ASSERT_OK(run.status());
  EXPECT_OK(run->Wait());
  EXPECT_EQ(exec->launches(), 11);
  EXPECT_EQ(exec->On(5).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(SeveralDevices, LeasesAreOfWhicheverDeviceHasASlot) {
  Graph g("leased");
  const auto x = g.Input<int32_t>("x", kN, kSlot);
  const auto y = g.Output<int32_t>("y", kN, kSlot);
  g.ParallelFor("twice", kN, TwiceAndMore{}, 1, Read(x), Write(y));
  auto exec = runtime_->Compile(g, {.slots = 1, .devices = runtime_->all_devices()});
  ASSERT_OK(exec.status());
  const Bindings io = exec->bindings();
  std::vector<Lease> leases;
  std::set<int32_t*> places;
  for (int d = 0; d < devices(); ++d) {
    auto lease = exec->TryAcquire();
    ASSERT_OK(lease.status());
    const std::span<int32_t> in = lease->span(x);
    ASSERT_EQ(in.size(), static_cast<size_t>(kN));
    places.insert(in.data());
    std::fill(in.begin(), in.end(), d);
    leases.push_back(*std::move(lease));
  }
  EXPECT_EQ(places.size(), static_cast<size_t>(devices()));
  EXPECT_EQ(exec->TryAcquire().status().code(), absl::StatusCode::kResourceExhausted);
  for (int d = 0; d < devices(); ++d) {
    Lease& lease = leases[static_cast<size_t>(d)];
    auto run = lease.Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (const int32_t v : lease.span(y)) ASSERT_EQ(v, 2 * d + 1);
  }
  EXPECT_EQ(exec->TryAcquire().status().code(), absl::StatusCode::kResourceExhausted) << "they are still leased";
  leases.clear();
  EXPECT_OK(exec->TryAcquire().status());
}

TEST_P(SeveralDevices, MistakesAreToldWithWhatToDo) {
  Graph g("mistakes");
  g.Host("nothing", [] {});
  const auto message = [&](std::vector<DeviceShare> devices) {
    const absl::Status status = runtime_->Compile(g, {.devices = std::move(devices)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_NE(message({0, 0}).find("names 0 twice"), std::string::npos);
  EXPECT_NE(message({0, 99}).find("names 99; the runtime has devices 0 to"), std::string::npos);
  EXPECT_NE(message({-1}).find("names -1"), std::string::npos);
  EXPECT_NE(message({{0, -1.0}}).find("weight -1"), std::string::npos);
  EXPECT_NE(message({{0, 0.0}}).find("every device the weight 0"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Host, SeveralDevices, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, SeveralDevices, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::several_devices_test
