// The one place where what user code throws becomes a Status.
//
// What ends a thread from inside (pthread_exit, pthread_cancel) unwinds it like an exception, and the process ends
// where that is caught and kept. So it is thrown on.
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
struct ThreadEnds {};  // C++ libraries that tell nothing of it
#endif

// Internal: "<who> threw: <what it says>; catch it there". Null: something that is no std::exception. What it says may
// be null, and any bytes: what is not printable UTF-8 is escaped, and what is longer than 4096 bytes is cut.
absl::Status Thrown(std::string_view who, const std::exception* caught);
// Internal: `who`, on a thread of the library, has ended that.
absl::Status EndedItsThread(std::string_view who);

// Calls `f` where the scope is left because user code ends the thread, unless cancelled before.
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

// Runs `loop`, which a thread of the library was for, on another one of the same name and returns when it has. A thread
// that user code ends calls it last, so that whoever joins it has waited for the other.
void GoOnElsewhere(const std::function<void()>& loop);

// What f returns, a Status or StatusOr, or Internal where it throws; OK where it returns nothing.
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
  } catch (const std::exception& e) {
    return Thrown(who, &e);
  } catch (...) {
    return Thrown(who, nullptr);
  }
}

}  // namespace penstock::base
