// CatchAll: turns exceptions of user code into a Status, in this one place.
//
// Whatever ends a thread from inside (pthread_exit, pthread_cancel) unwinds it like an exception, and the process
// aborts if a handler swallows that. So CatchAll rethrows it.
//
// Threads: stateless.
#pragma once

#include <exception>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "absl/status/status.h"

namespace penstock::base {

#if defined(__GLIBCXX__)
using ThreadEnds = abi::__forced_unwind;
#else
struct ThreadEnds {};  // for C++ libraries that do not expose it
#endif

// Internal: "<who> threw: <what()>; catch it there". `caught` is null for anything but a std::exception. what() may be
// null or any bytes: unprintable bytes are escaped, and text beyond 4096 bytes is cut.
absl::Status Thrown(std::string_view who, const std::exception* caught);
// Internal: `who` has ended a thread of the library.
absl::Status EndedItsThread(std::string_view who);

// Calls `f` if the scope is left because user code ends the thread, unless cancelled before.
template <class F>
class WhenThreadEnds {
 public:
  explicit WhenThreadEnds(F f) : f_(std::move(f)) {}
  WhenThreadEnds(const WhenThreadEnds&) = delete;
  WhenThreadEnds& operator=(const WhenThreadEnds&) = delete;
  ~WhenThreadEnds() {
    if (!cancelled_) f_();
  }
  void Cancel() { cancelled_ = true; }

 private:
  F f_;
  bool cancelled_ = false;
};

// What the library throws through a user's callable: the failure of that call.
class CallFailure : public std::exception {
 public:
  explicit CallFailure(absl::Status status) : status_(std::move(status)) {}
  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return "an index outside a View of Penstock's"; }

 private:
  const absl::Status status_;
};

// Runs `loop`, the body of a library thread, on another thread of the same name, and returns when it has ended. A
// thread that user code ends calls this last, so joining the old thread waits for the new one.
void GoOnElsewhere(const std::function<void()>& loop);

// Returns what f returns (a Status or StatusOr), OK if f returns void, or Internal if it throws; of a CallFailure its
// status.
template <class F>
auto CatchAll(std::string_view who, const F& f)
    -> std::conditional_t<std::is_void_v<decltype(f())>, absl::Status, decltype(f())> {
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      return absl::OkStatus();
    } else {
      return f();
    }
  } catch (ThreadEnds&) {
    throw;
  } catch (const CallFailure& failure) {
    return failure.status();
  } catch (const std::exception& e) {
    return Thrown(who, &e);
  } catch (...) {
    return Thrown(who, nullptr);
  }
}

}  // namespace penstock::base
