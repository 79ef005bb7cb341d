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
