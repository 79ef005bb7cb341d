// EndElsewhere: how the last owner of something that has to be waited for may be any thread.
//
// Whoever drops a Runtime or Pipeline waits until its work has ended, and joins its threads. One of those threads, or
// one whose work it is, cannot. It hands over what it has dropped to a thread (`ps-end`) made for this one end, which
// does the ordinary work and goes.
//
// Ownership: takes `object` over; it is destroyed on the other thread. It stays for good (process_life.h) where the
//            process exits meanwhile, or the system refuses a thread.
// Threads:   thread-safe.
// Errors:    false where the system refuses a thread: nothing was ended.
#pragma once

#include <functional>
#include <memory>

namespace penstock::base {

// `end` is called once, before `object` goes; it does not throw.
bool EndElsewhere(std::shared_ptr<void> object, std::function<void()> end);

}  // namespace penstock::base
