// Which spans of a trace become which step.
#include "examples/photos/timeline.h"

#include <gtest/gtest.h>

#include <string>

namespace photos::timeline_test {
namespace {

penstock::Span Make(const std::string& name, penstock::SpanKind kind, double begin_us, double end_us, int device) {
  penstock::Span span;
  span.name = name;
  span.kind = kind;
  span.begin_us = begin_us;
  span.end_us = end_us;
  span.device = device;
  return span;
}

TEST(TimelineTest, DeviceSpansBecomeStepsOfTheirDevice) {
  const std::vector<Span> steps = StepsOf({Make("upload photo", penstock::SpanKind::kUpload, 1, 2.5, 0),
                                           Make("sobel", penstock::SpanKind::kKernel, 3, 4, 1),
                                           Make("download edges", penstock::SpanKind::kDownload, 5, 6, 2)});
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].step, Step::kUpload);
  EXPECT_EQ(steps[0].time, (Interval{1000, 2500}));
  EXPECT_EQ(steps[1].step, Step::kCompute);
  EXPECT_EQ(steps[1].device, 1);
  EXPECT_EQ(steps[2].step, Step::kDownload);
  EXPECT_EQ(steps[2].device, 2);
}

TEST(TimelineTest, OfHostSpansOnlyDecodeAndEncodeCount) {
  const std::vector<Span> steps = StepsOf(
      {Make("decode", penstock::SpanKind::kHost, 0, 1, -1), Make("stage photo", penstock::SpanKind::kHost, 1, 2, -1),
       Make("launch", penstock::SpanKind::kSubmit, 1, 2, -1), Make("encode", penstock::SpanKind::kHost, 2, 3, -1)});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step, Step::kDecode);
  EXPECT_EQ(steps[0].device, 0);
  EXPECT_EQ(steps[1].step, Step::kEncode);
}

// A kernel that happens to be called so is still a kernel.
TEST(TimelineTest, KindCountsBeforeName) {
  EXPECT_EQ(StepsOf({Make("decode", penstock::SpanKind::kKernel, 0, 1, 0)})[0].step, Step::kCompute);
}

}  // namespace
}  // namespace photos::timeline_test
