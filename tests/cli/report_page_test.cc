// The report's page as a text: it is whole, and names in it stay data. What it shows is tested in a browser, by
// report_browser_test.py.
#include "src/cli/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "tests/cli/named_profile.h"

namespace penstock::cli::report_page_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kHostile =
    "</script><script>alert(1)</script><!--<script>]]>--> \"'\\ & \xE2\x80\xA8 \xE2\x80\xA9 \x01\n \xFF";

// What the element of that id holds, as HTML reads it: until the first end tag.
std::string DataOf(const std::string& page, const std::string& id) {
  const std::string tag = "<script type=\"application/json\" id=\"" + id + "\">";
  const size_t begin = page.find(tag) + tag.size();
  return page.substr(begin, page.find("</script", begin) - begin);
}

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportPage, HoldsNamesAsDataThatNoReaderOfHtmlTakesForItsOwn) {
  const Profile profile = ProfileNamed(kHostile);
  const json findings = json::array({{{"rule", std::string(kHostile)}}});
  const std::string page = ReportPage(profile, kHostile, findings);
  const std::string harmless = ReportPage(ProfileNamed("x"), "x", json::array());
  for (const char* mark : {"<script", "</script", "<!--", "-->", "alert(1)<"}) {
    EXPECT_EQ(CountOf(page, mark), CountOf(harmless, mark)) << mark;
  }
  EXPECT_EQ(json::parse(DataOf(page, "profile")), json::parse(profile.Json()));
  const std::string readable(kHostile.substr(0, kHostile.size() - 1));
  EXPECT_EQ(json::parse(DataOf(page, "findings")).at(0).at("rule"), readable + "\xEF\xBF\xBD");
  EXPECT_EQ(json::parse(DataOf(page, "about")).at("file"), readable + "\xEF\xBF\xBD");
  for (const std::string& data : {DataOf(page, "profile"), DataOf(page, "findings"), DataOf(page, "about")}) {
    EXPECT_THAT(data, Not(HasSubstr("\xE2\x80\xA8")));
    EXPECT_THAT(data, Not(HasSubstr("\xE2\x80\xA9")));
  }
}

TEST(ReportPage, IsWholeAndAsksForNothingElse) {
  const std::string page = ReportPage(Profile{}, "empty", json::array());
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_THAT(page, Not(HasSubstr("<!--=")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* link : {"src=", "http:", "https:", "import(", "fetch("}) EXPECT_THAT(page, Not(HasSubstr(link)));
}

}  // namespace
}  // namespace penstock::cli::report_page_test
