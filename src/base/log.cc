// The only file that includes spdlog, header-only and without its registry: its default logger belongs to
// the application.
#include "src/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <optional>
#include <string>
#include <utility>

#include "src/base/catch_all.h"
#include "src/base/environment.h"
#include "src/base/user_code.h"

namespace penstock::base {
namespace {

std::optional<LogLevel> LevelNamed(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return std::nullopt;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  return spdlog::level::off;
}

}  // namespace

struct Logger::Stderr {
  Stderr() : logger("penstock", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_level(spdlog::level::trace);  // Logger has already filtered
    logger.set_pattern("%Y-%m-%d %H:%M:%S.%e [%n] [%l] %v");
    logger.flush_on(spdlog::level::trace);
  }
  void Write(LogLevel level, std::string_view message) {
    logger.log(SpdlogLevel(level), spdlog::string_view_t(message.data(), message.size()));
  }

  spdlog::logger logger;
};

Logger::Logger(LogLevel level, Hook hook) : level_(level), hook_(std::move(hook)), stderr_(std::make_unique<Stderr>()) {
  const std::optional<std::string> value = Variable("PENSTOCK_LOG"), word = WordOf("PENSTOCK_LOG");
  if (!value || !word) return;
  if (const std::optional<LogLevel> named = LevelNamed(*word)) {
    level_ = *named;
  } else {
    Log(LogLevel::kWarning,
        "PENSTOCK_LOG='" + *value + "' is no log level and is ignored; use debug, info, warning, error or off");
  }
}

Logger::~Logger() = default;

void Logger::Log(LogLevel level, std::string_view message) const {
  if (!enabled(level)) return;
  const auto call_hook = [&] {
    const UserCodeScope scope;
    hook_(level, message);
  };
  // The message matters more than the hook's failure.
  if (hook_ && CatchAll("the log hook", call_hook).ok()) return;
  // Logging never fails in its caller.
  (void)CatchAll("stderr", [&] { stderr_->Write(level, message); });
}

}  // namespace penstock::base
