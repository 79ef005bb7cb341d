#include "src/base/thread.h"

#include <pthread.h>

#include <utility>

#include "src/base/thread_role.h"

namespace penstock::base {

MaskOfOwnThreads::MaskOfOwnThreads() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int kept : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
    sigdelset(&blocked, kept);
  }
  pthread_sigmask(SIG_SETMASK, &blocked, &before_);
}

MaskOfOwnThreads::~MaskOfOwnThreads() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::thread StartThread(std::string name, std::function<void()> body) {
  const MaskOfOwnThreads mask;
  return std::thread([name = std::move(name), body = std::move(body)]() mutable {
    detail::on_own_thread = true;
    const ThreadRole role(std::move(name));
    body();
  });
}

}  // namespace penstock::base
