// Set and Read of a part of a State: which elements they copy, what is refused, and what they do to poison.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/state_fixture.h"

namespace penstock::state_box_test {
namespace {

class StateBoxCalls : public StateFixture {
 protected:
  State<int64_t> Cube() {
    std::vector<int64_t> contents(2 * 3 * 4);
    std::iota(contents.begin(), contents.end(), 0);
    auto made = runtime_->MakeState<int64_t>(Name("s", "a.cc", 7), {2, 3, 4}, contents);
    EXPECT_OK(made.status());
    return made.ok() ? *std::move(made) : State<int64_t>();
  }
  static std::vector<int64_t> Part(const State<int64_t>& state, const Box& box, size_t n) {
    std::vector<int64_t> contents(n, -1);
    EXPECT_OK(state.Read(contents, box));
    return contents;
  }
};

TEST_F(StateBoxCalls, ReadTheElementsOfTheBoxInCOrder) {
  const State<int64_t> state = Cube();
  EXPECT_EQ(Part(state, Slice({1, 0, 2}, {1, 2, 2}), 4), (std::vector<int64_t>{14, 15, 18, 19}));
  EXPECT_EQ(Part(state, Slice({0, 2, 3}, {2, 1, 1}), 2), (std::vector<int64_t>{11, 23}));
  EXPECT_EQ(Part(state, Slice({0, 1, 0}, {1, 2, 4}), 8), (std::vector<int64_t>{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(Part(state, Slice({1, 3, 4}, {1, 0, 0}), 0), std::vector<int64_t>());
  const State<int64_t> line = Made("line", 4, std::vector<int64_t>{4, 5, 6, 7});
  EXPECT_EQ(Part(line, Slice(1, 2), 2), (std::vector<int64_t>{5, 6}));
}

TEST_F(StateBoxCalls, SetTheElementsOfTheBoxAndNoOthers) {
  State<int64_t> state = Cube();
  ASSERT_OK(state.Set(std::vector<int64_t>{100, 101, 102, 103}, Slice({0, 1, 1}, {2, 1, 2})));
  std::vector<int64_t> expected(24);
  std::iota(expected.begin(), expected.end(), 0);
  expected[5] = 100, expected[6] = 101, expected[17] = 102, expected[18] = 103;
  EXPECT_EQ(Contents(state, 24), expected);
}

TEST_F(StateBoxCalls, BadBoxesAreRefusedWithTheirNumbers) {
  State<int64_t> state = Cube();
  std::vector<int64_t> two(2);
  const auto refusal = [&](const Box& box) { return state.Read(two, box).ToString(); };
  const std::string read = "INVALID_ARGUMENT: state 's' (a.cc:7) on host:0: Read ";
  EXPECT_EQ(refusal(Slice({0, 0, 3}, {1, 1, 2})),
            read +
                "takes 2 elements from 3 on in dimension 2 of 's' (a.cc:7), which has 4; a slice lies inside its "
                "buffer; make its offset or size smaller");
  EXPECT_EQ(refusal(Slice(0, 2)),
            read +
                "takes a slice with 1 offsets and 1 sizes; the State has 3 dimensions; give one of each for each "
                "dimension");
  EXPECT_EQ(refusal(Slice({0, -1, 0}, {1, 1, 2})),
            read + "was given a slice: offset 1 of its slice is -1; give 0 or more");
  Graph g("g");
  EXPECT_EQ(refusal(Slice({0, 0, 0}, {1, 1, g.Param<int>("n", AtMost(4))})),
            read +
                "was given a slice: size 2 of its slice is a parameter, which has a value in a launch only; give a "
                "constant");
  EXPECT_EQ(refusal(Slice({0, 0, 0}, {1, 1, 3})), read + "was given 2 elements; the box has 3; give exactly that many");
  EXPECT_EQ(state.Set(two, Slice({0, 0, 0}, {3, 1, 1})).ToString(),
            "INVALID_ARGUMENT: state 's' (a.cc:7) on host:0: Set takes 3 elements from 0 on in dimension 0 of 's' "
            "(a.cc:7), which has 2; a slice lies inside its buffer; make its offset or size smaller");
}

TEST_F(StateBoxCalls, OnlyASetOfAllElementsEndsPoison) {
  State<int64_t> state = Cube();
  Graph g("bad");
  Twin(g, "boom", [](int64_t*) { return absl::InternalError("boom"); }, Write(state));
  Executable exec = Compiled(g);
  EXPECT_FALSE(exec.Launch(exec.bindings())->Wait().ok());
  const absl::Status poison = state.status();
  EXPECT_EQ(poison.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state.Set(std::vector<int64_t>(12), Slice({0, 0, 0}, {1, 3, 4})), poison);
  EXPECT_EQ(state.status(), poison);
  ASSERT_OK(state.Set(std::vector<int64_t>(24), Slice({0, 0, 0}, {2, 3, 4})));
  EXPECT_OK(state.status());
}

}  // namespace
}  // namespace penstock::state_box_test
