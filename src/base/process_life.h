// The state of the process: whether it is a forked copy, and whether it is exiting.
//
// A copy made by fork has one thread: the library's threads are missing, they may hold its locks forever, and CUDA
// does not work. So the copy refuses everything made before the fork and leaves it alone. An exiting process
// destroys its statics while the library's threads still run, and after parts of CUDA are gone, so a runtime
// destroyed then is leaked too.
//
// Ownership: objects leaked on purpose stay reachable, so that leak checkers can tell them from real leaks.
// Threads:   thread-safe; ForkCount is one relaxed load.
#pragma once

#include <memory>

namespace penstock::base {

// Starts counting forks. Cheap after the first call.
void WatchForks();

// The number of forks since WatchForks in this process and the processes it is a copy of, counted in the copy: the
// value differs between a process and its copy, and never changes within a process.
int ForkCount();

// Whether the main thread has returned from main or called exit, so that statics are being destroyed. An exit by
// another thread is not detected.
bool Exiting();

// Bracket an end on a thread of the library (reaper.h). The main thread waits for all of them before it counts as
// exiting, but at most about one second; an end still going on then finds the process exiting.
void EndingBegins();
void EndingOver();

// Keeps `object` forever.
void LeakOnPurpose(std::shared_ptr<void> object);

// The same for an object without a shared owner.
void KeepReachable(void* object);

// A deleter that leaves objects copied by a fork alone.
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
