// Pipelines over several host devices: where items go by key and by name, what a key's State holds, who is dropped, and
// that one key's trouble is no other's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::placement_test {
namespace {

using testing::HasSubstr;

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, int32_t by, int64_t* sum) const { *sum += by; }
};
struct CopyOut {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const int64_t* from, int64_t* to) const { *to = *from; }
};

struct Amount {
  int32_t by = 0;
  std::vector<int64_t> out = {-1};
};

// out = (the key's sum += by), behind a Host node that may look at what it likes.
class PipelineDevicesTest : public testing::Test {
 protected:
  void SetUp() override {
    by_ = graph_.Param<int32_t>("by");
    sum_ = graph_.KeyedState<int64_t>("sum", 1, {.max_keys = 8});
    out_ = graph_.Output<int64_t>("out", 1);
    graph_.Host("look", [this](int32_t by) { return look_ ? look_(by) : absl::OkStatus(); }, by_).Concurrency(16);
    graph_.ParallelFor("add", 1, AddTo{}, by_, ReadWrite(sum_));
    graph_.ParallelFor("copy", 1, CopyOut{}, Read(sum_), Write(out_));
    graph_.Host("judge", [this](int32_t by) { return judge_ ? judge_(by) : absl::OkStatus(); }, by_).Concurrency(16);
  }
  Pipeline<Amount> Make(PipelineOptions options, int slots = 2) {
    executable_ = *runtime_.Compile(graph_, {.slots = slots, .devices = runtime_.all_devices()});
    Stages<Amount> stages;
    stages.Run("sums", executable_, [this](Item<Amount>& item) { item.Set(by_, item->by).Set(out_, item->out); });
    auto made = Pipeline<Amount>::Create(std::move(stages), std::move(options));
    EXPECT_OK(made.status());
    return *std::move(made);
  }

  std::function<absl::Status(int32_t)> look_, judge_;
  Runtime runtime_ = HostRuntime(6, "host:4");
  Graph graph_{"sums"};
  ParamHandle<int32_t> by_;
  BufferHandle<int64_t> sum_, out_;
  std::vector<int64_t> out_word_ = {-1};
  Executable executable_;
};

// Sums tell the order of a key's items; under kInOrder and kPerKey it is that of their submission.
TEST_F(PipelineDevicesTest, EachKeyHasItsStateItsOrderAndItsDevice) {
  for (const Order order : {kInOrder, kPerKey}) {
    auto pipe = Make({.window = 16, .order = order});
    std::map<uint64_t, int64_t> sums;
    std::map<uint64_t, std::vector<int64_t>> expected;
    std::map<uint64_t, std::set<int>> devices;
    int popped = 0;
    const auto take = [&] {
      const auto item = pipe.Pop();
      ASSERT_OK(item.status());
      std::vector<int64_t>& of_key = expected[item.key().value];
      EXPECT_EQ(item->out[0], of_key.front());
      of_key.erase(of_key.begin());
      devices[item.key().value].insert(item.device());
      ++popped;
    };
    for (int32_t n = 0; n < 300; ++n) {
      const uint64_t key = static_cast<uint64_t>(n * 7 % 8);
      expected[key].push_back(sums[key] += n);
      ASSERT_OK(pipe.Push({n}, Key(key)));
      if (n >= 15) take();
    }
    while (popped < 300) take();
    std::set<int> used;
    for (const auto& [key, on] : devices) {
      EXPECT_EQ(on.size(), 1u) << "key " << key;
      used.insert(on.begin(), on.end());
    }
    EXPECT_EQ(used.size(), 4u);
  }
}

// Whatever the order of results, and whoever is held up first.
TEST_F(PipelineDevicesTest, AKeysStateSeesItsItemsInTheirOrderHoweverTheyAreHandedOut) {
  driver::Latch latch;
  look_ = [&](int32_t by) {
    if (by == 0) latch.Arrive();
    return absl::OkStatus();
  };
  for (const Order order : {kInOrder, kAsReady}) {
    latch.Shut();
    auto pipe = Make({.window = 64, .order = order}, /*slots=*/1);
    std::map<uint64_t, int64_t> sums;
    std::map<uint64_t, std::vector<int64_t>> expected, found;
    for (int32_t n = 0; n < 60; ++n) {
      const uint64_t key = static_cast<uint64_t>(n % 8);
      expected[key].push_back(sums[key] += n);
      ASSERT_OK(pipe.Push({n}, Key(key), {.id = static_cast<uint64_t>(n)}));
      if (n == 0) {
        ASSERT_TRUE(latch.AwaitArrived());
      }
    }
    latch.Open();
    std::map<uint64_t, std::map<uint64_t, int64_t>> by_id;
    for (int n = 0; n < 60; ++n) {
      const auto item = pipe.Pop();
      ASSERT_OK(item.status());
      by_id[item.key().value][item.id()] = item->out[0];
    }
    for (const auto& [key, sums_of] : by_id) {
      for (const auto& [id, sum] : sums_of) found[key].push_back(sum);
    }
    EXPECT_EQ(found, expected);
  }
}

// One key's device is held up: those of other devices pass, also where all items of a key keep their order.
TEST_F(PipelineDevicesTest, AKeysDeviceThatIsHeldUpHoldsUpNoOther) {
  driver::Latch latch;
  look_ = [&](int32_t by) {
    if (by == -1) latch.Arrive();
    return absl::OkStatus();
  };
  auto pipe = Make({.window = 40, .order = kPerKey}, /*slots=*/1);
  for (uint64_t key = 0; key < 4; ++key) {  // a device each
    ASSERT_OK(pipe.Push({1}, Key(key)));
    EXPECT_OK(pipe.Pop().status());
  }
  ASSERT_OK(pipe.Push({-1}, Key(2)));
  ASSERT_TRUE(latch.AwaitArrived());
  for (int n = 0; n < 8; ++n) ASSERT_OK(pipe.Push({1}, Key(2)));  // behind the one that is held up
  for (int n = 0; n < 30; ++n) {
    const uint64_t key = std::vector<uint64_t>{0, 1, 3}[static_cast<size_t>(n % 3)];
    ASSERT_OK(pipe.Push({1}, Key(key)));
    const auto item = pipe.Pop();
    EXPECT_OK(item.status());
    EXPECT_EQ(item.key(), Key(key));
  }
  latch.Open();
  for (int n = 0; n < 9; ++n) EXPECT_EQ(pipe.Pop().key(), Key(2));
}

TEST_F(PipelineDevicesTest, PulledItemsHaveTheKeyTheirValueSays) {
  auto pipe = Make({.order = kPerKey});
  int32_t next = 0;
  std::map<uint64_t, int64_t> sums;
  ASSERT_OK(pipe.Run(
      [&]() -> std::optional<Amount> {
        if (next == 60) return std::nullopt;
        return Amount{next++};
      },
      [&](Item<Amount>& item) {
        EXPECT_OK(item.status());
        EXPECT_EQ(item.key().value, static_cast<uint64_t>(item->by % 5));
        EXPECT_EQ(item->out[0], sums[item.key().value] += item->by);
      },
      [](const Amount& amount) { return Key(static_cast<uint64_t>(amount.by % 5)); }));
  EXPECT_EQ(sums.size(), 5u);
}

// With more keys than States the item says so, and the stream goes on when one has been forgotten.
TEST_F(PipelineDevicesTest, MoreKeysThanStatesAreRefusedUntilOneIsForgotten) {
  auto pipe = Make({.order = kPerKey});
  for (uint64_t key = 0; key < 8; ++key) ASSERT_OK(pipe.Push({1}, Key(key)));
  const absl::Status refused = pipe.Push({1}, Key(99));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no State is left for key 99"));
  for (int n = 0; n < 8; ++n) EXPECT_OK(pipe.Pop().status());
  EXPECT_OK(executable_.Forget(Key(3)));
  ASSERT_OK(pipe.Push({5}, Key(99)));
  const auto item = pipe.Pop();
  EXPECT_OK(item.status());
  EXPECT_EQ(item->out[0], 5) << "from zero";
}

TEST_F(PipelineDevicesTest, APulledItemWithOneKeyTooManyEndsTheStreamAndReachesTheSinkLast) {
  auto pipe = Make({.order = kPerKey});
  int32_t given = 0;
  std::vector<std::pair<int32_t, absl::StatusCode>> seen;
  const absl::Status ended = pipe.Run([&]() -> std::optional<Amount> { return Amount{given++}; },
                                      [&](Item<Amount>& item) { seen.emplace_back(item->by, item.status().code()); },
                                      [](const Amount& amount) { return Key(static_cast<uint64_t>(amount.by)); });
  EXPECT_EQ(ended.code(), absl::StatusCode::kResourceExhausted) << ended;
  ASSERT_EQ(seen.size(), 9u);  // eight States, and the one too many
  EXPECT_EQ(given, 9);
  EXPECT_EQ(seen.back(), std::pair(8, absl::StatusCode::kResourceExhausted));
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(seen[i].second, absl::StatusCode::kOk);
}

TEST_F(PipelineDevicesTest, ABatchEndsWithAKeyTooManyAndAnotherFollows) {
  auto pipe = Make({.order = kPerKey});
  int32_t given = 0;
  std::vector<std::pair<int32_t, absl::StatusCode>> seen;
  const auto batch = [&](int32_t end) {
    return pipe.RunBatch(
        [&]() -> std::optional<Amount> { return given == end ? std::nullopt : std::optional(Amount{given++}); },
        [&](Item<Amount>& item) {
          seen.emplace_back(item->by, item.status().code());
          if (absl::IsResourceExhausted(item.status())) {
            EXPECT_OK(pipe.TryPush({50}, Key(1)));
          }
        },
        [](const Amount& amount) { return Key(static_cast<uint64_t>(amount.by)); });
  };
  EXPECT_EQ(batch(100).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(seen.size(), 10u);  // eight States, the one too many, and what the sink submits then
  EXPECT_EQ(seen[8], std::pair(8, absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(seen[9], std::pair(50, absl::StatusCode::kOk));
  EXPECT_OK(executable_.Forget(Key(3)));
  EXPECT_OK(batch(10));
  EXPECT_EQ(seen.back(), std::pair(9, absl::StatusCode::kOk));
}

// Only the key whose run has failed is reset, and told.
TEST_F(PipelineDevicesTest, APoisonedKeyIsResetByTheUserAndTheOthersKeepTheirSums) {
  judge_ = [](int32_t by) { return by == 13 ? absl::DataLossError("unlucky") : absl::OkStatus(); };
  std::vector<uint64_t> resets;
  auto pipe = Make({.order = kPerKey, .reset = [&](Key key) {
                      resets.push_back(key.value);
                      return executable_.StateOf(sum_, key)->Set(std::vector<int64_t>{1000});
                    }});
  const auto pushed = [&](int32_t by, uint64_t key) {
    EXPECT_OK(pipe.Push({by}, Key(key)));
    return pipe.Pop();
  };
  EXPECT_EQ(pushed(1, 7)->out[0], 1);
  EXPECT_EQ(pushed(2, 8)->out[0], 2);
  EXPECT_EQ(pushed(13, 7).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(pushed(3, 7)->out[0], 1003);
  EXPECT_EQ(pushed(3, 8)->out[0], 5);
  EXPECT_EQ(resets, std::vector<uint64_t>{7});
  EXPECT_OK(pipe.status());
}

// Without States an item goes where it is told, else anywhere.
TEST_F(PipelineDevicesTest, ItemsGoToTheDeviceTheyName) {
  Graph graph("anywhere");
  graph.Host("nothing", [] {});
  Stages<> stages;
  stages.Run("anywhere", *runtime_.Compile(graph, {.devices = {0, 2, 3}}));
  auto pipe = *Pipeline<>::Create(std::move(stages));
  for (int n = 0; n < 30; ++n) {
    const int device = std::vector<int>{0, 2, 3, kAnyDevice}[static_cast<size_t>(n % 4)];
    ASSERT_OK(pipe.Push({}, Key(), {.device = device}));
    const auto item = pipe.Pop();
    EXPECT_OK(item.status());
    if (device != kAnyDevice) {
      EXPECT_EQ(item.device(), device);
    }
  }
  const absl::Status refused = pipe.Push({}, Key(), {.device = 1});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is to be on device 1; no stage has it"));
  auto keyed = Make({});
  ASSERT_OK(keyed.Push({1}, Key(5), {.device = 3}));
  EXPECT_EQ(keyed.Pop().device(), 3);
  EXPECT_EQ(keyed.Push({1}, Key(5), {.device = 0}).code(), absl::StatusCode::kInvalidArgument) << "its State is on 3";
}

// Items that keep their slots: a full device drops its own oldest, not those of another.
TEST_F(PipelineDevicesTest, AFullDeviceDropsItsOwnItems) {
  Graph graph("camera");
  const auto frame = graph.Input<int32_t>("frame", 1, kSlot);
  const auto seen = graph.Output<int64_t>("seen", 1, kSlot);
  const auto sum = graph.KeyedState<int64_t>("sum", 1, {.max_keys = 4});
  driver::Latch latch;
  graph
      .Host(
          "look",
          [&](std::span<const int32_t> f) {
            if (f[0] == -1) latch.Arrive();
          },
          Read(frame))
      .Concurrency(8);
  graph.ParallelFor("copy", 1, CopyOut{}, Read(sum), Write(seen));
  auto pipe = *Pipeline<>::Create(runtime_, graph,
                                  {.slots_per_device = 2, .window = 12, .order = kPerKey, .when_full = kDropOldest});
  const auto push = [&](uint64_t key, int32_t value, uint64_t id) {
    auto item = pipe.TryAcquire(Key(key));
    if (!item.ok()) return item.status();
    item->span(frame)[0] = value;
    return item->Submit({.id = id});
  };
  for (uint64_t key = 0; key < 2; ++key) {  // a device each
    ASSERT_OK(push(key, 1, 0));
    EXPECT_OK(pipe.Pop().status());
  }
  ASSERT_OK(push(0, 1, 1));
  ASSERT_OK(push(0, 1, 2));
  while (pipe.stats().ready < 2) std::this_thread::yield();  // key 0: ended, not taken
  ASSERT_OK(push(1, -1, 3));
  ASSERT_TRUE(latch.AwaitArrived());
  ASSERT_OK(push(1, -1, 4));
  ASSERT_TRUE(latch.AwaitArrived(2));
  EXPECT_EQ(push(1, 1, 5).code(), absl::StatusCode::kResourceExhausted) << "both slots of its device are working";
  EXPECT_EQ(pipe.stats().dropped, 0);
  ASSERT_OK(push(0, 1, 6));  // drops 1, of its own device
  EXPECT_EQ(pipe.stats().dropped, 1);
  latch.Open();
  EXPECT_OK(pipe.Drain());
  std::set<uint64_t> ids;
  while (auto item = pipe.Pop()) ids.insert(item.id());
  EXPECT_EQ(ids, (std::set<uint64_t>{2, 3, 4, 6}));
}

// On leaves one device of several: keys that nobody knew have their States there, also where a launch would choose
// another device, or that device is given nothing by itself.
TEST_F(PipelineDevicesTest, OneDeviceOfSeveralIsAStageOfItsOwn) {
  const Executable all = *runtime_.Compile(graph_, {.slots = 2, .devices = {0, 1, 2, {3, 0}}});
  for (const int device : {1, 3}) {
    executable_ = *all.On(device);
    Stages<Amount> stages;
    stages.Run("sums", executable_, [this](Item<Amount>& item) { item.Set(by_, item->by).Set(out_, item->out); });
    auto pipe = *Pipeline<Amount>::Create(std::move(stages), {.window = 4});
    const auto key = [&](int n) { return Key(static_cast<uint64_t>(10 * device + n)); };
    EXPECT_EQ(executable_.StateOf(sum_, key(0))->device(), device);
    for (int n = 0; n < 2; ++n) {
      ASSERT_OK(pipe.Push({n + 1}, key(n), {.device = device}));
      const auto item = pipe.Pop();
      EXPECT_OK(item.status());
      EXPECT_EQ(item.device(), device);
      EXPECT_EQ(item->out[0], n + 1);
      EXPECT_EQ(executable_.StateOf(sum_, key(n))->device(), device);
      EXPECT_OK(executable_.Forget(key(n)));
    }
    ASSERT_OK(
        executable_.Launch(executable_.bindings().Set(by_, 1).Set(out_, std::span(out_word_)).SetKey(key(5)))->Wait());
    EXPECT_OK(executable_.Forget(key(5)));
  }
}

// A device that is given nothing by itself takes all where it is named alone.
TEST_F(PipelineDevicesTest, OneDeviceOfWeightZeroIsAStageToo) {
  Graph graph("one");
  const auto out = graph.Output<int64_t>("out", 1);
  graph.Fill("one", out, 1);
  Stages<Amount> stages;
  stages.Run("one", *runtime_.Compile(graph, {.devices = {0, {3, 0}}})->On(3),
             [&](Item<Amount>& item) { item.Set(out, item->out); });
  auto pipe = *Pipeline<Amount>::Create(std::move(stages));
  ASSERT_OK(pipe.Push({}));
  const auto item = pipe.Pop(std::chrono::minutes(1));
  ASSERT_OK(item.status());
  EXPECT_EQ(item.device(), 3);
  EXPECT_EQ(item->out[0], 1);
}

// Of a plan with pins an item has one slot, whatever devices that is on, and goes through all of them.
TEST_F(PipelineDevicesTest, APlanOnSeveralDevicesIsOneUnit) {
  constexpr int kSlots = 2, kItems = 40;
  Graph graph("pinned");
  const auto by = graph.Param<int32_t>("by");
  const auto there = graph.Buffer<int64_t>("there", 1), out = graph.Output<int64_t>("out", 1);
  graph.Fill("zero", there, 0).On(1);
  graph.ParallelFor("add", 1, AddTo{}, by, ReadWrite(there)).On(1);
  graph.ParallelFor("add again", 1, AddTo{}, by, ReadWrite(there)).On(3);
  graph.ParallelFor("copy", 1, CopyOut{}, Read(there), Write(out)).On(2);
  Stages<Amount> stages;
  stages.Run("pinned", *runtime_.Compile(graph, {.slots = kSlots}),
             [&](Item<Amount>& item) { item.Set(by, item->by).Set(out, item->out); });
  auto pipe = *Pipeline<Amount>::Create(std::move(stages));
  int32_t next = 0, sunk = 0;
  ASSERT_OK(pipe.Run(
      [&]() -> std::optional<Amount> {
        if (next == kItems) return std::nullopt;
        return Amount{next++};
      },
      [&](Item<Amount>& item) {
        EXPECT_OK(item.status());
        EXPECT_EQ(item->out[0], 2 * sunk++);
      }));
  EXPECT_EQ(sunk, kItems);
  const PipelineStats stats = pipe.stats();
  ASSERT_EQ(stats.stages.size(), 1u);
  EXPECT_EQ(stats.stages[0].capacity, kSlots);
  EXPECT_EQ(stats.stages[0].done, kItems);
}

TEST_F(PipelineDevicesTest, ADeviceOfWeightZeroGetsKeysThatNameItOnly) {
  Executable all = *runtime_.Compile(graph_, {.devices = {0, 1, 2, {3, 0}}});
  std::map<int, int> keys_on;
  for (uint64_t key = 0; key < 9; ++key) ++keys_on[all.StateOf(sum_, Key(key))->device()];  // 8 shared by three
  EXPECT_EQ(keys_on, (std::map<int, int>{{0, 3}, {1, 3}, {2, 3}}));
  const absl::Status tenth = all.StateOf(sum_, Key(9)).status();
  EXPECT_EQ(tenth.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(tenth.message()), HasSubstr("9 keys have theirs"));
  EXPECT_EQ(all.On(3)->StateOf(sum_, Key(9))->device(), 3);
}

TEST_F(PipelineDevicesTest, MistakesAreToldWithWhatToDo) {
  executable_ = *runtime_.Compile(graph_);
  Stages<Amount> twice;
  twice.Run("one", executable_).Run("two", *runtime_.Compile(graph_));
  const absl::Status same = Pipeline<Amount>::Create(std::move(twice)).status();
  EXPECT_EQ(same.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(same.message()), HasSubstr("'two'"));
  EXPECT_THAT(std::string(same.message()), HasSubstr("declare the graph again"));
  Graph graph("camera");
  const auto frame = graph.Input<int32_t>("frame", 1, kSlot);
  const auto sum = graph.KeyedState<int64_t>("sum", 1);
  graph.ParallelFor("add", 1, AddTo{}, 1, ReadWrite(sum));
  graph.Host("look", [](std::span<const int32_t>) {}, Read(frame));
  auto pipe = *Pipeline<>::Create(runtime_, graph);
  const absl::Status pulled = pipe.Run([]() -> std::optional<NoValue> { return std::nullopt; }, [](Item<>&) {});
  EXPECT_EQ(pulled.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(pulled.message()), HasSubstr("use Push or Acquire, which are told the key"));
  auto item = pipe.Acquire(Key(1));
  ASSERT_OK(item.status());
  EXPECT_EQ(item->Submit({.device = 77}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(*item) << "it stays";
  EXPECT_OK(item->Submit({}));
  EXPECT_OK(pipe.Pop().status());
}

// Others have the slots of one device: items go to the other.
TEST_F(PipelineDevicesTest, ADeviceWhoseSlotsOthersHaveHoldsUpNobody) {
  for (const bool kept : {false, true}) {
    Graph graph("two");
    if (kept) {
      graph.ParallelFor(
          "one", 1, [](int64_t i, int32_t* v) { v[i] = 1; }, Write(graph.Output<int32_t>("frame", 1, kSlot)));
    } else {
      graph.Host("nothing", [] {});
    }
    Executable two = *runtime_.Compile(graph, {.slots = 1, .devices = {1, 2}});
    Stages<> stages;
    stages.Run("two", two);
    auto pipe = *Pipeline<>::Create(std::move(stages), {.window = 4});
    for (const int other : {2, 1}) {
      const auto lease = two.On(other)->TryAcquire();
      ASSERT_OK(lease.status());
      for (int n = 0; n < 20; ++n) {
        auto item = pipe.Acquire({}, std::chrono::minutes(1));
        ASSERT_OK(item.status());
        ASSERT_OK(item->Submit({}));
        const auto ended = pipe.Pop(std::chrono::minutes(1));
        ASSERT_TRUE(ended) << ended.status();
        EXPECT_OK(ended.status());
        EXPECT_EQ(ended.device(), 3 - other);
      }
    }
  }
}

// Submit may name the device that the item has its slot on, and no other.
TEST_F(PipelineDevicesTest, AnItemThatHasItsSlotDoesNotMove) {
  Graph graph("still");
  const auto frame = graph.Output<int32_t>("frame", 1, kSlot);
  graph.ParallelFor("one", 1, [](int64_t i, int32_t* v) { v[i] = 1; }, Write(frame));
  Stages<> stages;
  stages.Run("still", *runtime_.Compile(graph, {.slots = 1, .devices = runtime_.all_devices()}));
  auto pipe = *Pipeline<>::Create(std::move(stages));
  for (int n = 0; n < 8; ++n) {
    const int device = n % 4;
    auto item = pipe.TryAcquire({}, device);
    ASSERT_OK(item.status());
    const absl::Status moved = item->Submit({.device = (device + 1) % 4});
    EXPECT_EQ(moved.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(moved.message()), HasSubstr("tell Acquire the key and the device"));
    ASSERT_OK(item->Submit({.device = device}));
    const auto ended = pipe.Pop();
    EXPECT_OK(ended.status());
    EXPECT_EQ(ended.device(), device);
  }
}

}  // namespace
}  // namespace penstock::placement_test
