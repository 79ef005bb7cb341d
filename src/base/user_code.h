// Marks the threads that are inside a user's callable, so that calls which would wait there can be refused: a worker
// that waits for a worker is a deadlock.
//
// Threads: thread-local state.
#pragma once

#include "src/base/thread.h"

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

// Marks the threads that let go of objects of the user's in the midst of the library's own work, which the end of a
// Runtime or Pipeline would wait for.
inline thread_local int letting_go_depth = 0;

class LetGoScope {
 public:
  LetGoScope() { ++letting_go_depth; }
  ~LetGoScope() { --letting_go_depth; }
  LetGoScope(const LetGoScope&) = delete;
  LetGoScope& operator=(const LetGoScope&) = delete;
};

// Whether the end of a Runtime or Pipeline could wait for the calling thread, so that another has to wait for the end
// (reaper.h).
inline bool MustNotAwaitEnds() { return InUserCode() || letting_go_depth > 0 || OnOwnThread(); }

// Marks the threads that answer what devices ask for (driver/question.h), and so wait for no device themselves.
inline thread_local bool answers_devices = false;

// Marks the threads that stand for a GPU's: what runs there on a host device could call nothing on a GPU.
inline thread_local int device_code_depth = 0;

inline bool InDeviceCode() { return device_code_depth > 0; }

class DeviceCodeScope {
 public:
  DeviceCodeScope() { ++device_code_depth; }
  ~DeviceCodeScope() { --device_code_depth; }
  DeviceCodeScope(const DeviceCodeScope&) = delete;
  DeviceCodeScope& operator=(const DeviceCodeScope&) = delete;

 private:
  UserCodeScope user_code_;
};

}  // namespace penstock::base
