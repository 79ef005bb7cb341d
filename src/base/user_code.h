// Marks the threads that are inside a user's callable, so that calls which would wait there can be refused: a worker
// that waits for a worker is a deadlock.
//
// Threads: thread-local state.
#pragma once

namespace penstock::base {

inline thread_local int user_code_depth = 0;

inline bool InUserCode() { return user_code_depth > 0; }

class UserCodeScope {
 public:
  UserCodeScope() { ++user_code_depth; }
  ~UserCodeScope() { --user_code_depth; }
  UserCodeScope(const UserCodeScope&) = delete;
  UserCodeScope& operator=(const UserCodeScope&) = delete;
};

}  // namespace penstock::base
