// LaunchContext: what the callable of a Launch node gets besides its arguments: the stream to submit to, and objects it
// needs there that outlive the call.
//
//   struct Cublas {  // made by the first call that needs it
//     explicit Cublas(const ps::LaunchContext& launch);  // creates a handle with the stream and a workspace of its own
//     ~Cublas();
//     cublasHandle_t handle;
//   };
//   graph.Launch("gemv", [](ps::LaunchContext& launch, const float* alpha, ...) {
//     return ToStatus(cublasSgemv(launch.Get<Cublas>().handle, ..., alpha, ..., launch.Zero<float>(), ...));
//   }, ps::OnDevice(alpha), ...);
//
// The stream may be capturing (mode.h). Submitted work then becomes part of a graph, so the callable must not wait,
// must not allocate anything that it frees, and must not depend on how often it is called. A call that CUDA refuses
// during capture, such as cudaMemcpyBatchAsync, keeps the node out of graphs even if the callable handles the error.
//
// Threads: valid during the call only, on the calling thread.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <string_view>
#include <type_traits>

#include "penstock/export.h"

namespace penstock {

namespace runtime {
class LaunchObjects;
}

class PENSTOCK_EXPORT LaunchContext {
 public:
  // `objects` belongs to the runtime; null if neither Get nor Zero is called.
  LaunchContext(void* stream, int device, std::string_view device_name, runtime::LaunchObjects* objects = nullptr)
      : stream_(stream), device_(device), device_name_(device_name), objects_(objects) {}

  // The stream as the platform's handle, a cudaStream_t; <penstock/cuda.h> has a typed version. Its device is current.
  void* native_stream() const { return stream_; }
  // Index in the runtime's device list, and its name ("cuda:0").
  int device() const { return device_; }
  std::string_view device_name() const { return device_name_; }  // as in Device::name

  // The T of this device, lane and slot, shared by all callables called there: a library's handle and its workspace.
  // The first call makes it with T(launch), whose native_stream() is the stream that all users of this T get. Callables
  // of another shared object get a T of their own. Work submitted with one T runs in order, in graphs too, and nothing
  // else uses the T in the meantime, so a library may keep its workspace there. T need not be movable; Ts for several
  // lanes or slots may be made concurrently.
  //
  // The constructor may allocate and wait even if the stream is capturing: the runtime ends that capture first,
  // discards it, and calls the callable once more. So the work that a callable submits in its first call may never run.
  //
  // The T is destroyed with the slot, when the work submitted with it has ended: with its device current, on any
  // thread, in reverse order of construction. A destructor that waits for the whole device (cublasDestroy)
  // breaks captures on other threads. An exception from the constructor fails the node; a callable that catches
  // it must rethrow it.
  template <class T>
  PENSTOCK_HIDDEN T& Get() {
    const void* const type = Type<T>();
    void* object = Find(type);
    if (object == nullptr) {
      object = Make(
          type, [](LaunchContext& launch) -> void* { return new T(launch); },
          [](void* made) { delete static_cast<T*>(made); });
    }
    return *static_cast<T*>(object);
  }

  // A T of all zero bytes in device memory, valid as long as the slot: for libraries that read their scalars there.
  template <class T>
  PENSTOCK_HIDDEN const T* Zero() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kZeroBytes && alignof(T) <= kZeroBytes);
    return static_cast<const T*>(Zeros());
  }
  // The largest size of a T that Zero accepts, in bytes.
  PENSTOCK_HIDDEN static constexpr int kZeroBytes = 64;

 private:
  // Not const, since equal constants may be folded into one address.
  template <class T>
  PENSTOCK_HIDDEN static const void* Type() {
    static char tag = 0;
    return &tag;
  }

  void* Find(const void* type) const;
  void* Make(const void* type, void* (*make)(LaunchContext&), void (*destroy)(void*));
  const void* Zeros() const;

  void* stream_;
  int device_;
  std::string_view device_name_;
  runtime::LaunchObjects* objects_;
};

// The name before 0.1.0.
using Foreign [[deprecated("renamed LaunchContext")]] = LaunchContext;

}  // namespace penstock
