#include "src/base/environment.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace penstock::base {
namespace {

// The names before 0.1.0, read if the new ones are not set. Remove them when 0.1.0 is tagged.
struct Renamed {
  const char *name, *before;
};
constexpr Renamed kRenamed[] = {{"PENSTOCK_SUBMISSION_THREADS", "PENSTOCK_FEEDERS"},
                                {"PENSTOCK_CHECK_AGAINST_HOST", "PENSTOCK_CHECK_TWINS"}};

const char* ValueOf(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

}  // namespace

std::optional<std::string> Variable(const char* name) {
  if (const char* const value = ValueOf(name); value != nullptr) return value;
  for (const Renamed& renamed : kRenamed) {
    if (std::string_view(renamed.name) != name) continue;
    if (const char* const value = ValueOf(renamed.before); value != nullptr) return value;
  }
  return std::nullopt;
}

std::optional<std::string> WordOf(const char* name) {
  std::optional<std::string> value = Variable(name);
  if (value) absl::AsciiStrToLower(&*value);
  return value;
}

absl::StatusOr<bool> FlagOf(const char* name) {
  const std::optional<std::string> word = WordOf(name);
  if (!word) return false;
  const auto is_word = [&](const char* other) { return *word == other; };
  constexpr const char* kOn[] = {"1", "true", "yes", "on"};
  constexpr const char* kOff[] = {"0", "false", "no", "off"};
  if (std::any_of(std::begin(kOn), std::end(kOn), is_word)) return true;
  if (std::any_of(std::begin(kOff), std::end(kOff), is_word)) return false;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is '", absl::CEscape(Variable(name).value_or("")),
                   "'; it must be 1, true, yes or on, or else 0, false, no, off or nothing"));
}

}  // namespace penstock::base
