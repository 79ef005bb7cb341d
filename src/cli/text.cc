#include "src/cli/text.h"

#include <algorithm>

#include "graph/common/message.h"

namespace penstock::cli {
namespace {

// Whether the byte begins a character.
bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// The first bytes that make `count` characters.
std::string_view FirstCharacters(std::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (BeginsCharacter(text[at]) && count-- == 0) break;
  }
  return text.substr(0, at);
}

}  // namespace

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::string Shown(std::string_view name, size_t most) {
  std::string line = graph::OneLine(name);
  if (WidthOf(line) <= most) return line;
  return std::string(FirstCharacters(line, most < 3 ? 0 : most - 3)) + "...";
}

std::string Wrapped(std::string_view text, size_t indent) {
  const size_t first = std::min(text.find_first_not_of(' '), text.size());
  std::string lines(first, ' ');
  size_t width = 0;
  text.remove_prefix(first);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (width > 0 && width + 1 + WidthOf(word) > kTextWidth) {
      lines += '\n' + std::string(indent, ' ');
      width = indent;
    } else if (width > 0) {
      lines += ' ';
      ++width;
    } else {
      width = first;
    }
    lines += word;
    width += WidthOf(word);
  }
  return lines;
}

void TextTable::Write(std::ostream& out) const {
  const std::vector<std::string>& headings = rows_[0];
  const auto left = [&](size_t column) { return headings[column].starts_with('<'); };
  std::vector<size_t> widths(headings.size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], WidthOf(row[c]) - (&row == &headings && left(c) ? 1 : 0));
    }
  }
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string cell = &row == &headings && left(c) ? row[c].substr(1) : row[c];
      const std::string filler(widths[c] - WidthOf(cell), ' ');
      line += "  " + (left(c) ? cell + filler : filler + cell);
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

}  // namespace penstock::cli
