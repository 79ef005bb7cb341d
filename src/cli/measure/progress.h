// Progress: one line of a terminal that says what goes on, until it is gone.
//
// Threads: one thread.
#pragma once

#include <unistd.h>

#include <iostream>
#include <string>

#include "src/cli/console.h"

namespace penstock::cli::measure {

class Progress {
 public:
  // Silent unless `show`.
  Progress(std::ostream& to, bool show) : to_(to), show_(show) {}
  // Silent unless stderr is a terminal and the result is text.
  explicit Progress(const Console& console)
      : Progress(console.err, !console.json && &console.err == &std::cerr && isatty(STDERR_FILENO) == 1) {}
  Progress(const Progress&) = delete;
  ~Progress() { Step(""); }

  // Replaces the line. Nothing removes it.
  void Step(const std::string& what) {
    if (show_) to_ << "\r\033[K" << what << std::flush;
  }

 private:
  std::ostream& to_;
  const bool show_;
};

}  // namespace penstock::cli::measure
