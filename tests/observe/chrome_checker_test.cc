// The checker of the trace event format finds what is wrong, and nothing in what is right.
#include "tests/observe/chrome_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace penstock::chrome_checker_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kNames = R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"p"}},)"
                           R"({"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"t"}},)"
                           R"({"ph":"M","name":"thread_sort_index","pid":1,"tid":2,"args":{"sort_index":5}})";

std::string Slice(int ts, int dur) {
  return R"({"ph":"X","name":"n","cat":"c","pid":1,"tid":2,"args":{},"ts":)" + std::to_string(ts) + R"(,"dur":)" +
         std::to_string(dur) + "}";
}
std::string ArrowEnd(const std::string& phase, int ts, const std::string& more = R"(,"bp":"e")", int tid = 2) {
  return R"({"ph":")" + phase + R"(","name":"a","cat":"a","id":1,"pid":1,"tid":)" + std::to_string(tid) + R"(,"ts":)" +
         std::to_string(ts) + more + "}";
}
std::string Counter(int ts, const std::string& value) {
  return R"({"ph":"C","name":"k","pid":1,"tid":0,"ts":)" + std::to_string(ts) + R"(,"args":{"v":)" + value + "}}";
}

std::vector<std::string> MistakesIn(const std::vector<std::string>& events) {
  std::string all = kNames;
  for (const std::string& event : events) all += "," + event;
  return chrome_checker::MistakesIn(R"({"displayTimeUnit":"ms","traceEvents":[)" + all + "]}");
}

TEST(ChromeChecker, FindsNothingInWhatIsRight) {
  EXPECT_THAT(MistakesIn({}), IsEmpty());
  EXPECT_THAT(MistakesIn({Slice(10, 10), Slice(0, 10), Slice(2, 3), Slice(5, 0), ArrowEnd("s", 5), ArrowEnd("f", 19),
                          Counter(0, "1"), Counter(7, "0.5")}),
              IsEmpty());
}

TEST(ChromeChecker, FindsEachMistake) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"3"}, "no phase"},
      {{R"({"ph":"X","name":"n","pid":1,"tid":2,"ts":1,"dur":1,"args":{}})"}, "lacks a length, category"},
      {{R"({"ph":"X","name":"n","cat":"c","pid":1,"tid":2,"ts":1,"args":{}})"}, "lacks a length"},
      {{Slice(0, -1)}, "lacks a length"},
      {{R"({"ph":"X","name":"n","cat":"c","pid":1,"tid":3,"ts":1,"dur":1,"args":{}})"}, "no name of thread"},
      {{R"({"ph":"X","name":"n","cat":"c","pid":4,"tid":2,"ts":1,"dur":1,"args":{}})"}, "no name of thread"},
      {{R"({"ph":"q","name":"n","pid":1,"tid":2,"ts":1})"}, "an unexpected phase"},
      {{R"({"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"again"}})"}, "named twice"},
      {{Slice(0, 10), Slice(5, 10)}, "overlap in part"},
      {{Slice(0, 10), ArrowEnd("s", 1)}, "does not begin and end once"},
      {{Slice(0, 10), ArrowEnd("s", 1), ArrowEnd("f", 2), ArrowEnd("f", 3)}, "does not begin and end once"},
      {{Slice(0, 10), ArrowEnd("s", 3), ArrowEnd("f", 2)}, "goes back in time"},
      {{Slice(0, 10), ArrowEnd("s", 3), ArrowEnd("f", 4, "")}, "is not in a slice"},
      {{Slice(0, 10), ArrowEnd("s", 3), ArrowEnd("f", 10)}, "ends in no slice"},
      {{Slice(5, 10), ArrowEnd("s", 3), ArrowEnd("f", 6)}, "begins in no slice"},
      {{Slice(0, 10), ArrowEnd("s", 3, "", 9), ArrowEnd("f", 6)}, "begins in no slice"},
      {{Counter(1, R"("2")")}, "is no number"},
      {{Counter(1, "1"), Counter(1, "2")}, "two values at once"},
  };
  for (const auto& [events, mistake] : cases) {
    EXPECT_THAT(MistakesIn(events), testing::Contains(HasSubstr(mistake))) << events.back();
  }
  EXPECT_THAT(chrome_checker::MistakesIn("{\"traceEvents\":["), ElementsAre("no JSON object"));
  EXPECT_THAT(chrome_checker::MistakesIn("{}"), ElementsAre("no array traceEvents"));
}

}  // namespace
}  // namespace penstock::chrome_checker_test
