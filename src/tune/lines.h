// Lines: takes the lines that say something off a text, and counts all of them: of settings and of measurements.
//
// Ownership: borrows the text.
// Threads:   one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace penstock::tune {

// Without blanks at its ends.
std::string_view Stripped(std::string_view text);

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  // The next line that is neither blank nor begins with '#', stripped; none at the end.
  std::optional<std::string_view> Next();
  // InvalidArgument: "line 3: `problem`", with the number of the line that Next returned last.
  absl::Status Refuse(std::string_view problem) const;

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

}  // namespace penstock::tune
