// JsonWriter: writes one JSON value, piece by piece.
//
// The caller opens and closes what it writes in order, and begins lines; the writer adds commas. Numbers that JSON does
// not have, NaN and the infinities, become 0.
//
// Threads: single-threaded.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "src/observe/chrome_json.h"

namespace penstock::observe {

class JsonWriter {
 public:
  void Open(char bracket) {
    Separate();
    text_ += bracket;
    first_ = true;
  }
  void Close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  // What follows is the member's value.
  void Key(std::string_view name) {
    Separate();
    text_ += JsonString(name) + ":";
    first_ = true;
  }
  void Line() { text_ += '\n'; }

  void Value(std::string_view text) { Piece(JsonString(text)); }
  void Value(const char* text) { Piece(JsonString(text)); }
  void Value(bool is) { Piece(is ? "true" : "false"); }
  void Value(std::integral auto number) { Piece(std::to_string(number)); }
  // To a thousandth, whatever the locale.
  void Value(double number) {
    char text[64];
    const double shown = std::isfinite(number) && std::abs(number) < 1e18 ? number : 0;
    const std::to_chars_result end = std::to_chars(text, text + sizeof(text), shown, std::chars_format::fixed, 3);
    Piece({text, static_cast<size_t>(end.ptr - text)});
  }
  template <class T>
  void Member(std::string_view name, const T& value) {
    Key(name);
    Value(value);
  }

  std::string Finish() && { return std::move(text_); }

 private:
  void Separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void Piece(std::string_view piece) {
    Separate();
    text_ += piece;
  }

  std::string text_;
  bool first_ = true;  // nothing precedes that a comma would part from what comes
};

}  // namespace penstock::observe
