// EndElsewhere: lets any thread be the last owner of something whose end must be waited for.
//
// The thread that drops a Runtime or Pipeline waits until its work has ended, and joins its threads. One of those
// threads, or a thread that does the work, cannot do that. It hands the object to a thread (`ps-end`) made for this one
// end, which does the usual steps and exits.
//
// Ownership: takes over `object`, which the other thread destroys. It is leaked on purpose (process_life.h) if the
//            process exits meanwhile, or if the system refuses a thread.
// Threads:   thread-safe.
// Errors:    false if the system refuses a thread: nothing was ended.
#pragma once

#include <functional>
#include <memory>

namespace penstock::base {

// `end` is called once, before `object` is destroyed; it does not throw.
bool EndElsewhere(std::shared_ptr<void> object, std::function<void()> end);

}  // namespace penstock::base
