// Logger: where the messages of one runtime go: the application's hook, or stderr.
//
// It shares nothing with the application's own logging: the stderr sink is a logger of its own that is never registered
// anywhere, and the default logger of the library behind it is not touched.
//
// Ownership: a value of the runtime; holds the hook.
// Threads:   thread-safe. The hook is called from whichever thread logs, also from several at once, with no lock held.
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

  // PENSTOCK_LOG=debug|info|warning|error|off wins over `level`; any other value is itself logged, as a warning. An
  // empty hook: stderr.
  Logger(LogLevel level, Hook hook);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // Whether Log would pass the message on: to be asked before a costly message is made.
  bool enabled(LogLevel level) const { return level >= level_ && level < LogLevel::kOff; }
  void Log(LogLevel level, std::string_view message) const;

 private:
  struct Stderr;

  LogLevel level_;
  const Hook hook_;
  const std::unique_ptr<Stderr> stderr_;
};

}  // namespace penstock::base
