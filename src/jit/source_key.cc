#include "src/jit/source_key.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace penstock::jit {
namespace {

constexpr std::string_view kSchema = "penstock source 1";  // a new one where the same source gives another kernel

std::string AppendedByEnvironment() {
  const char* const flags = std::getenv("NVRTC_APPEND_FLAGS");
  return flags == nullptr ? "" : flags;
}

constexpr std::string_view kSpaces = " \t\v\f\r", kAllSpaces = " \t\v\f\r\n";

std::string_view After(std::string_view spaces, std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
  return text;
}

bool NamesArchitecture(std::string_view option) {
  option = After(kAllSpaces, option);
  return option.starts_with("--gpu-architecture") || option.starts_with("-arch");
}

// Whether a text uses what depends on more than the text: on files, or on when it is compiled.
bool UsesMore(std::string_view text) {
  static constexpr std::string_view kMore[] = {"__has_include", "__has_embed", "__DATE__", "__TIME__", "__TIMESTAMP__"};
  return std::any_of(std::begin(kMore), std::end(kMore),
                     [&](std::string_view more) { return text.find(more) != std::string_view::npos; });
}

// Options that name a folder to search, a file to include, or precompiled headers.
bool NamesFiles(std::string_view option) {
  option = After(kAllSpaces, option);
  return UsesMore(option) || option.starts_with("-I") || option.starts_with("--include-path") ||
         option.starts_with("-include") || option.starts_with("--pre-include") ||
         option.find("pch") != std::string_view::npos;
}

// How many characters a splice has that begins here, 0: none. A backslash or its trigraph at a line's end joins the
// line to the next one.
size_t SizeOfSplice(std::string_view text) {
  const size_t backslash = text.starts_with('\\') ? 1 : text.starts_with("?\?/") ? 3 : 0;
  if (backslash == 0) return 0;
  const size_t end = text.find_first_not_of(kSpaces, backslash);
  if (end != std::string_view::npos && text[end] == '\n') return end + 1;
  const size_t lone = text.find('\r', backslash);
  return lone < end ? lone + 1 : 0;
}

std::string WithoutSplices(std::string_view text) {
  std::string joined;
  while (!text.empty()) {
    const size_t size = std::min(text.find_first_of("\\?"), text.size());
    joined += text.substr(0, size);
    text.remove_prefix(size);
    const size_t splice = SizeOfSplice(text);
    if (splice == 0) joined += text.substr(0, 1);
    text.remove_prefix(std::min(std::max<size_t>(splice, 1), text.size()));
  }
  return joined;
}

// What an #include names, whose rest this is: what stands between the quotes or brackets; empty if it is something
// else.
std::string_view IncludedName(std::string_view rest) {
  rest = After(kSpaces, rest);
  if (rest.empty() || (rest[0] != '"' && rest[0] != '<')) return {};
  const char end = rest[0] == '"' ? '"' : '>';
  rest.remove_prefix(1);
  const size_t size = rest.find(end);
  return size == std::string_view::npos ? std::string_view() : rest.substr(0, size);
}

// Whether a directive, which begins behind its #, includes one of the headers, or no file at all. One that is parted by
// a comment or a line's end counts as one that includes a file.
bool IncludesOneOf(std::string_view directive, const std::vector<SourceHeader>& headers) {
  constexpr std::string_view kInclude = "include";
  directive = After(kSpaces, directive);
  if (directive.starts_with("/*") || directive.starts_with("\\")) return false;
  const size_t size = std::min(directive.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), directive.size());
  const std::string_view word = directive.substr(0, size), rest = directive.substr(size);
  if (rest.starts_with("\\") || rest.starts_with("/*")) return false;
  if (word == "include_next" || word == "import" || word == "embed") return false;
  if (word != kInclude) return true;
  const std::string_view name = IncludedName(rest);
  return !name.empty() &&
         std::any_of(headers.begin(), headers.end(), [&](const SourceHeader& h) { return h.name == name; });
}

// Whether all that a text includes is among the headers, in comments and in branches not taken too. A text that writes
// # in another way counts as one that includes a file. It is looked at with its splices and without them, since a raw
// string keeps them.
bool IncludesOnlyAsWritten(std::string_view text, const std::vector<SourceHeader>& headers) {
  for (const std::string_view other : {"%:", "?\?="}) {
    if (text.find(other) != std::string_view::npos) return false;
  }
  if (UsesMore(text)) return false;
  for (size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    if (!IncludesOneOf(text.substr(at + 1), headers)) return false;
  }
  return true;
}
bool IncludesOnly(std::string_view text, const std::vector<SourceHeader>& headers) {
  return IncludesOnlyAsWritten(text, headers) && IncludesOnlyAsWritten(WithoutSplices(text), headers);
}

}  // namespace

std::vector<std::string> OptionsOf(const WantedKernel& wanted) {
  const std::vector<std::string>& own = wanted.source->options.options;
  std::vector<std::string> options{"--no-source-include"};
  if (std::none_of(own.begin(), own.end(), NamesArchitecture)) {
    options.push_back("--gpu-architecture=" + wanted.architecture);
  }
  options.insert(options.end(), own.begin(), own.end());
  return options;
}

std::string ArchitectureIn(const std::vector<std::string>& options) {
  std::string found;
  for (size_t i = 0; i < options.size(); ++i) {
    if (!NamesArchitecture(options[i])) continue;
    const size_t equals = options[i].find('=');
    if (equals != std::string::npos) found = options[i].substr(equals + 1);
    else if (i + 1 < options.size()) found = options[i + 1];
  }
  return found;
}

Digest KeyOf(const WantedKernel& wanted, const std::string& build) {
  Sha256 hash;
  hash.AddText(kSchema).AddText(build).AddText(AppendedByEnvironment());
  const std::vector<std::string> options = OptionsOf(wanted);
  hash.AddText(std::to_string(options.size()));
  for (const std::string& option : options) hash.AddText(option);
  const Source::Parts& source = *wanted.source;
  hash.AddText(std::to_string(source.options.headers.size()));
  for (const SourceHeader& header : source.options.headers) hash.AddText(header.name).AddText(header.text);
  return hash.AddText(source.options.file).AddText(source.text).AddText(source.kernel).Finish();
}

bool KeyTellsAll(const Source::Parts& source) {
  const std::vector<std::string>& options = source.options.options;
  if (std::any_of(options.begin(), options.end(), NamesFiles) || !AppendedByEnvironment().empty()) return false;
  if (UsesMore(source.kernel)) return false;
  const std::vector<SourceHeader>& headers = source.options.headers;
  return IncludesOnly(source.text, headers) && std::all_of(headers.begin(), headers.end(), [&](const SourceHeader& h) {
           return IncludesOnly(h.text, headers);
         });
}

}  // namespace penstock::jit
