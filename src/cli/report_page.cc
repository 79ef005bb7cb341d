// Puts a profile into the report's page. See report_page.h.
#include "src/cli/report_page.h"

#include <cstddef>

#include "penstock/version.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kLineSeparators = "\xE2\x80\xA8";  // U+2028; U+2029 differs in the last byte

// nlohmann's JSON as text, in which bytes that are no UTF-8 become U+FFFD.
std::string DumpedUtf8(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string JsonForHtml(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (size_t at = 0; at < json.size(); ++at) {
    // All of these stand only in strings, where an escape means the same. Without "<" no tag and no comment begins or
    // ends.
    if (json[at] == '<') {
      text += "\\u003c";
    } else if (json[at] == '>') {
      text += "\\u003e";
    } else if (json[at] == '&') {
      text += "\\u0026";
    } else if (json.substr(at, 2) == kLineSeparators.substr(0, 2) && at + 2 < json.size() &&
               (json[at + 2] == '\xA8' || json[at + 2] == '\xA9')) {
      text += json[at + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      at += 2;
    } else {
      text += json[at];
    }
  }
  return text;
}

std::string ReportPage(const Profile& profile, std::string_view file, const nlohmann::json& findings) {
  std::string page;
  for (const PagePiece& piece : ReportPieces()) {
    switch (piece.data) {
      case PagePiece::Data::kNone: page += piece.text; break;
      case PagePiece::Data::kProfile: page += JsonForHtml(profile.Json()); break;
      case PagePiece::Data::kFindings: page += JsonForHtml(DumpedUtf8(findings)); break;
      case PagePiece::Data::kAbout:
        page += JsonForHtml(DumpedUtf8({{"file", file}, {"version", PENSTOCK_VERSION}}));
        break;
    }
  }
  return page;
}

}  // namespace penstock::cli
