#include "src/tune/lines.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace penstock::tune {

std::string_view Stripped(std::string_view text) {
  constexpr const char* kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<std::string_view> Lines::Next() {
  while (!rest_.empty()) {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = Stripped(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    if (!line.empty() && line[0] != '#') return line;
  }
  return std::nullopt;
}

absl::Status Lines::Refuse(std::string_view problem) const {
  return absl::InvalidArgumentError(absl::StrCat("line ", number_, ": ", base::Av(problem)));
}

}  // namespace penstock::tune
