// Name: a name given by the user, with the source line that gave it.
//
// Every declaring function takes a `Name` first. It converts from a string literal and records the caller's file and
// line: a defaulted std::source_location could not follow a parameter pack.
//
// Ownership: borrows the text of a `const char*`, which must be a literal or outlive the graph; copies a std::string.
//            Null is the empty name, which Compile refuses like any other empty one.
// Threads:   immutable.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace penstock {

// A line in the user's source. `file` is a string literal.
struct SourceLine {
  const char* file = "";
  int line = 0;
};

class Name {
 public:
  // Takes the text and, by default, the file and line of the caller.
  Name(const char* text, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT: implicit
      : text_(text != nullptr ? text : ""),
        size_(std::string_view(text_).size()),
        source_{file != nullptr ? file : "", line} {}
  Name(std::string text, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT: implicit
      : owned_(new std::string(std::move(text))),
        text_(owned_->c_str()),
        size_(std::string_view(text_).size()),
        source_{file != nullptr ? file : "", line} {}

  // The text.
  std::string_view view() const { return {text_, size_}; }
  // The text, null-terminated.
  const char* c_str() const { return text_; }
  // The file and line that gave the name.
  const SourceLine& source() const { return source_; }

  friend bool operator==(const Name& a, const Name& b) { return a.text_ == b.text_ || a.view() == b.view(); }

 private:
  std::shared_ptr<const std::string> owned_;
  const char* text_;
  size_t size_;
  SourceLine source_;
};

}  // namespace penstock
