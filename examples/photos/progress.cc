// Terminal control: carriage return, and "erase to the end of the line".
#include "progress.h"

#include <unistd.h>

#include "report.h"

namespace photos {
namespace {

constexpr std::chrono::milliseconds kPause(100);

}  // namespace

Progress::Progress(FILE* out, int64_t total)
    : out_(out), total_(total), shown_(isatty(fileno(out)) == 1), start_(Clock::now()), next_(start_) {}

Progress::~Progress() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
}

void Progress::Update(int64_t done, int64_t skipped) {
  const Clock::time_point now = Clock::now();
  if (!shown_ || now < next_) return;
  next_ = now + kPause;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::fprintf(out_, "\r%s\x1b[K", FormatProgress(done, total_, skipped, seconds).c_str());
  std::fflush(out_);
}

}  // namespace photos
