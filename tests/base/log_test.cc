// Logger: levels, the hook, PENSTOCK_LOG, stderr.
#include "src/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace penstock::base::log_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// Sets or, without a value, unsets PENSTOCK_LOG for a scope.
class ScopedLevel {
 public:
  explicit ScopedLevel(const char* value) {
    if (const char* old = std::getenv("PENSTOCK_LOG")) old_ = old;
    Put(value);
  }
  ~ScopedLevel() { Put(old_ ? old_->c_str() : nullptr); }

 private:
  static void Put(const char* value) {
    if (value != nullptr) {
      setenv("PENSTOCK_LOG", value, 1);
    } else {
      unsetenv("PENSTOCK_LOG");
    }
  }
  std::optional<std::string> old_;
};

struct Heard {
  std::vector<std::pair<LogLevel, std::string>> lines;
  Logger::Hook hook() {
    return [this](LogLevel level, std::string_view message) { lines.emplace_back(level, message); };
  }
};

void LogOneOfEach(const Logger& logger) {
  logger.Log(LogLevel::kDebug, "d");
  logger.Log(LogLevel::kInfo, "i");
  logger.Log(LogLevel::kWarning, "w");
  logger.Log(LogLevel::kError, "e");
  logger.Log(LogLevel::kOff, "o");
}

TEST(Logger, PassesItsLevelAndAbove) {
  ScopedLevel env(nullptr);
  Heard heard;
  Logger logger(LogLevel::kWarning, heard.hook());
  LogOneOfEach(logger);
  EXPECT_THAT(heard.lines, ElementsAre(Pair(LogLevel::kWarning, "w"), Pair(LogLevel::kError, "e")));
  EXPECT_FALSE(logger.enabled(LogLevel::kInfo));
  EXPECT_TRUE(logger.enabled(LogLevel::kWarning));
}

TEST(Logger, OffIsSilent) {
  ScopedLevel env(nullptr);
  Heard heard;
  Logger logger(LogLevel::kOff, heard.hook());
  LogOneOfEach(logger);
  EXPECT_THAT(heard.lines, IsEmpty());
}

TEST(Logger, EnvironmentWins) {
  const std::vector<std::pair<const char*, size_t>> heard_at = {
      {"debug", 4}, {"info", 3}, {"warning", 2}, {"error", 1}, {"off", 0}};
  for (const auto& [value, lines] : heard_at) {
    ScopedLevel env(value);
    Heard heard;
    LogOneOfEach(Logger(LogLevel::kWarning, heard.hook()));
    EXPECT_EQ(heard.lines.size(), lines) << value;
  }
}

TEST(Logger, UnknownEnvironmentValueIsOneWarningAndIgnored) {
  ScopedLevel env("loud");
  Heard heard;
  Logger logger(LogLevel::kError, heard.hook());
  EXPECT_THAT(heard.lines, IsEmpty());  // a warning, below the level
  Logger chatty(LogLevel::kInfo, heard.hook());
  EXPECT_THAT(heard.lines, ElementsAre(Pair(LogLevel::kWarning, HasSubstr("'loud'"))));
  EXPECT_TRUE(chatty.enabled(LogLevel::kInfo));
  EXPECT_FALSE(chatty.enabled(LogLevel::kDebug));
}

TEST(Logger, EmptyEnvironmentValueIsNone) {
  ScopedLevel env("");
  Heard heard;
  LogOneOfEach(Logger(LogLevel::kError, heard.hook()));
  EXPECT_THAT(heard.lines, ElementsAre(Pair(LogLevel::kError, "e")));
}

TEST(Logger, WithoutAHookWritesOneLineToStderr) {
  ScopedLevel env(nullptr);
  testing::internal::CaptureStderr();
  Logger(LogLevel::kInfo, {}).Log(LogLevel::kError, "braces {} and %s stay");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex(".* \\[penstock\\] \\[error\\] braces \\{\\} and %s stay\n"));
}

TEST(Logger, MessageOfAThrowingHookGoesToStderr) {
  ScopedLevel env(nullptr);
  Logger logger(LogLevel::kInfo, [](LogLevel, std::string_view) { throw std::runtime_error("hook"); });
  testing::internal::CaptureStderr();
  logger.Log(LogLevel::kWarning, "kept");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("kept"));
}

}  // namespace
}  // namespace penstock::base::log_test
