// What becomes of the process around the library: whether it is a fork's copy, and whether it is exiting.
//
// A copy made by fork has one thread; the library's threads are not there, its locks may be held by them for ever, and
// CUDA does not work. So what was made before a fork is refused and left alone in the copy. A process that exits
// destroys its statics while the library's threads still run, and after parts of CUDA are gone, so a runtime destroyed
// then is left behind too.
//
// Ownership: what is leaked on purpose stays reachable, so that leak checkers know it from what was forgotten.
// Threads:   thread-safe; ForkCount is one relaxed load.
#pragma once

#include <memory>

namespace penstock::base {

// Has forks counted from now on. Cheap after the first call.
void WatchForks();

// How often this process and those it is a copy of have forked since WatchForks, seen from the copy: two values differ
// between a process and its copy, and never within a process.
int ForkCount();

// Whether the main thread has returned from main or called exit: then statics are being destroyed. An exit by another
// thread is not seen.
bool Exiting();

// Between the two something ends on a thread of the library's own (reaper.h). Before the main thread counts as exiting
// it waits for all of them, but no longer than about a second: what goes on then finds that the process exits.
void EndingBegins();
void EndingOver();

// Keeps `object` for good.
void LeakOnPurpose(std::shared_ptr<void> object);

// The same for what has no shared owner.
void KeepReachable(void* object);

// A deleter that leaves alone what a fork has copied.
struct DeleteUnlessForked {
  int made_in = ForkCount();
  template <class T>
  void operator()(T* object) const {
    if (made_in == ForkCount()) {
      delete object;
    } else {
      KeepReachable(object);
    }
  }
};

}  // namespace penstock::base
