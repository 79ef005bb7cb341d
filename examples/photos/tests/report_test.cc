// Sums, shares and the table's wording.
#include "examples/photos/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace photos::report_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMs = 1000000;

const StepTotal& Total(const Summary& summary, Step step) { return summary.steps[static_cast<size_t>(step)]; }

// Two pictures in 100 ms: decoded by two threads at once, one upload beside a kernel and one alone.
Measurement TwoPictures() {
  Measurement m;
  m.images = 2;
  m.bytes_up = 3000000;
  m.bytes_down = 1000000;
  m.wall_ns = 100 * kMs;
  m.traced_images = 2;
  m.traced_ns = 100 * kMs;
  m.worker_cpu_ns = 40 * kMs;
  m.workers = 2;
  m.spans = {
      {Step::kDecode, 0, {0, 10 * kMs}},        {Step::kDecode, 0, {5 * kMs, 15 * kMs}},
      {Step::kUpload, 0, {10 * kMs, 20 * kMs}}, {Step::kCompute, 0, {20 * kMs, 40 * kMs}},
      {Step::kUpload, 0, {25 * kMs, 35 * kMs}}, {Step::kEncode, 0, {50 * kMs, 80 * kMs}},
  };
  return m;
}

TEST(ReportTest, SumsStepsOverThreadsAndCountsBusyTimeOnce) {
  const Summary s = Summarize(TwoPictures());
  EXPECT_DOUBLE_EQ(Total(s, Step::kDecode).seconds, 0.020);
  EXPECT_DOUBLE_EQ(Total(s, Step::kDecode).share, 20.0 / 90.0);
  EXPECT_DOUBLE_EQ(Total(s, Step::kDecode).busy, 0.15);
  EXPECT_DOUBLE_EQ(Total(s, Step::kDownload).seconds, 0.0);
  EXPECT_DOUBLE_EQ(Total(s, Step::kEncode).share, 30.0 / 90.0);
}

TEST(ReportTest, RatesFollowFromWallAndCpuTime) {
  const Summary s = Summarize(TwoPictures());
  EXPECT_DOUBLE_EQ(s.images_per_second, 20.0);
  EXPECT_DOUBLE_EQ(s.worker_cpu_per_image, 0.020);
  EXPECT_DOUBLE_EQ(s.worker_bound, 100.0);
  EXPECT_DOUBLE_EQ(s.megabytes_up, 3.0);
  EXPECT_DOUBLE_EQ(s.hidden_share, 0.5);
}

TEST(ReportTest, WorkOfAnotherDeviceHidesNothing) {
  Measurement m = TwoPictures();
  m.spans[3].device = 1;
  EXPECT_DOUBLE_EQ(Summarize(m).hidden_share, 0.0);
}

TEST(ReportTest, HiddenShareIsWeightedByCopyTimeOverDevices) {
  Measurement m;
  m.spans = {{Step::kUpload, 0, {0, 30}}, {Step::kCompute, 0, {0, 30}}, {Step::kDownload, 1, {0, 10}}};
  EXPECT_DOUBLE_EQ(Summarize(m).hidden_share, 0.75);
}

TEST(ReportTest, NothingMeasuredDividesByNothing) {
  const Summary s = Summarize({});
  EXPECT_EQ(s.images_per_second, 0);
  EXPECT_EQ(s.worker_bound, 0);
  EXPECT_EQ(Total(s, Step::kDecode).share, 0);
  EXPECT_THAT(FormatTable({{"pipelined", s}, {"serial", s}}), HasSubstr("ratio"));
}

std::string LineOf(const std::string& table, const std::string& label) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(label, 0) == 0) return line;
  }
  return "no line " + label;
}

TEST(ReportTest, TableHasOneLineAStepAndTheTotals) {
  const std::string table = FormatTable({{"pipelined", Summarize(TwoPictures())}});
  EXPECT_THAT(LineOf(table, "decode"), HasSubstr("0.020 s   22.2 %   15.0 %"));
  EXPECT_THAT(LineOf(table, "H2D"), HasSubstr("0.020 s"));
  EXPECT_THAT(LineOf(table, "D2H"), HasSubstr("0.000 s"));
  EXPECT_THAT(LineOf(table, "images  "), HasSubstr(" 2"));
  EXPECT_THAT(LineOf(table, "MB"), HasSubstr("3.0, 1.0"));
  EXPECT_THAT(LineOf(table, "copy time hidden"), HasSubstr("50.0 %"));
  EXPECT_THAT(LineOf(table, "images a second"), HasSubstr("20.0"));
  EXPECT_THAT(table, Not(HasSubstr("ratio")));
}

TEST(ReportTest, TwoColumnsGiveTheRatioOfFirstToSecond) {
  Measurement slow = TwoPictures();
  slow.wall_ns *= 4;
  const std::string table = FormatTable({{"pipelined", Summarize(TwoPictures())}, {"serial", Summarize(slow)}});
  EXPECT_THAT(LineOf(table, "images a second"), HasSubstr("5.0"));
  EXPECT_THAT(LineOf(table, "ratio"), HasSubstr(" 4.00"));
}

TEST(ReportTest, ProgressNamesSkippedFilesOnlyWhereThereAreSome) {
  EXPECT_EQ(FormatProgress(12, 700, 0, 0.5), "12/700 images, 24.0 images/s");
  EXPECT_EQ(FormatProgress(0, 700, 1, 0.0), "0/700 images, 1 skipped");
}

}  // namespace
}  // namespace photos::report_test
