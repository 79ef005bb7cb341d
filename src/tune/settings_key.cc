#include "src/tune/settings_key.h"

#include <cctype>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/base/status.h"

namespace penstock::tune {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

std::string InQuotes(std::string_view name) {
  std::string text = "\"";
  size_t hidden = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (hidden == 0) hidden = graph::HiddenBytes(name.substr(i));
    if (hidden > 0) {
      text += {'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
      --hidden;
    } else {
      if (name[i] == '"' || name[i] == '\\') text += '\\';
      text += name[i];
    }
  }
  return text + '"';
}

int DigitOf(char c) {
  const std::string_view digits(kHexDigits);
  const size_t at = digits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return c == '\0' || at == std::string_view::npos ? -1 : static_cast<int>(at);
}

// Takes what follows a backslash off the text.
std::optional<char> TakeEscaped(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const char c = text[0];
  if (c == '"' || c == '\\') {
    text.remove_prefix(1);
    return c;
  }
  if (c != 'x' || text.size() < 3 || DigitOf(text[1]) < 0 || DigitOf(text[2]) < 0) return std::nullopt;
  const int byte = DigitOf(text[1]) * 16 + DigitOf(text[2]);
  text.remove_prefix(3);
  return static_cast<char>(byte);
}

// Takes a name and its closing quote off the text, which begins behind the opening one.
std::optional<std::string> TakeName(std::string_view& text) {
  std::string name;
  while (!text.empty()) {
    const char c = text[0];
    text.remove_prefix(1);
    if (c == '"') return name;
    if (c != '\\') {
      name += c;
      continue;
    }
    const std::optional<char> escaped = TakeEscaped(text);
    if (!escaped) return std::nullopt;
    name += *escaped;
  }
  return std::nullopt;
}

}  // namespace

std::string SettingsKey::Text() const {
  return kind == "runtime" ? absl::StrCat(kind, ".", field) : absl::StrCat(kind, " ", InQuotes(name), ".", field);
}

std::optional<SettingsKey> SettingsKey::Parse(std::string_view text) {
  SettingsKey key;
  const size_t end = text.find_first_of(". ");
  if (end == std::string_view::npos) return std::nullopt;
  key.kind = std::string(text.substr(0, end));
  text.remove_prefix(end);
  if (key.kind != "runtime") {
    if (!text.starts_with(" \"")) return std::nullopt;
    text.remove_prefix(2);
    std::optional<std::string> name = TakeName(text);
    if (!name) return std::nullopt;
    key.name = *std::move(name);
  }
  if (!text.starts_with('.')) return std::nullopt;
  key.field = std::string(text.substr(1));
  return key;
}

std::string ShownText(std::string_view text) {
  constexpr size_t kMost = 60;
  const std::string line = graph::OneLine(text.substr(0, kMost + 1));
  return line.size() > kMost ? line.substr(0, kMost - 3) + "..." : line;
}

}  // namespace penstock::tune
