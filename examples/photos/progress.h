// The one line that a terminal shows while the job runs, rewritten in place some ten times a second. Nothing at all is
// written where the stream is no terminal.
//
// Threads: single-threaded; the job's sink calls it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace photos {

class Progress {
 public:
  // `out` must outlive this.
  Progress(FILE* out, int64_t total);
  // Wipes the line, so that what is printed next starts clean.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(int64_t done, int64_t skipped);

 private:
  using Clock = std::chrono::steady_clock;

  FILE* const out_;
  const int64_t total_;
  const bool shown_;  // a terminal
  const Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace photos
