// Settings as text: what is read and written, and what is refused with its line.
#include "penstock/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "tests/support/status.h"

namespace penstock::settings_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Every setting, and a name with all that needs care.
Settings Everything() {
  Settings all;
  all.workers = 6;
  all.submission_threads = 0;
  all.staging_threads = 14;
  all.staging_chunk_bytes = 1 << 20;
  all.graphs["blur"] = {.slots = 4, .mode = Mode::kStream, .resident = Resident::kOn, .max_lanes = 8};
  all.graphs["a \"b\" = \\ \x1b[2J\n\x7f# größe"] = {.mode = Mode::kGraph};
  all.stages["decode"] = {.workers = 8};
  all.pipelines[""] = {.window = 24};
  return all;
}

std::string Refusal(const std::string& body) {
  const absl::StatusOr<Settings> read = Settings::FromText(body);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << body;
  return std::string(read.status().message());
}

TEST(Settings, AreReadAsTheyWereWritten) {
  const std::string text = Everything().Text();
  const absl::StatusOr<Settings> read = Settings::FromText(text);
  ASSERT_OK(read.status());
  EXPECT_EQ(*read, Everything());
  EXPECT_EQ(read->Text(), text);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Settings, AreWrittenOneALine) {
  Settings settings;
  settings.workers = 6;
  settings.graphs["blur"].mode = Mode::kStream;
  EXPECT_EQ(settings.Text(), "penstock settings 1\nruntime.workers = 6\ngraph \"blur\".mode = stream\nend\n");
  EXPECT_EQ(Settings().Text(), "penstock settings 1\nend\n");
}

TEST(Settings, MayHaveCommentsBlanksAndLinesOfOtherSystems) {
  const absl::StatusOr<Settings> read = Settings::FromText(
      "# found on a test machine\r\n\npenstock settings 1\r\n"
      "  graph \"x\".slots=3\t\r\n# end\r\nend\r\n\n");
  ASSERT_OK(read.status());
  EXPECT_EQ(read->graphs.at("x").slots, 3);
}

TEST(Settings, RefuseWhatIsWrongWithItsLine) {
  const std::string first = "penstock settings 1\n";
  EXPECT_THAT(Refusal(first + "\nruntime.workers = 0\nend\n"), HasSubstr("line 3: 'runtime.workers': it is '0'"));
  EXPECT_THAT(Refusal(first + "runtime.workers = 4097\nend\n"), HasSubstr("a number from 1 to 4096"));
  EXPECT_THAT(Refusal(first + "runtime.workers = 99999999999999999999\nend\n"), HasSubstr("line 2"));
  EXPECT_THAT(Refusal(first + "runtime.workers = 4x\nend\n"), HasSubstr("'4x'"));
  EXPECT_THAT(Refusal(first + "graph \"g\".mode = fast\nend\n"), HasSubstr("one of stream, graph, auto"));
  EXPECT_THAT(Refusal(first + "graph \"g.slots = 2\nend\n"), HasSubstr("is no setting"));
  EXPECT_THAT(Refusal(first + "graph \"g\\q\".slots = 2\nend\n"), HasSubstr("is no setting"));
  EXPECT_THAT(Refusal(first + "graph \"g\".colour = 2\nend\n"), HasSubstr("is no setting"));
  EXPECT_THAT(Refusal(first + "runtime.slots = 2\nend\n"), HasSubstr("is no setting"));
  EXPECT_THAT(Refusal(first + "runtime.workers\nend\n"), HasSubstr("write KEY = VALUE"));
  EXPECT_THAT(Refusal(first + "runtime.workers =\nend\n"), HasSubstr("has no value"));
  EXPECT_THAT(Refusal(first + "graph \"a\".slots = 2\ngraph \"\\x61\".slots = 2\nend\n"),
              HasSubstr("line 3: 'graph \"\\x61\".slots' stands twice"));
}

TEST(Settings, NoticeThatTheTextIsAnotherOrIncomplete) {
  EXPECT_THAT(Refusal(""), HasSubstr("no settings file"));
  EXPECT_THAT(Refusal("{\"format\": \"penstock profile\"}"), HasSubstr("line 1: this is no settings file"));
  EXPECT_THAT(Refusal("penstock settings 2\nend\n"), HasSubstr("its version is '2'"));
  EXPECT_THAT(Refusal("penstock settings 1\nend\nruntime.workers = 2\n"), HasSubstr("something follows 'end'"));
  // Wherever it is cut off, no number is taken for another.
  const std::string text = Everything().Text();
  for (size_t size = 0; size + 1 < text.size(); ++size) EXPECT_FALSE(Settings::FromText(text.substr(0, size)).ok());
}

TEST(Settings, ShowHostileTextsHarmlessly) {
  const std::string message = Refusal("penstock settings 1\n\x1b[2J" + std::string(100'000, '<') + " = 1\nend\n");
  EXPECT_THAT(message, Not(HasSubstr("\x1b")));
  EXPECT_LT(message.size(), 300u);
}

// Whatever bytes there are: refused with a line, or read and written again alike.
TEST(Settings, AreReadOrRefusedWhateverTheBytes) {
  std::mt19937 random(20261128);
  const std::string whole = Everything().Text();
  int read = 0;
  for (int m = 0; m < 5000; ++m) {
    std::string text = whole;
    for (int change = static_cast<int>(random() % 4); change >= 0; --change) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 3); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 20));
      }
    }
    const absl::StatusOr<Settings> settings = Settings::FromText(text);
    if (!settings.ok()) {
      ASSERT_THAT(Text(settings.status()), HasSubstr("line ")) << text;
      continue;
    }
    ++read;
    const absl::StatusOr<Settings> again = Settings::FromText(settings->Text());
    ASSERT_OK(again.status());
    ASSERT_EQ(*again, *settings) << text;
  }
  EXPECT_GT(read, 100);
}

TEST(Settings, LeaveAChoiceOpenAgainWithoutAValue) {
  Settings settings = Everything();
  for (const char* key : {"graph \"blur\".slots", "graph \"blur\".mode", "graph \"blur\".resident",
                          "graph \"blur\".max_lanes", "runtime.workers"}) {
    ASSERT_OK(settings.Set(key, ""));
  }
  EXPECT_FALSE(settings.graphs.contains("blur"));
  EXPECT_FALSE(settings.workers);
  EXPECT_EQ(settings.Set("graph \"blur\".colour", "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(settings.graphs.contains("blur"));
}

TEST(Settings, GoOverOthers) {
  Settings over, under = Everything();
  over.workers = 1;
  over.graphs["blur"].slots = 9;
  over.graphs["new"].mode = Mode::kGraph;
  Settings expected = Everything();
  expected.workers = 1;
  expected.graphs["blur"].slots = 9;
  expected.graphs["new"].mode = Mode::kGraph;
  EXPECT_EQ(over.Over(under), expected);
  EXPECT_EQ(Everything().Over(Settings()), Everything());
  EXPECT_EQ(Settings().Over(Everything()), Everything());
}

class SettingsFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = testing::TempDir() + "settings_test." + std::to_string(getpid());
  const std::string file_ = folder_ + "/app.settings";
};

TEST_F(SettingsFile, IsReadAsItWasWritten) {
  ASSERT_OK(Everything().Write(file_));
  const absl::StatusOr<Settings> read = Settings::Read(file_);
  ASSERT_OK(read.status());
  EXPECT_EQ(*read, Everything());
}

TEST_F(SettingsFile, IsRefusedByNameAndLine) {
  EXPECT_EQ(Settings::Read(file_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(Settings::Read(folder_).ok());
  std::ofstream(file_) << "penstock settings 1\nruntime.workers = no\nend\n";
  EXPECT_THAT(std::string(Settings::Read(file_).status().message()),
              HasSubstr("settings file '" + file_ + "': line 2: "));
  std::ofstream(file_) << "penstock settings 1\n" << std::string(2 << 20, '#') << "\nend\n";
  EXPECT_THAT(std::string(Settings::Read(file_).status().message()), HasSubstr("more than 1048576 bytes"));
}

}  // namespace
}  // namespace penstock::settings_test
