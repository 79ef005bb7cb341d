#include "src/tune/knobs.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "src/tune/settings_key.h"

namespace penstock::tune {
namespace {

// The values of a field, by the last part of its key. What is usually worth most comes first.
struct Field {
  std::string_view kind, name;
  std::vector<std::string> values;
  bool threads = false;  // the values are numbers of threads
};

const std::vector<Field>& Fields() {
  static const auto& fields =
      *new std::vector<Field>{{"stage", "workers", {"", "2", "4", "8", "16", "32"}, true},
                              {"graph", "slots", {"", "1", "2", "3", "4", "8", "16"}},
                              {"graph", "mode", {"", "stream", "graph"}},
                              {"graph", "resident", {"", "auto", "on"}},
                              {"pipeline", "window", {"", "4", "8", "16", "32", "64"}},
                              {"runtime", "staging_threads", {"", "1", "2", "4", "8", "14"}, true},
                              {"runtime", "staging_chunk_bytes", {"", "262144", "1048576", "4194304", "16777216"}},
                              {"runtime", "workers", {"", "1", "2", "4", "8", "16"}, true},
                              {"runtime", "submission_threads", {"", "0", "1", "2", "4", "8"}, true},
                              {"graph", "max_lanes", {"", "1", "2", "4", "8"}}};
  return fields;
}

bool IsWanted(const std::string& key, std::string_view field, const std::vector<std::string>& only) {
  return only.empty() || std::any_of(only.begin(), only.end(),
                                     [&](const std::string& wanted) { return wanted == key || wanted == field; });
}

}  // namespace

std::vector<Knob> KnobsOf(const std::vector<std::string>& open, const std::vector<std::string>& only, int cores) {
  std::vector<Knob> knobs;
  for (const Field& field : Fields()) {
    std::vector<std::string> values = field.values;
    if (field.threads) {
      std::erase_if(values, [&](const std::string& value) { return !value.empty() && std::stoi(value) > 2 * cores; });
    }
    for (const std::string& key : open) {
      const std::optional<SettingsKey> parsed = SettingsKey::Parse(key);
      const bool is_it = parsed && parsed->kind == field.kind && parsed->field == field.name;
      if (is_it && IsWanted(key, field.name, only)) knobs.push_back({key, values});
    }
  }
  return knobs;
}

}  // namespace penstock::tune
