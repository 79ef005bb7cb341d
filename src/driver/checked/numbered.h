// Numbered: objects numbered 1, 2, 3 and so on. No number is reused, so a destroyed object is recognized even if the
// driver below gives its address to the next one.
//
// Threads: not thread-safe; CheckedDriver locks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::driver::checked {

template <class T>
class Numbered {
 public:
  // `what` names the kind of object: "stream".
  explicit Numbered(const char* what) : what_(what) {}

  uint64_t Add(T thing) {
    alive_.emplace(++made_, std::move(thing));
    return made_;
  }
  // Null if it is not alive. Valid until it is removed.
  T* Find(uint64_t number) {
    const auto at = alive_.find(number);
    return at == alive_.end() ? nullptr : &at->second;
  }
  const T* Find(uint64_t number) const { return const_cast<Numbered*>(this)->Find(number); }
  void Remove(uint64_t number) { alive_.erase(number); }
  const std::map<uint64_t, T>& alive() const { return alive_; }

  // Describes a number that is not alive: "stream 3 was destroyed before", "stream 9 was never made by this driver".
  std::string WhyNot(uint64_t number) const {
    if (number == 0) return absl::StrCat("a null ", what_);
    return absl::StrCat(what_, " ", number,
                        number <= made_ ? " was destroyed before" : " was never made by this driver");
  }

 private:
  const char* const what_;
  uint64_t made_ = 0;
  std::map<uint64_t, T> alive_;
};

}  // namespace penstock::driver::checked
