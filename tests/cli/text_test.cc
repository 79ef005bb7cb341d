// Text for people: one line from any name, quantities, tables.
#include "src/cli/text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace penstock::cli::text_test {
namespace {

TEST(TextForPeople, MakesOneHarmlessLineOfAnyName) {
  EXPECT_EQ(Shown("saxpy"), "saxpy");
  EXPECT_EQ(Shown("a\nb\x1B[2J\x7F"), "a\\x0ab\\x1b[2J\\x7f");
  EXPECT_EQ(Shown("csi \xC2\x9B"
                  "2J"),
            "csi \\xc2\\x9b2J");
  EXPECT_EQ(Shown("a\xE2\x80\xAE"
                  "b\xE2\x81\xA6\xE2\x80\xA8\xD8\x9C",
                  100),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xe2\\x80\\xa8\\xd8\\x9c");
  EXPECT_EQ(Shown("\xE2\x80\xA6\xE2\x82\xAC"), "\xE2\x80\xA6\xE2\x82\xAC");
  EXPECT_EQ(Shown("\xC2\xA0\xC3\x9B"), "\xC2\xA0\xC3\x9B");  // no control characters, though their bytes are alike
  EXPECT_EQ(Shown("1234567890", 10), "1234567890");
  EXPECT_EQ(Shown("1234567890a", 10), "1234567...");
  EXPECT_EQ(Shown("\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\xC3\xBC", 5), "\xC3\xA4\xC3\xB6...");
}

TEST(TextForPeople, GivesQuantitiesThreeDigitsAndAUnit) {
  EXPECT_EQ(TimeText(0), "0.00 us");
  EXPECT_EQ(TimeText(12.34), "12.3 us");
  EXPECT_EQ(TimeText(999.6), "1.00 ms");
  EXPECT_EQ(TimeText(123456), "123 ms");
  EXPECT_EQ(TimeText(-1500), "-1.50 ms");
  EXPECT_EQ(TimeText(2.5e9), "2500 s");
  EXPECT_EQ(SizeText(1023), "1023 B");
  EXPECT_EQ(SizeText(1536), "1.50 KiB");
  EXPECT_EQ(SizeText(int64_t{64} << 20), "64 MiB");
  EXPECT_EQ(SizeText(int64_t{3} << 40), "3 TiB");
  EXPECT_EQ(PercentText(0.1234), "12 %");
  EXPECT_EQ(PercentText(0.1234, 1), "12.3 %");
  EXPECT_EQ(CountText(1, "run") + CountText(2, "run"), "1 run2 runs");
  EXPECT_EQ(analysis::FlopRateText(60'123), "60.1 TFLOP/s");
}

TEST(TextForPeople, BreaksLinesAtSpaces) {
  const std::string text = Wrapped(std::string(60, 'a') + " " + std::string(60, 'b') + " c", 4);
  EXPECT_EQ(text, std::string(60, 'a') + "\n    " + std::string(60, 'b') + " c");
  EXPECT_EQ(Wrapped("", 4), "");
  EXPECT_EQ(Wrapped("  " + std::string(97, 'a') + " b c", 8), "  " + std::string(97, 'a') + "\n        b c");
}

TEST(TextForPeople, AlignsTables) {
  TextTable table({"<name", "bytes"});
  EXPECT_TRUE(table.empty());
  table.Add({"\xC3\xA4", "10"});
  table.Add({"longer", "100000"});
  std::ostringstream out;
  table.Write(out);
  EXPECT_EQ(out.str(),
            "  name     bytes\n"
            "  \xC3\xA4           10\n"
            "  longer  100000\n");
}

}  // namespace
}  // namespace penstock::cli::text_test
