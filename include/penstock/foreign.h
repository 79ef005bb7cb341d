// What the callable of a Launch node gets besides its arguments: the stream to submit to.
//
// The stream may be capturing (mode.h): what is submitted becomes part of a graph then, and the callable waits for
// nothing, allocates nothing that it frees, and does nothing that counts how often it is called.
//
// Threads: valid during the call only, on the calling thread.
#pragma once

#include <string_view>

namespace penstock {

class Foreign {
 public:
  Foreign(void* stream, int device, std::string_view device_name)
      : stream_(stream), device_(device), device_name_(device_name) {}

  // The stream as the platform's own handle, a cudaStream_t; <penstock/cuda.h> has it typed. Its device is current.
  void* native_stream() const { return stream_; }
  // Index in the runtime's device list, and its name ("cuda:0").
  int device() const { return device_; }
  std::string_view device_name() const { return device_name_; }

 private:
  void* stream_;
  int device_;
  std::string_view device_name_;
};

}  // namespace penstock
