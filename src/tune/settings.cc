// Settings as text. See penstock/settings.h.
#include "penstock/settings.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/file.h"
#include "src/base/status.h"
#include "src/tune/lines.h"
#include "src/tune/settings_key.h"

namespace penstock {
namespace {

using tune::Lines;
using tune::SettingsKey;
using tune::ShownText;
using tune::Stripped;

constexpr size_t kMostSettingsBytes = size_t{1} << 20;  // far more than any program's settings, and soon read
constexpr std::string_view kFirstLine = "penstock settings ";
constexpr std::string_view kLastLine = "end";

// A number of `Of`, which is Settings or one of its parts.
template <class Of>
struct NumberField {
  const char* name;
  std::optional<int> Of::* value;
  int least, most;
};
// One of a few words.
template <class Word>
struct WordField {
  const char* name;
  std::optional<Word> Settings::Graph::* value;
  std::span<const std::pair<const char*, Word>> words;
};

constexpr NumberField<Settings> kRuntimeNumbers[] = {
    {"workers", &Settings::workers, 1, 4096},
    {"submission_threads", &Settings::submission_threads, 0, 4096},
    {"staging_threads", &Settings::staging_threads, 1, 4096},
    {"staging_chunk_bytes", &Settings::staging_chunk_bytes, 4096, 1 << 30}};
constexpr NumberField<Settings::Graph> kGraphNumbers[] = {{"slots", &Settings::Graph::slots, 1, 1024},
                                                          {"max_lanes", &Settings::Graph::max_lanes, 1, 1024}};
constexpr NumberField<Settings::Stage> kStageNumbers[] = {{"workers", &Settings::Stage::workers, 1, 1024}};
constexpr NumberField<Settings::Pipeline> kPipelineNumbers[] = {{"window", &Settings::Pipeline::window, 1, 65536}};
constexpr std::pair<const char*, Mode> kModeWords[] = {
    {"stream", Mode::kStream}, {"graph", Mode::kGraph}, {"auto", Mode::kAuto}};
constexpr std::pair<const char*, Resident> kResidentWords[] = {
    {"off", Resident::kOff}, {"auto", Resident::kAuto}, {"on", Resident::kOn}};
constexpr WordField<Mode> kModeField = {"mode", &Settings::Graph::mode, kModeWords};
constexpr WordField<Resident> kResidentField = {"resident", &Settings::Graph::resident, kResidentWords};

// Each of these returns whether the field is the key's. An empty value makes the setting none; `problem` is what is
// wrong with another value.
template <class Of>
bool SetNumber(const NumberField<Of>& field, const SettingsKey& key, std::string_view value, Of& of,
               std::string& problem) {
  if (key.field != field.name) return false;
  if (value.empty()) return (of.*field.value).reset(), true;
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && end == value.data() + value.size() && number >= field.least && number <= field.most) {
    of.*field.value = number;
  } else {
    problem =
        absl::StrCat("it is '", ShownText(value), "'; it must be a number from ", field.least, " to ", field.most);
  }
  return true;
}

template <class Word>
bool SetWord(const WordField<Word>& field, const SettingsKey& key, std::string_view value, Settings::Graph& of,
             std::string& problem) {
  if (key.field != field.name) return false;
  if (value.empty()) return (of.*field.value).reset(), true;
  std::string all;
  for (const auto& [text, word] : field.words) {
    if (value == text) return of.*field.value = word, true;
    absl::StrAppend(&all, all.empty() ? "" : ", ", text);
  }
  problem = absl::StrCat("it is '", ShownText(value), "'; it must be one of ", all);
  return true;
}

template <class Of, size_t kCount>
bool SetNumbers(const NumberField<Of> (&fields)[kCount], const SettingsKey& key, std::string_view value, Of& of,
                std::string& problem) {
  for (const NumberField<Of>& field : fields) {
    if (SetNumber(field, key, value, of, problem)) return true;
  }
  return false;
}

bool SetOfGraph(const SettingsKey& key, std::string_view value, Settings::Graph& of, std::string& problem) {
  return SetNumbers(kGraphNumbers, key, value, of, problem) || SetWord(kModeField, key, value, of, problem) ||
         SetWord(kResidentField, key, value, of, problem);
}

// Changes the part that has the name, which is made if there is none, and is none if it is empty afterwards.
template <class Part, class F>
bool SetNamed(std::map<std::string, Part>& parts, const std::string& name, F set) {
  Part part = parts.contains(name) ? parts[name] : Part();
  const bool known = set(part);
  if (part == Part()) parts.erase(name);
  else parts[name] = part;
  return known;
}

bool SetByKey(Settings& settings, const SettingsKey& key, std::string_view value, std::string& problem) {
  if (key.kind == "runtime") return SetNumbers(kRuntimeNumbers, key, value, settings, problem);
  if (key.kind == "graph") {
    return SetNamed(settings.graphs, key.name, [&](auto& of) { return SetOfGraph(key, value, of, problem); });
  }
  if (key.kind == "stage") {
    return SetNamed(settings.stages, key.name,
                    [&](auto& of) { return SetNumbers(kStageNumbers, key, value, of, problem); });
  }
  return key.kind == "pipeline" && SetNamed(settings.pipelines, key.name, [&](auto& of) {
           return SetNumbers(kPipelineNumbers, key, value, of, problem);
         });
}

template <class Of, size_t kCount>
void AppendNumbers(const NumberField<Of> (&fields)[kCount], const char* kind, const std::string& name, const Of& of,
                   std::string& text) {
  for (const NumberField<Of>& field : fields) {
    const std::optional<int>& value = of.*field.value;
    if (value) absl::StrAppend(&text, SettingsKey{kind, name, field.name}.Text(), " = ", *value, "\n");
  }
}

template <class Word>
void AppendWord(const WordField<Word>& field, const std::string& name, const Settings::Graph& of, std::string& text) {
  for (const auto& [written, word] : field.words) {
    if (of.*field.value != word) continue;
    absl::StrAppend(&text, SettingsKey{"graph", name, field.name}.Text(), " = ", written, "\n");
  }
}

// Empty: the line names the format, and a version that is read here.
std::string WhyForeign(std::optional<std::string_view> line) {
  if (!line || !line->starts_with(kFirstLine)) {
    return absl::StrCat("this is no settings file, which begins with '", base::Av(kFirstLine), Settings::kVersion,
                        "'; penstock tune writes one");
  }
  const std::string_view text = line->substr(kFirstLine.size());
  int version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error == std::errc() && end == text.data() + text.size() && version == Settings::kVersion) return "";
  return absl::StrCat("its version is '", ShownText(text), "', and this library reads version ", Settings::kVersion,
                      "; use the library that it was written for, or tune again");
}

absl::Status ReadLine(std::string_view line, const Lines& lines, std::set<std::string>& seen, Settings& settings) {
  const size_t equals = line.rfind('=');
  if (equals == std::string_view::npos) {
    return lines.Refuse(absl::StrCat("'", ShownText(line), "' is no setting; write KEY = VALUE"));
  }
  const std::string_view key = Stripped(line.substr(0, equals)), value = Stripped(line.substr(equals + 1));
  if (value.empty()) return lines.Refuse(absl::StrCat("'", ShownText(key), "' has no value; write one behind the ="));
  const absl::Status set = settings.Set(key, value);
  if (!set.ok()) return lines.Refuse(base::Str(set.message()));
  const std::optional<SettingsKey> parsed = SettingsKey::Parse(key);
  if (parsed && seen.insert(parsed->Text()).second) return absl::OkStatus();
  return lines.Refuse(absl::StrCat("'", ShownText(key), "' stands twice; leave one of the two"));
}

absl::StatusOr<std::string> SettingsFileText(const std::string& path) {
  const auto unreadable = [](int error) { return absl::ErrnoToStatus(error, "cannot read it"); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) return unreadable(errno);
  std::string text(kMostSettingsBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return unreadable(errno);
  if (text.size() <= kMostSettingsBytes) return text;
  return absl::InvalidArgumentError(absl::StrCat("it has more than ", kMostSettingsBytes,
                                                 " bytes, as no settings file has; penstock tune writes one"));
}

}  // namespace

absl::Status Settings::Set(std::string_view key, std::string_view value) {
  const std::optional<SettingsKey> parsed = SettingsKey::Parse(key);
  std::string problem;
  if (!parsed || !SetByKey(*this, *parsed, value, problem)) {
    return absl::InvalidArgumentError(absl::StrCat("'", ShownText(key),
                                                   "' is no setting; penstock/settings.h lists them, such as "
                                                   "runtime.workers and graph \"NAME\".slots"));
  }
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", ShownText(key), "': ", problem));
}

Settings Settings::Over(const Settings& under) const {
  Settings both = under;
  const std::string text = Text();
  Lines lines(text);
  lines.Next();  // names the format
  for (std::optional<std::string_view> line = lines.Next(); line && *line != kLastLine; line = lines.Next()) {
    const size_t equals = line->rfind('=');
    (void)both.Set(Stripped(line->substr(0, equals)), Stripped(line->substr(equals + 1)));  // it is a line of ours
  }
  return both;
}

absl::StatusOr<Settings> Settings::FromText(std::string_view text) {
  Lines lines(text);
  if (const std::string why = WhyForeign(lines.Next()); !why.empty()) return lines.Refuse(why);
  Settings settings;
  std::set<std::string> seen;
  for (std::optional<std::string_view> line = lines.Next(); line; line = lines.Next()) {
    if (*line != kLastLine) {
      PENSTOCK_RETURN_IF_ERROR(ReadLine(*line, lines, seen, settings));
      continue;
    }
    if (!lines.Next()) return settings;
    return lines.Refuse("something follows 'end', which is the last line; leave it out");
  }
  return lines.Refuse("the text ends without its last line, 'end'; it may be incomplete: tune again");
}

absl::StatusOr<Settings> Settings::Read(const std::string& path) {
  const std::string prefix = absl::StrCat("settings file '", graph::OneLine(path), "'");
  const absl::StatusOr<std::string> text = SettingsFileText(path);
  if (!text.ok()) return base::Prefixed(prefix, text.status());
  absl::StatusOr<Settings> settings = FromText(*text);
  if (!settings.ok()) return base::Prefixed(prefix, settings.status());
  return settings;
}

std::string Settings::Text() const {
  std::string text = absl::StrCat(base::Av(kFirstLine), kVersion, "\n");
  AppendNumbers(kRuntimeNumbers, "runtime", "", *this, text);
  for (const auto& [name, of] : graphs) {
    AppendNumbers(kGraphNumbers, "graph", name, of, text);
    AppendWord(kModeField, name, of, text);
    AppendWord(kResidentField, name, of, text);
  }
  for (const auto& [name, of] : stages) AppendNumbers(kStageNumbers, "stage", name, of, text);
  for (const auto& [name, of] : pipelines) AppendNumbers(kPipelineNumbers, "pipeline", name, of, text);
  return absl::StrCat(text, base::Av(kLastLine), "\n");
}

absl::Status Settings::Write(const std::string& path) const { return base::WriteFile("settings file", path, Text()); }

}  // namespace penstock
