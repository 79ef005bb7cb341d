// Name: a name given by the user, with the source line that gave it.
//
// Every declaring function takes a `Name` first. It converts from a string literal and records the caller's file and
// line: a defaulted std::source_location could not follow a parameter pack. Numbers may follow the text:
//
//   graph.ParallelFor(ps::Name("tile", i, j), ...)                   // "tile 3 4"
//
// Names are unique in a graph among its nodes, among its buffers (States that it names and aliases included), and among
// its parameters: errors, plans and traces call each by its name. Graph::Scope puts a prefix before those of a part.
//
// Ownership: borrows the text of a `const char*`, which must be a literal or outlive the graph; copies a std::string.
//            Null is the empty name, which Compile refuses like any other empty one. A text made of parts is in the
//            object itself, without an allocation, if it has at most 31 characters.
// Threads:   const members are thread-safe; no other thread may use a name while Share or an assignment changes it.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "penstock/export.h"

namespace penstock {

// A line in the user's source. `file` is a string literal.
struct SourceLine {
  const char* file = "";
  int line = 0;
};

class PENSTOCK_EXPORT Name {
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
  // The text, followed by one to three numbers: Name("tile", 3, 4) is "tile 3 4".
  template <std::integral I>
  PENSTOCK_HIDDEN Name(const char* text, I i, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : Name(text, file, line) {
    Append({static_cast<int64_t>(i)});
  }
  template <std::integral I, std::integral J>
  PENSTOCK_HIDDEN Name(const char* text, I i, J j, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : Name(text, file, line) {
    Append({static_cast<int64_t>(i), static_cast<int64_t>(j)});
  }
  template <std::integral I, std::integral J, std::integral K>
  PENSTOCK_HIDDEN Name(const char* text, I i, J j, K k, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE())
      : Name(text, file, line) {
    Append({static_cast<int64_t>(i), static_cast<int64_t>(j), static_cast<int64_t>(k)});
  }
  Name(const Name& other) : owned_(other.owned_), text_(other.text_), size_(other.size_), source_(other.source_) {
    CopyInside(other);
  }
  Name(Name&& other) noexcept
      : owned_(std::move(other.owned_)), text_(other.text_), size_(other.size_), source_(other.source_) {
    CopyInside(other);
  }
  Name& operator=(Name other) noexcept {
    owned_ = std::move(other.owned_);
    text_ = other.text_;
    size_ = other.size_;
    source_ = other.source_;
    CopyInside(other);
    return *this;
  }
  ~Name() = default;

  // This name in a scope: "scope/name", declared where the name is. An empty name stays empty.
  Name In(const Name& scope) const;

  // The text.
  std::string_view view() const { return {text_, size_}; }
  // The text, null-terminated.
  const char* c_str() const { return text_; }
  // Moves a text that is in the object itself out of it: c_str() is then good as long as the name or a copy of it.
  void Share();
  // The file and line that gave the name.
  const SourceLine& source() const { return source_; }

  friend bool operator==(const Name& a, const Name& b) { return a.text_ == b.text_ || a.view() == b.view(); }

 private:
  static constexpr size_t kInside = 32;  // bytes of a text in the object itself, with its null

  void CopyInside(const Name& other) {
    if (other.text_ != other.inside_) return;
    std::memcpy(inside_, other.inside_, kInside);
    text_ = inside_;
  }
  void Append(std::initializer_list<int64_t> numbers);
  void Join(std::initializer_list<std::string_view> parts);

  std::shared_ptr<const std::string> owned_;
  const char* text_;  // a literal, *owned_ or inside_
  size_t size_;
  SourceLine source_;
  char inside_[kInside] = {};  // used only if text_ is this
};

namespace detail {
PENSTOCK_EXPORT Name NumberedName(const Name& name, int number);  // "name 1", declared where the name is
}

}  // namespace penstock
