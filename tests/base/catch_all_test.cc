#include "src/base/catch_all.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "src/base/status.h"

namespace penstock::base::catch_all_test {
namespace {

std::string Told(const std::string& what) {
  const absl::Status status = CatchAll("it", [&] { throw std::runtime_error(what); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  return Str(status.message());
}

TEST(CatchAll, ReturnsWhatTheCallableReturns) {
  EXPECT_EQ(CatchAll("it", [] {}), absl::OkStatus());
  EXPECT_EQ(CatchAll("it", [] { return absl::NotFoundError("no"); }), absl::NotFoundError("no"));
}

TEST(CatchAll, SaysWhatWasThrown) { EXPECT_EQ(Told("boom"), "it threw: boom; catch it there"); }

TEST(CatchAll, EscapesWhatIsNoPrintableText) {
  EXPECT_EQ(Told("a\nb\tc\x7f"), "it threw: a\\nb\\x09c\\x7f; catch it there");
  EXPECT_EQ(Told("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "it threw: \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80; catch it there");
  EXPECT_EQ(Told("\x80 \xc3 \xc0\xaf \xed\xa0\x80 \xff"),
            "it threw: \\x80 \\xc3 \\xc0\\xaf \\xed\\xa0\\x80 \\xff; catch it there");
}

TEST(CatchAll, CutsWhatIsTooLongBetweenCharacters) {
  EXPECT_EQ(Told(std::string(4096, 'x')), "it threw: " + std::string(4096, 'x') + "; catch it there");
  EXPECT_EQ(Told(std::string(4095, 'x') + "\xc3\xa9 and more"),
            "it threw: " + std::string(4095, 'x') + " [cut after 4095 bytes]; catch it there");
}

TEST(CatchAll, LetsThroughWhatEndsTheThread) {
  bool ended = false, returned = false;
  std::thread([&] {
    const WhenThreadEnds note([&] { ended = true; });
    (void)CatchAll("it", [] { pthread_exit(nullptr); });
    returned = true;
  }).join();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(returned);
}

}  // namespace
}  // namespace penstock::base::catch_all_test
