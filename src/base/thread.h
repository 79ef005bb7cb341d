// StartThread: how every thread of the library begins; nothing else in it constructs a std::thread.
//
// The library is a guest of the application's process. Signals that are sent to the process are the application's: a
// thread that left them unblocked would run its handlers, or take what it waits for in sigwait. So a thread of the
// library blocks all signals from its first instruction on, except those that tell of its own mistakes (SIGSEGV,
// SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS) and SIGPROF, for profilers. What such a thread starts inherits that
// mask: threads that CUDA makes in its calls, and child processes that user code starts there (Graph::Host).
//
// Threads:   thread-safe. The caller's own mask is as before, whether it succeeds or throws.
// Errors:    throws std::system_error where the system refuses a thread, as the constructor of std::thread.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace penstock::base {

// While it lives the calling thread has the mask that new threads are to inherit: those of StartThread, and those that
// CUDA makes when it starts.
class MaskOfOwnThreads {
 public:
  MaskOfOwnThreads();
  ~MaskOfOwnThreads();
  MaskOfOwnThreads(const MaskOfOwnThreads&) = delete;
  MaskOfOwnThreads& operator=(const MaskOfOwnThreads&) = delete;

 private:
  sigset_t before_;
};

// `name` is that of its ThreadRole; of a few characters, of which debuggers show 15.
std::thread StartThread(std::string name, std::function<void()> body);

namespace detail {
inline thread_local bool on_own_thread = false;
}

// Whether the calling thread was started by StartThread, for whatever runtime. It must not wait for what may wait for
// it, so what it drops last is ended by another (reaper.h).
inline bool OnOwnThread() { return detail::on_own_thread; }

}  // namespace penstock::base
