#include "src/base/thread.h"

#include <pthread.h>

#include <csignal>
#include <utility>

#include "src/base/thread_role.h"

namespace penstock::base {
namespace {

// While it lives the calling thread has the mask that a new thread is to inherit.
class MaskOfOwnThreads {
 public:
  MaskOfOwnThreads() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int kept : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, kept);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~MaskOfOwnThreads() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  MaskOfOwnThreads(const MaskOfOwnThreads&) = delete;
  MaskOfOwnThreads& operator=(const MaskOfOwnThreads&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread StartThread(std::string name, std::function<void()> body) {
  const MaskOfOwnThreads mask;
  return std::thread([name = std::move(name), body = std::move(body)]() mutable {
    detail::on_own_thread = true;
    const ThreadRole role(std::move(name));
    body();
  });
}

}  // namespace penstock::base
