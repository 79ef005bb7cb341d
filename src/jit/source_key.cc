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

bool NamesArchitecture(std::string_view option) {
  return option.starts_with("--gpu-architecture") || option.starts_with("-arch");
}

// Of a folder to search, of a file to include, or of precompiled headers.
bool NamesFiles(std::string_view option) {
  return option.starts_with("-I") || option.starts_with("--include-path") || option.starts_with("-include") ||
         option.starts_with("--pre-include") || option.find("pch") != std::string_view::npos;
}

std::string_view AfterSpace(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

// What an #include names, whose rest this is: what stands between the quotes or brackets; empty if it is something
// else.
std::string_view IncludedName(std::string_view rest) {
  rest = AfterSpace(rest);
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
  directive = AfterSpace(directive);
  if (directive.starts_with("/*") || directive.starts_with("\\")) return false;
  const size_t size = std::min(directive.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), directive.size());
  const std::string_view word = directive.substr(0, size), rest = directive.substr(size);
  if (rest.starts_with("\\") || rest.starts_with("/*")) return false;
  if (word == "include_next" || word == "import" || word == "embed") return false;
  if (word != kInclude) return true;
  const std::string_view name = IncludedName(rest);
  return std::any_of(headers.begin(), headers.end(), [&](const SourceHeader& h) { return h.name == name; });
}

// Whether all that a text includes is among the headers, in comments and in branches not taken too. A text that writes
// # in another way counts as one that includes a file.
bool IncludesOnly(std::string_view text, const std::vector<SourceHeader>& headers) {
  for (const std::string_view other : {"%:", "?\?=", "__has_include", "__has_embed"}) {
    if (text.find(other) != std::string_view::npos) return false;
  }
  for (size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    if (!IncludesOneOf(text.substr(at + 1), headers)) return false;
  }
  return true;
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

Digest KeyOf(const WantedKernel& wanted, const std::string& version) {
  Sha256 hash;
  hash.AddText(kSchema).AddText(version).AddText(AppendedByEnvironment());
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
  const std::vector<SourceHeader>& headers = source.options.headers;
  return IncludesOnly(source.text, headers) && std::all_of(headers.begin(), headers.end(), [&](const SourceHeader& h) {
           return IncludesOnly(h.text, headers);
         });
}

}  // namespace penstock::jit
