// What a runtime says of its staging threads in the log, for the notes of a report.
//
// Threads: thread-safe; copies share what was heard.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "penstock/ps.h"

namespace bench {

class StagingLog {
 public:
  // `options` with a log of its own that listens. Warnings go to stderr as ever.
  ps::RuntimeOptions Listen(ps::RuntimeOptions options) const {
    options.log_level = ps::LogLevel::kInfo;
    options.log = [heard = heard_](ps::LogLevel level, std::string_view message) { heard->Hear(level, message); };
    return options;
  }
  // "13 threads, chunks of ...", or that it was not heard.
  std::string text() const {
    const std::lock_guard<std::mutex> lock(heard_->mu);
    return heard_->text.empty() ? "as many threads as the runtime finds best" : heard_->text;
  }

 private:
  struct Heard {
    std::mutex mu;
    std::string text;
    void Hear(ps::LogLevel level, std::string_view message) {
      constexpr std::string_view kBefore = "staging: ";
      if (level >= ps::LogLevel::kWarning) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
      }
      const size_t at = message.find(kBefore);
      if (at == std::string_view::npos) return;
      const std::lock_guard<std::mutex> lock(mu);
      text = message.substr(at + kBefore.size());
    }
  };
  std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
};

}  // namespace bench
