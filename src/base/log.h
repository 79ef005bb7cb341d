// Logger: sends the messages of one runtime to the application's hook, or to stderr.
//
// It shares nothing with the application's own logging: the stderr sink is an unregistered logger of its own, and
// spdlog's default logger is not touched.
//
// Ownership: a value of the runtime; holds the hook.
// Threads:   thread-safe. Any thread that logs calls the hook, several concurrently, with no lock held.
// Errors:    none. A message whose hook throws goes to stderr instead.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "penstock/log_level.h"

namespace penstock::base {

class Logger {
 public:
  using Hook = std::function<void(LogLevel, std::string_view)>;

  // PENSTOCK_LOG=debug|info|warning|error|off wins over `level`; any other value is logged as a warning. An empty
  // hook means stderr.
  Logger(LogLevel level, Hook hook);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // Whether Log would pass on a message of this level; check it before making a costly one.
  bool enabled(LogLevel level) const { return level >= level_ && level < LogLevel::kOff; }
  void Log(LogLevel level, std::string_view message) const;

 private:
  struct Stderr;

  LogLevel level_;
  const Hook hook_;
  const std::unique_ptr<Stderr> stderr_;
};

}  // namespace penstock::base
