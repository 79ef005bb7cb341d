// What a variable of the environment may say, and what is refused by its name.
#include "src/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/environment.h"

namespace penstock::base::environment_test {
namespace {

constexpr char kName[] = "PENSTOCK_TEST_FLAG";

TEST(Flag, IsOnByItsWordsInLettersOfAnySize) {
  for (const char* const word : {"1", "true", "yes", "on", "TRUE", "Yes", "oN"}) {
    const EnvironmentScope scope(kName, word);
    EXPECT_EQ(FlagOf(kName), absl::StatusOr<bool>(true)) << word;
  }
}

TEST(Flag, IsOffByTheirOppositesAndWithoutAValue) {
  EXPECT_EQ(FlagOf(kName), absl::StatusOr<bool>(false));
  for (const char* const word : {"0", "false", "no", "off", "FALSE", "No", "oFF", ""}) {
    const EnvironmentScope scope(kName, word);
    EXPECT_EQ(FlagOf(kName), absl::StatusOr<bool>(false)) << word;
  }
}

TEST(Flag, RefusesAllElseByName) {
  for (const char* const word : {"2", "-1", "01", "y", "enable", " 1", "true ", "1\n", "\"on\""}) {
    const EnvironmentScope scope(kName, word);
    const absl::Status refused = FlagOf(kName).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << word;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("PENSTOCK_TEST_FLAG is '")) << word;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("it must be 1, true, yes or on")) << word;
  }
}

TEST(Variable, IsNotThereWhereItIsEmpty) {
  EXPECT_EQ(Variable(kName), std::nullopt);
  const EnvironmentScope scope(kName, "");
  EXPECT_EQ(Variable(kName), std::nullopt);
  EXPECT_EQ(WordOf(kName), std::nullopt);
}

}  // namespace
}  // namespace penstock::base::environment_test
