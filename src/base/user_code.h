// Marks threads inside a user's callable, so that calls that would wait there can be refused: a worker that waits for a
// worker is a deadlock.
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

// Marks threads that release the user's objects in the middle of the library's own work, for which the end of a Runtime
// or Pipeline would wait.
inline thread_local int letting_go_depth = 0;

class LetGoScope {
 public:
  LetGoScope() { ++letting_go_depth; }
  ~LetGoScope() { --letting_go_depth; }
  LetGoScope(const LetGoScope&) = delete;
  LetGoScope& operator=(const LetGoScope&) = delete;
};

// Whether the end of a Runtime or Pipeline could wait for the calling thread, so that another thread must wait for that
// end (reaper.h).
inline bool MustNotAwaitEnds() { return InUserCode() || letting_go_depth > 0 || OnOwnThread(); }

// Marks threads that answer hostcalls of devices (driver/hostcall_slot.h), and so must not wait for a device.
inline thread_local bool answers_devices = false;

// Marks threads that stand in for a GPU's: code that runs there on a host device could call nothing on a GPU.
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
