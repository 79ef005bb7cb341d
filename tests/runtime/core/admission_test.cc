// Whether a runtime accepts work, and what becomes of a failing node that rides in a Status.
#include "src/runtime/core/admission.h"

#include <gtest/gtest.h>

#include "src/base/status.h"

namespace penstock::runtime::admission_test {
namespace {

absl::Status Fatal(const char* text) {
  return base::WithFault(absl::InternalError(text), {.cuda_code = 700, .fatal = true});
}

TEST(Admission, KeepsTheFirstFatalErrorWithoutTheNodeOfItsPlan) {
  Admission admission;
  EXPECT_TRUE(admission.CheckOpen().ok());
  EXPECT_FALSE(admission.Latch(absl::InternalError("not fatal")));
  EXPECT_FALSE(admission.failed());
  EXPECT_TRUE(admission.Latch(base::WithNode(Fatal("first"), 3)));
  EXPECT_FALSE(admission.Latch(Fatal("second"))) << "only the first one counts";
  EXPECT_TRUE(admission.failed());
  EXPECT_EQ(admission.CheckOpen().message(), "refused after a fatal device error: first");
  absl::Status fault = admission.Fault();
  EXPECT_EQ(fault.message(), "ended by a fatal device error: first");
  EXPECT_TRUE(base::IsFatal(fault));
  EXPECT_EQ(base::TakeNode(fault), -1);
}

TEST(Admission, RefusesWorkOnceItIsClosed) {
  Admission admission;
  admission.runs().Close();
  EXPECT_EQ(admission.CheckOpen().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(NodeOfAStatus, IsTakenOutOnceAndStaysUnderPrefixes) {
  absl::Status status = base::Prefixed("graph 'g'", base::WithNode(Fatal("no"), 12));
  EXPECT_EQ(base::TakeNode(status), 12);
  EXPECT_EQ(base::TakeNode(status), -1);
  EXPECT_TRUE(base::IsFatal(status)) << "other payloads stay";
  absl::Status none = base::WithNode(absl::InternalError("no"), -1);
  EXPECT_EQ(base::TakeNode(none), -1);
  EXPECT_TRUE(base::WithNode(absl::OkStatus(), 5).ok());
}

}  // namespace
}  // namespace penstock::runtime::admission_test
