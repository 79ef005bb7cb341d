// StartThread: starts every thread of the library; no other code in it constructs a std::thread.
//
// The library is a guest in the application's process, and signals sent to the process belong to the application: a
// thread that left them unblocked would run its handlers, or take signals it awaits in sigwait. So a library thread
// blocks all signals from its first instruction on, except those raised by its own faults (SIGSEGV, SIGBUS, SIGFPE,
// SIGILL, SIGTRAP, SIGABRT, SIGSYS) and SIGPROF, for profilers. Whatever such a thread starts inherits the mask:
// threads that CUDA makes in its calls, and child processes that user code starts there (Graph::Host).
//
// Threads:   thread-safe. The caller's own mask is unchanged afterwards, also if the call throws.
// Errors:    throws std::system_error if the system refuses a thread, as the constructor of std::thread does.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace penstock::base {

// While it lives, the calling thread has the mask that new threads inherit: those of StartThread, and those that CUDA
// makes when it starts.
class MaskOfOwnThreads {
 public:
  MaskOfOwnThreads();
  ~MaskOfOwnThreads();
  MaskOfOwnThreads(const MaskOfOwnThreads&) = delete;
  MaskOfOwnThreads& operator=(const MaskOfOwnThreads&) = delete;

 private:
  sigset_t before_;
};

// `name` becomes the name of its ThreadRole; keep it short, since debuggers show 15 characters.
std::thread StartThread(std::string name, std::function<void()> body);

namespace detail {
inline thread_local bool on_own_thread = false;
}

// Whether StartThread started the calling thread, for any runtime. Such a thread must not wait for anything that may
// wait for it, so another thread ends what it drops last (reaper.h).
inline bool OnOwnThread() { return detail::on_own_thread; }

}  // namespace penstock::base
