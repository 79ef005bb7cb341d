// Text for people: names from profiles, quantities with units (src/analysis/text.h), and tables.
//
// Names are whatever a program has declared, or somebody has written into a file. Here they become one line, without
// control characters, which a terminal might obey.
//
// Threads: free functions and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/text.h"

namespace penstock::cli {

using analysis::CountText;
using analysis::PercentText;
using analysis::SizeText;
using analysis::TimeText;

constexpr size_t kTextWidth = 100;

// The number of characters of UTF-8.
size_t WidthOf(std::string_view text);
// At most `most` characters, the last three "..." if it had more.
std::string Shown(std::string_view name, size_t most = 40);
// Lines of at most kTextWidth characters, broken at spaces, all but the first indented.
std::string Wrapped(std::string_view text, size_t indent);

// Rows of cells, aligned: what begins with '<' in the heading to the left, all else to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings) : rows_{std::move(headings)} {}
  // As many cells as there are headings.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.size() == 1; }
  void Write(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace penstock::cli
