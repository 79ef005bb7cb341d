// The parts of Name that put a text together.
#include "penstock/name.h"

#include <algorithm>
#include <charconv>

namespace penstock {

Name Name::In(const Name& scope) const {
  if (size_ == 0) return *this;
  Name full("", source_.file, source_.line);
  full.Join({scope.view(), "/", view()});
  return full;
}

Name detail::NumberedName(const Name& name, int number) {
  if (name.view().empty()) return name;
  return Name(std::string(name.view()) + " " + std::to_string(number), name.source().file, name.source().line);
}

void Name::Share() {
  if (text_ != inside_) return;
  owned_ = std::make_shared<const std::string>(text_, size_);
  text_ = owned_->c_str();
}

void Name::Append(std::initializer_list<int64_t> numbers) {
  constexpr size_t kDigits = 20;  // of a number, with its sign
  char tail[3 * (kDigits + 1)];
  char* end = tail;
  for (const int64_t number : numbers) {
    *end++ = ' ';
    end = std::to_chars(end, end + kDigits, number).ptr;
  }
  Join({view(), {tail, static_cast<size_t>(end - tail)}});
}

// A part may be this name's own text.
void Name::Join(std::initializer_list<std::string_view> parts) {
  size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  if (size >= kInside) {
    std::string text;
    text.reserve(size);
    for (const std::string_view part : parts) text += part;
    owned_ = std::make_shared<const std::string>(std::move(text));
    text_ = owned_->c_str();
  } else {
    char text[kInside];
    char* end = text;
    for (const std::string_view part : parts) end = std::copy(part.begin(), part.end(), end);
    *end = '\0';
    std::memcpy(inside_, text, size + 1);
    text_ = inside_;
  }
  size_ = size;
}

}  // namespace penstock
