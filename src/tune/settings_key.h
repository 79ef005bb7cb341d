// SettingsKey: the name of one setting, as it stands in front of the "=" of a line: runtime.workers,
// graph "blur".slots.
//
// Threads: plain values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::tune {

struct SettingsKey {
  std::string kind;  // "runtime", "graph", "stage" or "pipeline"
  std::string name;  // of the graph, stage or pipeline; empty for the runtime
  std::string field;  // "slots"

  // The whole of it, with the name in quotes.
  std::string Text() const;
  // No value if the text has another form.
  static std::optional<SettingsKey> Parse(std::string_view text);
};

// A text of any length as a message may show it: one line of at most 60 characters.
std::string ShownText(std::string_view text);

}  // namespace penstock::tune
