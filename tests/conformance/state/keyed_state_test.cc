// KeyedStates on every driver: each key's sums are exact and its own, keys stay where they are, are forgotten and
// poisoned one by one. Sums are computed without the library.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::keyed_state_test {
namespace {

using std::chrono::seconds;

constexpr int64_t kN = 300;

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t by, int32_t* sum) const {
    sum[i] += by + static_cast<int32_t>(i);
  }
};

class KeyedStateConformance : public GraphConformance {
 protected:
  // sum of the key += by + i; out = sum.
  struct Sums {
    Graph graph{"sums"};
    ParamHandle<int32_t> by = graph.Param<int32_t>("by");
    BufferHandle<int32_t> sum, out;
    explicit Sums(int max_keys) {
      sum = graph.KeyedState<int32_t>("sum", kN, {.max_keys = max_keys});
      out = graph.Output<int32_t>("out", kN);
      graph.ParallelFor("add", kN, AddTo{}, by, ReadWrite(sum));
      graph.ParallelFor("copy", kN, CopyOut{}, Read(sum), Write(out));
    }
  };
  int devices() const { return static_cast<int>(runtime_->devices().size()); }
  Executable Compiled(const Graph& graph, int slots) {
    auto exec = runtime_->Compile(graph, {.slots = slots, .devices = runtime_->all_devices()});
    EXPECT_OK(exec.status());
    return exec.ok() ? *std::move(exec) : Executable();
  }
  static std::vector<int32_t> Contents(Executable& exec, BufferHandle<int32_t> state, uint64_t key) {
    std::vector<int32_t> contents = Poisoned(kN);
    auto of_key = exec.StateOf(state, Key(key));
    EXPECT_OK(of_key.status());
    if (of_key.ok()) {
      EXPECT_OK(of_key->Read(contents));
    }
    return contents;
  }
};

TEST_P(KeyedStateConformance, EachKeyHasSumsOfItsOwnWithAnyNumberOfSlots) {
  for (int slots = 1; slots <= 3; ++slots) {
    Sums sums(7 * devices());
    Executable exec = Compiled(sums.graph, slots);
    Bindings io = exec.bindings();
    std::map<uint64_t, std::vector<int32_t>> expected;
    std::vector<std::vector<int32_t>> outs, wanted;
    std::vector<penstock::Run> runs;
    constexpr size_t kRuns = 60;
    outs.reserve(kRuns);
    for (size_t r = 0; r < kRuns; ++r) {
      const uint64_t key = 1000 + rng_() % 7;
      const auto by = static_cast<int32_t>(rng_() % 1000);
      std::vector<int32_t>& sum = expected.try_emplace(key, kN, 0).first->second;
      for (size_t i = 0; i < kN; ++i) sum[i] += by + static_cast<int32_t>(i);
      wanted.push_back(sum);
      outs.push_back(Poisoned(kN));
      auto run = exec.Launch(io.SetKey(Key(key)).Set(sums.by, by).Set(sums.out, outs.back()), seconds(60));
      ASSERT_OK(run.status());
      runs.push_back(*run);
    }
    for (const penstock::Run& run : runs) EXPECT_OK(run.Wait());
    for (size_t r = 0; r < kRuns; ++r) ASSERT_EQ(outs[r], wanted[r]) << "run " << r;
    for (const auto& [key, sum] : expected) EXPECT_EQ(Contents(exec, sums.sum, key), sum) << "key " << key;
  }
}

TEST_P(KeyedStateConformance, KeysAreSpreadOverTheDevicesAndStay) {
  Sums sums(8 * devices());  // half of which are used
  Executable exec = Compiled(sums.graph, 2);
  Bindings io = exec.bindings();
  std::vector<int32_t> out(kN);
  std::map<int, int> keys_on;
  std::map<uint64_t, int> device_of;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t key = 0; key < static_cast<uint64_t>(4 * devices()); ++key) {
      std::vector<int64_t> before;
      for (const int d : exec.devices()) before.push_back(exec.On(d)->launches());
      auto run = exec.Launch(io.SetKey(Key(key)).Set(sums.by, 1).Set(sums.out, out));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      const int device = exec.StateOf(sums.sum, Key(key))->device();
      EXPECT_EQ(exec.On(device)->launches(), before[static_cast<size_t>(device)] + 1) << "where its State is";
      const auto [at, is_first] = device_of.try_emplace(key, device);
      EXPECT_EQ(at->second, device) << "key " << key;
      if (is_first) ++keys_on[device];
    }
  }
  for (const auto& [device, count] : keys_on) EXPECT_EQ(count, 4) << "device " << device;
}

TEST_P(KeyedStateConformance, AForgottenKeyLeavesZerosAndRoomForAnother) {
  Sums sums(devices());
  Executable exec = Compiled(sums.graph, 2);
  Bindings io = exec.bindings();
  std::vector<int32_t> out(kN);
  const auto launch = [&](uint64_t key) -> absl::Status {
    auto run = exec.Launch(io.SetKey(Key(key)).Set(sums.by, 5).Set(sums.out, out));
    return run.ok() ? run->Wait() : run.status();
  };
  for (int d = 0; d < devices(); ++d) ASSERT_OK(launch(static_cast<uint64_t>(d)));
  const absl::Status full = launch(77);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(full.message().find("no State is left for key 77"), std::string::npos) << full;
  EXPECT_NE(full.message().find("max_keys"), std::string::npos) << full;
  EXPECT_OK(exec.Forget(Key(0)));
  EXPECT_OK(exec.Forget(Key(0))) << "it has none";
  ASSERT_OK(launch(77));
  for (size_t i = 0; i < kN; ++i) ASSERT_EQ(out[i], 5 + static_cast<int32_t>(i)) << "from zeros";
  EXPECT_EQ(launch(0).code(), absl::StatusCode::kResourceExhausted);
}

// What a key's run sees is a multiple of what its runs add, whoever has had the place before.
TEST_P(KeyedStateConformance, KeysMayBeForgottenWhileOthersLaunchThem) {
  Graph g("multiples");
  const auto by = g.Param<int32_t>("by");
  const auto sum = g.KeyedState<int32_t>("sum", 1, {.max_keys = 2 * devices()});
  const auto out = g.Output<int32_t>("out", 1);
  g.ParallelFor("add", 1, AddTo{}, by, ReadWrite(sum));
  g.ParallelFor("copy", 1, CopyOut{}, Read(sum), Write(out));
  Executable exec = Compiled(g, 2);
  constexpr int32_t kPrimes[] = {1009, 2003, 3001};
  std::atomic<bool> stop{false};
  std::atomic<int> right{0}, refused{0};
  std::vector<std::thread> threads;
  for (const int32_t prime : kPrimes) {
    threads.emplace_back([&, prime] {
      Bindings io = exec.bindings();
      for (int r = 0; r < 40; ++r) {
        std::vector<int32_t> seen{-1};
        auto run = exec.Launch(io.SetKey(Key(static_cast<uint64_t>(prime))).Set(by, prime).Set(out, seen));
        const absl::Status status = run.ok() ? run->Wait() : run.status();
        if (!status.ok()) {  // being forgotten, or no place is left for a third
          EXPECT_TRUE(absl::IsFailedPrecondition(status) || absl::IsResourceExhausted(status)) << status;
          refused.fetch_add(1);
          continue;
        }
        EXPECT_GT(seen[0], 0);
        EXPECT_EQ(seen[0] % prime, 0) << seen[0];
        right.fetch_add(1);
      }
    });
  }
  std::thread forgets([&] {
    for (size_t r = 0; !stop.load(); ++r)
      EXPECT_OK(exec.Forget(Key(static_cast<uint64_t>(kPrimes[r % 3])), seconds(60)));
  });
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  forgets.join();
  EXPECT_EQ(right.load() + refused.load(), 120);
}

TEST_P(KeyedStateConformance, ThePoisonOfAKeyIsItsOwn) {
  Graph g("poison");
  const auto by = g.Param<int32_t>("by");
  const auto sum = g.KeyedState<int32_t>("sum", kN, {.max_keys = 2 * devices()});
  g.ParallelFor("add", kN, AddTo{}, by, ReadWrite(sum));
  g.Host(
       "judge", [](int32_t value) { return value < 0 ? absl::DataLossError("negative") : absl::OkStatus(); }, by)
      .Concurrency(4);
  Executable exec = Compiled(g, 2);
  Bindings io = exec.bindings();
  const auto launch = [&](uint64_t key, int32_t value) -> absl::Status {
    auto run = exec.Launch(io.SetKey(Key(key)).Set(by, value));
    return run.ok() ? run->Wait() : run.status();
  };
  EXPECT_OK(launch(1, 1));
  EXPECT_OK(launch(2, 1));
  EXPECT_EQ(launch(1, -1).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(launch(1, 1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_OK(launch(2, 1));
  auto poisoned = exec.StateOf(sum, Key(1));
  ASSERT_OK(poisoned.status());
  EXPECT_FALSE(poisoned->status().ok());
  EXPECT_OK(poisoned->Reset());
  EXPECT_OK(launch(1, 3));
  EXPECT_EQ(Contents(exec, sum, 1)[5], 3 + 5);
  EXPECT_EQ(Contents(exec, sum, 2)[5], 2 * (1 + 5));
}

TEST_P(KeyedStateConformance, MistakesAreToldWithWhatToDo) {
  Sums sums(2 * devices());
  Executable exec = Compiled(sums.graph, 1);
  std::vector<int32_t> out(kN);
  Bindings io = exec.bindings();
  const absl::Status none = exec.Launch(io.Set(sums.by, 1).Set(sums.out, out)).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(none.message().find("SetKey"), std::string::npos) << none;
  EXPECT_EQ(exec.StateOf(sums.out, Key(1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(exec.StateOf(BufferHandle<int32_t>(), Key(1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(exec.Launch(io.SetKey(Key(1)).Set(sums.sum, out)).status().code(), absl::StatusCode::kInvalidArgument);
  Graph g("bad");
  const auto size = g.Param<int64_t>("size", AtMost(10));
  const auto moves = g.KeyedState<int32_t>("moves", size);
  const auto nobody = g.KeyedState<int32_t>("nobody", 1, {.max_keys = 0});
  g.Fill("fill", Write(moves), 0);
  g.Fill("fill too", Write(nobody), 0);
  const absl::Status bad = runtime_->Compile(g).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(bad.message().find("dimension 0 is a parameter; a State keeps its size"), std::string::npos) << bad;
  EXPECT_NE(bad.message().find("max_keys is not 1 to 65536"), std::string::npos) << bad;
  if (devices() < 2) return;
  const int home = exec.StateOf(sums.sum, Key(1))->device();
  auto elsewhere = exec.On(home == 0 ? 1 : 0);
  const absl::Status away =
      elsewhere->Launch(elsewhere->bindings().SetKey(Key(1)).Set(sums.by, 1).Set(sums.out, out)).status();
  EXPECT_EQ(away.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(away.message().find("on another device"), std::string::npos) << away;
}

INSTANTIATE_TEST_SUITE_P(Host, KeyedStateConformance, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, KeyedStateConformance, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::keyed_state_test
