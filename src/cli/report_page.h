// The report: one HTML page that shows a profile and needs nothing else, no network, no other file.
//
// The page's files are in src/cli/report, and are joined into the command when it is built (cmake/EmbedReport.cmake).
// The data stands in the page as JSON, which the page's script reads; names in it are hostile, and can neither end the
// element that holds them nor begin another.
//
// Threads: free functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "penstock/profile.h"

namespace penstock::cli {

// A part of the page: text, or a place for data of the report.
struct PagePiece {
  enum class Data { kNone, kProfile, kFindings, kAbout };
  Data data = Data::kNone;
  std::string_view text;  // of kNone
};

// The parts of the page in order.
const std::vector<PagePiece>& ReportPieces();

// The page of a profile. `file`: the name of the file that it was read from, for the title. `findings`: an array of
// objects as `penstock doctor --json` writes them; findings.js says which members the page reads.
std::string ReportPage(const Profile& profile, std::string_view file, const nlohmann::json& findings);

// JSON that may stand in a <script> element: the same value, without a character that HTML or a script's reader could
// take for its own.
std::string JsonForHtml(std::string_view json);

}  // namespace penstock::cli
