// penstock report: a page is written whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "src/cli/report_page.h"
#include "tests/cli/named_profile.h"
#include "tests/cli/profile_file.h"
#include "tests/cli/run_penstock.h"

namespace penstock::cli::report_command_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ReportCommand, WritesThePageOfAProfile) {
  const TemporaryFolder folder;
  folder.Write("app.profile", ProfileNamed("x"));
  const Ran text = RunPenstock({"report", folder.Path("app.profile"), "--out", folder.Path("app.html")});
  EXPECT_EQ(text.code, kDone) << text.err;
  EXPECT_THAT(text.out, HasSubstr("app.html, 1 span;"));
  EXPECT_EQ(folder.Read("app.html"), ReportPage(ProfileNamed("x"), "app.profile", json::array()));
  const Ran value = RunPenstock({"report", folder.Path("app.profile"), "--out", folder.Path("app.html"), "--json"});
  EXPECT_EQ(json::parse(value.out).at("spans"), 1);
}

// Each run is launched when the one before it has ended, though there are two slots.
TEST(ReportCommand, ShowsWhatTheDoctorFinds) {
  Profile profile = ProfileNamed("x");
  profile.graphs[0].slots = 2;
  profile.spans.clear();
  for (int r = 0; r < 20; ++r) {
    const double at = r * 1000;
    Span span{.name = "run", .track = "runs"};
    span.kind = SpanKind::kRun;
    span.begin_us = at;
    span.end_us = at + 100;
    span.run = r;
    span.executable = profile.graphs[0].executable;
    profile.spans.push_back(span);
    span.kind = SpanKind::kSubmit;
    span.end_us = at + 10;
    profile.spans.push_back(span);
  }
  const TemporaryFolder folder;
  folder.Write("app.profile", profile);
  RunPenstock({"report", folder.Path("app.profile"), "--out", folder.Path("app.html")});
  const std::string page = folder.Read("app.html");
  EXPECT_THAT(page.substr(page.find("id=\"findings\">")), HasSubstr("\"rule\":\"starved-source\""));
}

TEST(ReportCommand, LeavesTheOldPageAloneWhereThereIsNoProfile) {
  const TemporaryFolder folder;
  const std::string whole = ProfileNamed("x").Json();
  for (const std::string& bad :
       {std::string(), std::string("{}"), whole.substr(0, whole.size() / 2), std::string("<html>")}) {
    std::ofstream(folder.Path("bad.profile")) << bad;
    std::ofstream(folder.Path("old.html")) << "old";
    const Ran ran = RunPenstock({"report", folder.Path("bad.profile"), "--out", folder.Path("old.html")});
    EXPECT_EQ(ran.code, kFailed) << bad;
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, HasSubstr("bad.profile"));
    EXPECT_EQ(folder.Read("old.html"), "old");
  }
  EXPECT_EQ(RunPenstock({"report", folder.Path("none.profile"), "--out", folder.Path("old.html")}).code, kFailed);
  EXPECT_EQ(RunPenstock({"report", "--out", folder.Path("old.html")}).code, kFailed);
  EXPECT_EQ(folder.Read("old.html"), "old");
}

// Nor do the other commands; links and other spellings of a path are the same file.
TEST(ReportCommand, DoesNotWriteOverTheProfileThatItReads) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("app.profile", ProfileNamed("x"));
  std::filesystem::create_symlink(file, folder.Path("link"));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"report", file, "--out", folder.Path("link")},
        {"plan", file, "--out", folder.Path("./app.profile")},
        {"trace", folder.Path("link"), "--chrome", file},
        {"tune", file, "--force", "--out", file}}) {
    const Ran ran = RunPenstock(arguments);
    EXPECT_EQ(ran.code, kFailed) << arguments[0];
    EXPECT_THAT(ran.err, HasSubstr("is the file that is read"));
    EXPECT_EQ(folder.Read("app.profile"), ProfileNamed("x").Json());
  }
}

TEST(ReportCommand, SaysWhyAPageCannotBeWritten) {
  const TemporaryFolder folder;
  folder.Write("app.profile", ProfileNamed("x"));
  const Ran ran = RunPenstock({"report", folder.Path("app.profile"), "--out", folder.Path("no such folder/app.html")});
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_THAT(ran.err, HasSubstr("no such folder/app.html"));
}

}  // namespace
}  // namespace penstock::cli::report_command_test
