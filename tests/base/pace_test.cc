// Paced and Tell: how often a function hears of progress, and what it may do to the call.
#include "src/base/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/base/user_code.h"

namespace penstock::pace_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct FakeClock {
  std::chrono::steady_clock::time_point now{};
  auto Reader() {
    return [this] { return now; };
  }
};

TEST(Pace, PassesOnWhatComesATenthOfASecondAfterTheLast) {
  FakeClock clock;
  std::vector<int64_t> heard;
  const ProgressFunction first = base::Paced(
      [&](const Progress& at) {
        heard.push_back(at.done);
        clock.now += 30ms;  // what it takes itself is no pause
        return false;
      },
      clock.Reader());
  const ProgressFunction copy = first;  // parts of a call have copies
  for (int64_t done = 0; done < 60; ++done) {
    const size_t before = heard.size();
    const bool goes_on = (done % 2 == 0 ? first : copy)({.what = "w", .done = done, .total = 60});
    EXPECT_EQ(goes_on, heard.size() == before);
    clock.now += 10ms;
  }
  EXPECT_THAT(heard, ElementsAre(10, 20, 30, 40, 50));
}

TEST(Pace, OfNothingIsNothing) {
  EXPECT_EQ(base::Paced(nullptr), nullptr);
  EXPECT_EQ(base::Tell(nullptr, "option", {}), absl::OkStatus());
}

TEST(Pace, AFunctionMayEndTheCall) {
  bool in_user_code = false;
  const auto go_on = [&](const Progress&) { return in_user_code = base::InUserCode(); };
  EXPECT_EQ(base::Tell(go_on, "Options::progress", {.what = "w"}), absl::OkStatus());
  EXPECT_TRUE(in_user_code);
  const absl::Status stopped =
      base::Tell([](const Progress&) { return false; }, "Options::progress", {.what = "doing"});
  EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(stopped.message()), HasSubstr("Options::progress returned false; it was told of: doing"));
  const auto throws = [](const Progress&) -> bool { throw std::runtime_error("boom"); };
  const absl::Status thrown = base::Tell(throws, "Options::progress", {.what = "w"});
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(thrown.message()), HasSubstr("Options::progress threw: boom"));
}

}  // namespace
}  // namespace penstock::pace_test
