// The flags: what they set, and what bad usage prints.
#include "examples/photos/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace photos::options_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

ParseOutcome Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "photos");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

TEST(OptionsTest, FoldersAloneGiveTheDefaults) {
  const ParseOutcome outcome = Parse({"in", "out"});
  ASSERT_TRUE(outcome.options.has_value()) << outcome.text;
  EXPECT_EQ(outcome.options->input, "in");
  EXPECT_EQ(outcome.options->output, "out");
  EXPECT_EQ(outcome.options->devices, "");
  EXPECT_EQ(outcome.options->workers, DefaultWorkers());
  EXPECT_EQ(outcome.options->repeat, 1);
  EXPECT_FALSE(outcome.options->serial);
}

TEST(OptionsTest, EveryFlagIsRead) {
  const ParseOutcome outcome =
      Parse({"in", "out", "--slots", "5", "--devices", "host:2;cuda:0,1", "--workers=7", "--repeat", "9", "--blur", "0",
             "--compression", "9", "--compare", "0", "--preload", "--verify", "--trace", "t.json"});
  ASSERT_TRUE(outcome.options.has_value()) << outcome.text;
  const Options& o = *outcome.options;
  EXPECT_EQ(o.slots, 5);
  EXPECT_EQ(o.devices, "host:2;cuda:0,1");
  EXPECT_EQ(o.workers, 7);
  EXPECT_EQ(o.repeat, 9);
  EXPECT_EQ(o.blur, 0);
  EXPECT_EQ(o.compression, 9);
  EXPECT_EQ(o.compare, 0);
  EXPECT_TRUE(o.preload && o.verify && !o.serial);
  EXPECT_EQ(o.trace, "t.json");
}

TEST(OptionsTest, SerialMeansOneSlotAndOneWorker) {
  const ParseOutcome outcome = Parse({"in", "out", "--serial"});
  ASSERT_TRUE(outcome.options.has_value());
  EXPECT_EQ(outcome.options->slots, 1);
  EXPECT_EQ(outcome.options->workers, 1);
}

TEST(OptionsTest, HelpIsNoError) {
  const ParseOutcome outcome = Parse({"--help"});
  EXPECT_FALSE(outcome.options.has_value());
  EXPECT_EQ(outcome.exit_code, kExitDone);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("--slots"), HasSubstr("--serial"), HasSubstr("Exit codes")));
}

struct BadUsage {
  std::vector<const char*> arguments;
  const char* named;  // what the message must name
};

class BadUsageTest : public testing::TestWithParam<BadUsage> {};

TEST_P(BadUsageTest, ExitsWithTwoAndNamesTheMistake) {
  const ParseOutcome outcome = Parse(GetParam().arguments);
  EXPECT_FALSE(outcome.options.has_value());
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("photos: "), HasSubstr(GetParam().named), HasSubstr("--help")));
}

INSTANTIATE_TEST_SUITE_P(Options, BadUsageTest,
                         testing::Values(BadUsage{{}, "input"}, BadUsage{{"in"}, "output"},
                                         BadUsage{{"in", "out", "more"}, "more"},
                                         BadUsage{{"in", "out", "--nothing"}, "--nothing"},
                                         BadUsage{{"in", "out", "--slots", "0"}, "--slots"},
                                         BadUsage{{"in", "out", "--slots", "three"}, "--slots"},
                                         BadUsage{{"in", "out", "--slots"}, "--slots"},
                                         BadUsage{{"in", "out", "--workers", "-1"}, "--workers"},
                                         BadUsage{{"in", "out", "--repeat", "0"}, "--repeat"},
                                         BadUsage{{"in", "out", "--blur", "-1"}, "--blur"},
                                         BadUsage{{"in", "out", "--compression", "10"}, "--compression"},
                                         BadUsage{{"in", "out", "--compare", "-1"}, "--compare"},
                                         BadUsage{{"", "out"}, "input folder"}, BadUsage{{"in", ""}, "output folder"},
                                         BadUsage{{"in", "out", "--devices", ""}, "--devices"},
                                         BadUsage{{"in", "out", "--trace", ""}, "--trace"},
                                         BadUsage{{"in", "out", "--serial", "--slots", "2"}, "--serial"},
                                         BadUsage{{"in", "out", "--serial", "--workers", "2"}, "--serial"}));

}  // namespace
}  // namespace photos::options_test
