// The fork and exit handlers, and the list of objects leaked on purpose. See process_life.h.
#include "src/base/process_life.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "src/base/leak_list.h"

namespace penstock::base {
namespace {

std::atomic<int> forks{0};  // written in the only thread of a fork's copy
std::atomic<bool> exiting{false};  // set once, and never cleared
std::atomic<int> endings{0};  // ends of runtimes and pipelines on threads of their own that are not over

// Sleeps in short naps, so that time during which the process is stopped does not count.
void AwaitEndings() {
  constexpr int kNaps = 1000;
  for (int nap = 0; nap < kNaps && endings.load(std::memory_order_acquire) > 0; ++nap) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Handlers registered with atexit run among the destructors of statics, in reverse order of registration, so none runs
// before all of them. Thread-local objects of the exiting thread are destroyed before.
struct MainThreadEnds {
  ~MainThreadEnds() {
    if (getpid() != gettid()) return;
    AwaitEndings();
    exiting.store(true, std::memory_order_release);
  }
};
thread_local MainThreadEnds main_thread_ends;
[[maybe_unused]] const MainThreadEnds* const made_by_main_thread = &main_thread_ends;  // main thread makes statics

constinit LeakList<> leaked;

}  // namespace

void WatchForks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    endings.store(0, std::memory_order_relaxed);  // the copy does not have their threads
  });
  (void)registered;  // not 0: out of memory, so that a copy is not recognized
}

int ForkCount() { return forks.load(std::memory_order_relaxed); }

bool Exiting() { return exiting.load(std::memory_order_acquire); }

void EndingBegins() { endings.fetch_add(1, std::memory_order_relaxed); }

void EndingOver() { endings.fetch_sub(1, std::memory_order_release); }

void LeakOnPurpose(std::shared_ptr<void> object) { leaked.Keep(std::move(object), nullptr); }

void KeepReachable(void* object) { leaked.Keep(nullptr, object); }

}  // namespace penstock::base
