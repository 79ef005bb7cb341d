// States over memory that the application has on a device: what they hold, who frees it, and which memory is refused.
// Also State::data, which gives the application the memory of any State.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "penstock/status_macros.h"
#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/state_fixture.h"

namespace penstock::state_memory_test {
namespace {

using driver::checked::CallRecorder;

// What launches that bind the memory, and know no State, see and write there.
std::vector<int64_t> Look(Runtime& runtime, int64_t* memory, int64_t n, int device = 0) {
  Graph g("look");
  const auto from = g.Input<int64_t>("from", n, kDevice, device);
  const auto to = g.Output<int64_t>("to", n);
  g.Copy("look", Read(from), Write(to));
  std::vector<int64_t> found(static_cast<size_t>(n), -1);
  auto exec = runtime.Compile(g);
  EXPECT_OK(exec.status());
  if (!exec.ok()) return found;
  const auto run = exec->Launch(exec->bindings().Set(from, std::span(memory, found.size())).Set(to, found));
  EXPECT_OK(run.status());
  EXPECT_TRUE(run.ok() && run->Wait().ok());
  return found;
}

void Fill(Runtime& runtime, int64_t* memory, const std::vector<int64_t>& contents, int device = 0) {
  const auto n = static_cast<int64_t>(contents.size());
  Graph g("fill");
  const auto from = g.Input<int64_t>("from", n);
  const auto to = g.Output<int64_t>("to", n, kDevice, device);
  g.Copy("fill", Read(from), Write(to));
  auto exec = runtime.Compile(g);
  ASSERT_OK(exec.status());
  const auto run = exec->Launch(exec->bindings().Set(from, contents).Set(to, std::span(memory, contents.size())));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
}

class AdoptedState : public StateFixture {
 protected:
  AdoptedState() : StateFixture("host:2") {}

  // Filled with 1, 2, ...
  DeviceBuffer<int64_t> Memory(int64_t n, int device = 0) {
    auto made = runtime_->MakeDeviceBuffer<int64_t>(n, device);
    EXPECT_OK(made.status());
    if (!made.ok()) return {};
    std::vector<int64_t> contents(static_cast<size_t>(n));
    std::iota(contents.begin(), contents.end(), 1);
    Fill(*runtime_, made->data(), contents, device);
    return *std::move(made);
  }
};

// One run that adds 100 to each of `n` elements.
absl::Status AddHundred(Runtime& runtime, const State<int64_t>& state, int64_t n) {
  Graph g("add");
  Twin(
      g, "add",
      [n](int64_t* s) {
        for (int64_t i = 0; i < n; ++i) s[i] += 100;
      },
      ReadWrite(state));
  PENSTOCK_ASSIGN_OR_RETURN(Executable exec, runtime.Compile(g));
  PENSTOCK_ASSIGN_OR_RETURN(const penstock::Run run, exec.Launch(exec.bindings()));
  return run.Wait();
}

TEST_F(AdoptedState, KeepsTheContentsAndRunsUseThemInPlace) {
  for (const int device : {0, 1}) {
    const DeviceBuffer<int64_t> memory = Memory(3, device);
    auto state = runtime_->AdoptState("w", 3, memory);
    ASSERT_OK(state.status());
    EXPECT_EQ(state->device(), device);
    EXPECT_EQ(state->data(), memory.data());
    EXPECT_EQ(Contents(*state, 3), (std::vector<int64_t>{1, 2, 3}));
    ASSERT_OK(AddHundred(*runtime_, *state, 3));
    EXPECT_EQ(Look(*runtime_, memory.data(), 3, device), (std::vector<int64_t>{101, 102, 103}));
  }
}

TEST_F(AdoptedState, MayBeAPartOfTheMemory) {
  const DeviceBuffer<int64_t> memory = Memory(5);
  State<int64_t> state = *runtime_->AdoptState("w", 2, std::span(memory.data() + 1, 2));
  ASSERT_OK(state.Set(std::vector<int64_t>{8, 9}));
  EXPECT_EQ(Look(*runtime_, memory.data(), 5), (std::vector<int64_t>{1, 8, 9, 4, 5}));
  ASSERT_OK(state.Reset());
  EXPECT_EQ(Look(*runtime_, memory.data(), 5), (std::vector<int64_t>{1, 0, 0, 4, 5}));
}

TEST_F(AdoptedState, MayBeEmpty) {
  const auto state = runtime_->AdoptState("w", 0, std::span<int64_t>());
  ASSERT_OK(state.status());
  EXPECT_EQ(state->data(), nullptr);
  EXPECT_EQ(Contents(*state, 0), std::vector<int64_t>());
}

TEST_F(AdoptedState, HoldsItsKeepAliveAsLongAsAnythingUsesIt) {
  const DeviceBuffer<int64_t> memory = Memory(1);
  auto keep_alive = std::make_shared<int>();
  const std::weak_ptr<int> kept = keep_alive;
  std::optional<State<int64_t>> state =
      *runtime_->AdoptState("w", 1, std::span(memory.data(), 1), {}, std::move(keep_alive));
  Graph g("g");
  Twin(g, "add", [](int64_t* s) { s[0] += 100; }, ReadWrite(*state));
  std::optional<Executable> exec(Compiled(g));
  g = Graph("another");
  state.reset();
  EXPECT_FALSE(kept.expired()) << "the executable uses it";
  exec.reset();
  EXPECT_TRUE(kept.expired());
}

TEST_F(AdoptedState, BadMemoryIsRefusedWithItsReason) {
  const DeviceBuffer<int64_t> memory = Memory(4), elsewhere = Memory(4, 1);
  std::vector<int64_t> on_host(4);
  const auto refusal = [&](int64_t n, std::span<int64_t> span, StateOptions options = {}) {
    return runtime_->AdoptState(Name("w", "a.cc", 7), n, span, options).status().ToString();
  };
  const std::string given = "INVALID_ARGUMENT: state 'w' (a.cc:7) on host:0: AdoptState was given ";
  const std::string elsewhere_text =
      "host:0; give memory of that device, or name the memory's own in StateOptions::device";
  EXPECT_EQ(refusal(4, std::span(static_cast<int64_t*>(nullptr), 4)),
            given + "4 elements at a null address; give memory that exists");
  EXPECT_EQ(refusal(3, std::span(memory.data(), 4)), given + "4 elements; the State has 3; give exactly that many");
  EXPECT_EQ(refusal(4, on_host), given + "memory that is not of " + elsewhere_text);
  EXPECT_EQ(refusal(4, std::span(elsewhere.data(), 4)), given + "memory that is not of " + elsewhere_text);
  EXPECT_EQ(refusal(int64_t{1} << 40, std::span(memory.data(), size_t{1} << 40)),
            given + "memory that is not all of " + elsewhere_text);
  auto* const odd = reinterpret_cast<int64_t*>(reinterpret_cast<std::byte*>(memory.data()) + 4);
  EXPECT_EQ(refusal(3, std::span(odd, 3)),
            given +
                "memory at no multiple of 8 bytes, which its elements need; give memory so aligned, such as "
                "Runtime::MakeDeviceBuffer gives");
  EXPECT_EQ(refusal(4, std::span(memory.data(), 4), {.device = 2}),
            "INVALID_ARGUMENT: state 'w' (a.cc:7): StateOptions::device is 2; the runtime has devices 0 to 1; name one "
            "of them");
  EXPECT_EQ(runtime_->AdoptState(Name("w", "a.cc", 7), 1, DeviceBuffer<int64_t>()).status().ToString(),
            given + "0 elements; the State has 1; give exactly that many");
}

TEST_F(AdoptedState, CompileRefusesAnAliasThatNeedsMoreAlignment) {
  auto memory = runtime_->MakeDeviceBuffer<int32_t>(8);
  ASSERT_OK(memory.status());
  const auto compile = [&](int64_t at) {
    const auto state = runtime_->AdoptState(Name("w", "a.cc", 7), 4, std::span(memory->data() + at, 4));
    EXPECT_OK(state.status());
    Graph g("g");
    const auto wide = g.Alias<int64_t>(Name("wide", "a.cc", 8), g.Use(*state));
    Twin(g, "set", [](int64_t* w) { w[0] = 1; }, ReadWrite(wide));
    return runtime_->Compile(g).status();
  };
  EXPECT_OK(compile(2));
  EXPECT_EQ(compile(1).ToString(),
            "INVALID_ARGUMENT: graph 'g' state 'w' (a.cc:7): was adopted at no multiple of 8 bytes, which the elements "
            "of its alias 'wide' (a.cc:8) need; adopt memory so aligned, such as Runtime::MakeDeviceBuffer gives");
}

TEST(AdoptedStateMemory, IsFreedByItsOwner) {
  const auto recorder = std::make_shared<CallRecorder>();
  const runtime::ScopedDriverHook hook({.wrap = [&](std::unique_ptr<driver::Driver> host) {
    return driver::checked::CreateCheckedDriver(std::move(host), recorder);
  }});
  std::optional<Runtime> runtime(*Runtime::Create({.devices = "host"}));
  std::optional<DeviceBuffer<int64_t>> memory(*runtime->MakeDeviceBuffer<int64_t>(4));
  std::optional<State<int64_t>> state(*runtime->AdoptState("w", 4, std::span(memory->data(), 4)));
  EXPECT_EQ(recorder->gauges().device_blocks, 1);
  state.reset();
  EXPECT_EQ(recorder->gauges().device_blocks, 1);
  state.emplace(*runtime->AdoptState("w", 4, *memory));
  memory.reset();
  EXPECT_EQ(recorder->gauges().device_blocks, 1) << "the State keeps it alive";
  state.reset();
  EXPECT_EQ(recorder->gauges().device_blocks, 0);
  runtime.reset();
  EXPECT_EQ(recorder->violations(), std::vector<std::string>());
}

class StateData : public StateFixture {};

TEST_F(StateData, IsWhatRunsAndCallsUse) {
  State<int64_t> state = Made("s", 2, std::vector<int64_t>{4, 5});
  EXPECT_EQ(Look(*runtime_, state.data(), 2), (std::vector<int64_t>{4, 5}));
  ASSERT_OK(AddHundred(*runtime_, state, 2));
  EXPECT_EQ(Look(*runtime_, state.data(), 2), (std::vector<int64_t>{104, 105}));
  Fill(*runtime_, state.data(), {6, 7});
  EXPECT_EQ(Contents(state, 2), (std::vector<int64_t>{6, 7}));
}

TEST_F(StateData, IsNullWithoutElements) {
  EXPECT_EQ(State<int64_t>().data(), nullptr);
  EXPECT_EQ(Made("s", 0).data(), nullptr);
}

}  // namespace
}  // namespace penstock::state_memory_test
