#include "src/tune/measurement_text.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "src/tune/lines.h"
#include "src/tune/settings_key.h"

namespace penstock::tune {
namespace {

constexpr std::string_view kMeasurementLine = "penstock measurement 1";

template <class T>
bool ReadNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

bool ReadMember(std::string_view key, std::string_view value, Measurement& to) {
  if (key == "runs") return ReadNumber(value, to.runs);
  if (key == "run_us") return ReadNumber(value, to.run_us) && std::isfinite(to.run_us);
  if (key != "open" || !SettingsKey::Parse(value)) return false;
  to.open.emplace_back(value);
  return true;
}

}  // namespace

std::string TextOf(const Measurement& measurement) {
  std::string text(kMeasurementLine);
  char run_us[32];
  const auto [end, error] = std::to_chars(run_us, run_us + sizeof(run_us), measurement.run_us);
  absl::StrAppend(&text, "\nruns = ", measurement.runs, "\nrun_us = ");
  text.append(run_us, end);
  text += '\n';
  for (const std::string& key : measurement.open) absl::StrAppend(&text, "open = ", key, "\n");
  return text + "end\n";
}

absl::StatusOr<Measurement> MeasurementFrom(std::string_view text) {
  Lines lines(text);
  if (lines.Next() != kMeasurementLine) return lines.Refuse("this is no measurement of this version of the library");
  Measurement measurement;
  for (std::optional<std::string_view> line = lines.Next(); line; line = lines.Next()) {
    if (*line == "end") return measurement;
    const size_t equals = line->find('=');
    const std::string_view key = Stripped(line->substr(0, equals));
    const std::string_view value = equals == std::string_view::npos ? "" : Stripped(line->substr(equals + 1));
    if (!ReadMember(key, value, measurement)) return lines.Refuse("it has no such member");
  }
  return lines.Refuse("the text is incomplete");
}

}  // namespace penstock::tune
