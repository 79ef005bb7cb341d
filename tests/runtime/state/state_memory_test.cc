// The memory of a State as the application sees it.
#include <gtest/gtest.h>

#include <vector>

#include "penstock/status_macros.h"
#include "tests/support/state_fixture.h"

namespace penstock::state_memory_test {
namespace {

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
