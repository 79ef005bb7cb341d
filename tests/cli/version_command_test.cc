// The command line itself: what it knows, what it refuses, and how it ends.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "penstock/version.h"
#include "tests/cli/run_penstock.h"

namespace penstock::cli::version_command_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(PenstockCommand, SaysItsVersionAsTextAndAsJson) {
  const Ran text = RunPenstock({"version"});
  EXPECT_EQ(text.code, kDone);
  EXPECT_THAT(text.out, HasSubstr(PENSTOCK_VERSION));
  EXPECT_THAT(text.err, IsEmpty());
  EXPECT_EQ(RunPenstock({"--version"}).out, text.out);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--json", "version"}, {"version", "--json"}, {"--version", "--json"}}) {
    const Ran json = RunPenstock(arguments);
    EXPECT_EQ(json.code, kDone);
    EXPECT_EQ(nlohmann::json::parse(json.out).at("version"), PENSTOCK_VERSION);
  }
}

TEST(PenstockCommand, RefusesWhatItDoesNotKnowAndHelpsOutWithTheRest) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{}, {"nonsense"}, {"version", "--nonsense"}, {"version", "surplus"}}) {
    const Ran ran = RunPenstock(wrong);
    EXPECT_EQ(ran.code, kFailed);
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, HasSubstr("--help"));
  }
  EXPECT_THAT(RunPenstock({"--json", "nonsense"}).err, HasSubstr("there is no command 'nonsense'"));
  const Ran help = RunPenstock({"--help"});
  EXPECT_EQ(RunPenstock({"help"}).out, help.out);
  EXPECT_EQ(RunPenstock({"help", "trace"}).out, RunPenstock({"trace", "--help"}).out);
  EXPECT_EQ(help.code, kDone);
  EXPECT_THAT(help.out, HasSubstr("version"));
  EXPECT_THAT(help.out, HasSubstr("Exit codes"));
}

// Whether the stream tells it by its state or throws.
TEST(PenstockCommand, FailsWhereWhatItShowsCannotBeWritten) {
  for (const auto thrown : {std::ios::goodbit, std::ios::badbit}) {
    std::ofstream full("/dev/full");
    full.exceptions(thrown);
    std::ostringstream err;
    EXPECT_EQ(RunCommandLine({"version"}, full, err), kFailed);
    EXPECT_THAT(err.str(), StartsWith("penstock: "));
    full.exceptions(std::ios::goodbit);
  }
}

}  // namespace
}  // namespace penstock::cli::version_command_test
