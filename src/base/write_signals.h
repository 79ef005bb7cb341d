// WriteSignalsBlocked: while it lives, a write that fails is an error and does not end the process: of a pipe without a
// reader (SIGPIPE), or beyond the size that the process's files may have (SIGXFSZ).
//
// Threads: of the calling thread only. Signals that were pending before stay so. It leaves errno as it is.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace penstock::base {

class WriteSignalsBlocked {
 public:
  WriteSignalsBlocked() {
    sigemptyset(&ours_);
    sigset_t pending;
    sigpending(&pending);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      if (sigismember(&pending, signal) == 0) sigaddset(&ours_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~WriteSignalsBlocked() {
    const int error = errno;
    const timespec at_once{};
    while (sigtimedwait(&ours_, nullptr, &at_once) > 0 || errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;
  WriteSignalsBlocked& operator=(const WriteSignalsBlocked&) = delete;

 private:
  sigset_t ours_{}, before_{};
};

}  // namespace penstock::base
