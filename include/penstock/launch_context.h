// LaunchContext: what the callable of a Launch node gets besides its arguments: the stream to submit to, and objects it
// needs there that outlive the call.
//
//   graph.Launch("gemv", [](ps::LaunchContext& launch, const float* alpha, ...) -> absl::Status {
//     PS_ASSIGN_OR_RETURN(ps::Cublas* blas, launch.Get<ps::Cublas>());  // penstock/cublas.h; made by the first call
//     return ps::ToStatus(cublasSgemv(blas->handle(), ..., alpha, ..., launch.Zero<float>(), ...), "cublasSgemv");
//   }, ps::OnDevice(alpha), ...);
//
// The stream may be capturing (mode.h). Submitted work then becomes part of a graph, so the callable must not wait,
// must not allocate anything that it frees, and must not depend on how often it is called. A call that CUDA refuses
// during capture, such as cudaMemcpyBatchAsync, keeps the node out of graphs even if the callable handles the error.
//
// Threads: valid during the call only, on the calling thread.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <concepts>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  // The first call makes it with T(launch, args...), where launch.native_stream() is the stream that all users of this
  // T get. A call with other arguments, compared by their types and ==, gets another T, and so do callables of another
  // shared object. Work submitted with one T runs in order, in graphs too, and nothing else uses the T in the meantime,
  // so a library may keep its workspace there. T need not be movable; Ts for several lanes or slots may be made
  // concurrently.
  //
  // The constructor may allocate and wait even if the stream is capturing: the runtime ends that capture first,
  // discards it, and calls the callable once more. So the work that a callable submits in its first call may never run.
  //
  // The T is destroyed with the slot, when the work submitted with it has ended: with its device current, on any
  // thread, in reverse order of construction. A destructor that waits for the whole device (cublasDestroy)
  // breaks captures on other threads. An exception from the constructor fails the node; a callable that catches
  // it must rethrow it.
  template <class T, class... Args>
  PENSTOCK_HIDDEN T& Get(const Args&... args) {
    const auto make = [&args...](LaunchContext& launch) { return std::unique_ptr<T>(new T(launch, args...)); };
    return *FindOrMake<T>(make, args...);
  }

  // The same for a T that has a factory instead, which returns an absl::StatusOr<std::unique_ptr<T>>:
  // T::Make(launch, args...). Returns the factory's error; the callable must return it too. The next run tries again.
  template <class T, class... Args>
    requires requires(LaunchContext& launch, const Args&... args) { T::Make(launch, args...).status(); }
  PENSTOCK_HIDDEN absl::StatusOr<T*> Get(const Args&... args) {
    absl::Status failed;
    const auto make = [&](LaunchContext& launch) -> std::unique_ptr<T> {
      absl::StatusOr<std::unique_ptr<T>> made = T::Make(launch, args...);
      if (made.ok()) return *std::move(made);
      failed.Update(made.status());  // nvcc warns of an assignment
      return nullptr;
    };
    T* const object = FindOrMake<T>(make, args...);
    if (object == nullptr) return failed;
    return object;
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
  // An object with the arguments it was made with.
  template <class T, class... Args>
  struct Made {
    std::tuple<Args...> args;
    T* object;  // owned; a destructor may throw
  };

  // Not const, since equal constants may be folded into one address.
  template <class M>
  PENSTOCK_HIDDEN static const void* Type() {
    static char tag = 0;
    return &tag;
  }

  // Returns null if `make` does.
  template <class T, class F, class... Args>
  PENSTOCK_HIDDEN T* FindOrMake(const F& make, const Args&... args) {
    static_assert((std::equality_comparable<std::decay_t<const Args&>> && ...),
                  "Get compares its arguments with those of earlier calls: each needs an operator==");
    using M = Made<T, std::decay_t<const Args&>...>;
    const std::tuple<const Args&...> given(args...);
    const auto is = [](const void* made, const void* by) {
      return static_cast<const M*>(made)->args == *static_cast<const std::tuple<const Args&...>*>(by);
    };
    if (void* const found = Find(Type<M>(), is, &given)) return static_cast<M*>(found)->object;
    const auto make_one = [&](LaunchContext& launch) -> void* {
      std::unique_ptr<T> object = make(launch);
      if (object == nullptr) return nullptr;
      M* const made = new M{std::tuple<std::decay_t<const Args&>...>(args...), object.get()};
      (void)object.release();
      return made;
    };
    void* const made = Make(
        Type<M>(),
        [](LaunchContext& launch, const void* by) { return (*static_cast<const decltype(make_one)*>(by))(launch); },
        &make_one,
        [](void* of) {
          const std::unique_ptr<M> all(static_cast<M*>(of));
          delete all->object;
        });
    return made == nullptr ? nullptr : static_cast<M*>(made)->object;
  }

  // The object of this type of which is(object, by) is true; null if there is none.
  void* Find(const void* type, bool (*is)(const void* object, const void* by), const void* by) const;
  // Keeps what make(*this, by) returns, unless it is null.
  void* Make(const void* type, void* (*make)(LaunchContext&, const void* by), const void* by, void (*destroy)(void*));
  const void* Zeros() const;

  void* stream_;
  int device_;
  std::string_view device_name_;
  runtime::LaunchObjects* objects_;
};

// The name before 0.1.0.
using Foreign [[deprecated("renamed LaunchContext")]] = LaunchContext;

}  // namespace penstock
