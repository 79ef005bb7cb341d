// What the callable of a Launch node gets besides its arguments: the stream to submit to, and what it needs there that
// outlives the call.
//
//   struct Cublas {  // made by the first call that asks for it
//     explicit Cublas(const ps::LaunchContext& foreign);  // creates a handle, gives it the stream and memory of its
//     own ~Cublas(); cublasHandle_t handle;
//   };
//   graph.Launch("gemv", [](ps::LaunchContext& foreign, const float* alpha, ...) {
//     return ToStatus(cublasSgemv(foreign.Get<Cublas>().handle, ..., alpha, ..., foreign.Zero<float>(), ...));
//   }, ps::OnDevice(alpha), ...);
//
// The stream may be capturing (mode.h): what is submitted becomes part of a graph then, and the callable waits for
// nothing, allocates nothing that it frees, and does nothing that counts how often it is called. A call that CUDA
// refuses there, as it does cudaMemcpyBatchAsync, keeps the node out of graphs even where the callable copes with that.
//
// Threads: valid during the call only, on the calling thread.
#pragma once

#include <string_view>
#include <type_traits>

#include "penstock/export.h"

namespace penstock {

namespace runtime {
class LaunchObjects;
}

class PENSTOCK_EXPORT LaunchContext {
 public:
  // `objects`: the runtime's; null where neither Get nor Zero is called.
  LaunchContext(void* stream, int device, std::string_view device_name, runtime::LaunchObjects* objects = nullptr)
      : stream_(stream), device_(device), device_name_(device_name), objects_(objects) {}

  // The stream as the platform's own handle, a cudaStream_t; <penstock/cuda.h> has it typed. Its device is current.
  void* native_stream() const { return stream_; }
  // Index in the runtime's device list, and its name ("cuda:0").
  int device() const { return device_; }
  std::string_view device_name() const { return device_name_; }  // as in Device::name

  // The T of this device, lane and slot, for all callables that are called there: a library's handle and the memory it
  // works in. T(foreign) makes it when it is first asked for, with the stream that native_stream() is for all who get
  // it. Callables of another shared object get one of their own. What is submitted with a T comes one after the other,
  // in graphs too, and nobody else uses it meanwhile; so a library may keep its working memory there. T need not be
  // movable; Ts for several lanes or slots may be made at once.
  //
  // The constructor may allocate and wait, though the stream may be capturing: the capture ends before and is thrown
  // away, and the callable is called once more. Its first call may therefore go on to submit what is never run.
  //
  // The T is destroyed with the slot, when what was submitted with it has ended, its device current, on any thread, in
  // the opposite order of making. One that waits for the whole device (cublasDestroy) breaks captures that other
  // threads are in. What the constructor throws fails the node; whoever catches it in the callable lets it through.
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

  // A T of nothing but zero bytes in the device's memory, for as long as the slot lives: for libraries that read their
  // scalars there.
  template <class T>
  PENSTOCK_HIDDEN const T* Zero() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kZeroBytes && alignof(T) <= kZeroBytes);
    return static_cast<const T*>(Zeros());
  }
  // The largest size of a T that Zero accepts, in bytes.
  PENSTOCK_HIDDEN static constexpr int kZeroBytes = 64;

 private:
  // Not const: equal constants may be folded into one address.
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

// The name of before 0.1.0.
using Foreign [[deprecated("renamed LaunchContext")]] = LaunchContext;

}  // namespace penstock
