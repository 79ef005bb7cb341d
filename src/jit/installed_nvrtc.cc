#include "src/jit/installed_nvrtc.h"

#include <sys/stat.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace penstock::jit {
namespace {

// What tells a file from the one that was at its place before; empty: there is none.
std::string IdentityOf(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return "";
  return absl::StrCat(found.st_dev, " ", found.st_ino, " ", found.st_size, " ", found.st_mtim.tv_sec, " ",
                      found.st_mtim.tv_nsec);
}

// What a patch that keeps the version changes, and a copy of the library on another machine does not; empty: no file.
std::string PatchOf(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return "";
  return absl::StrCat(" (", found.st_size, " bytes of ", found.st_mtim.tv_sec, ")");
}

// Takes a line from the front.
std::string_view TakeLine(std::string_view& text) {
  const size_t size = text.find('\n');
  const std::string_view line = text.substr(0, size);
  text.remove_prefix(size == std::string_view::npos ? text.size() : size + 1);
  return line;
}

}  // namespace

std::string BuildOfNvrtc(const std::string& path, const std::string& version) { return version + PatchOf(path); }

std::string NoteOnNvrtc(const std::string& path, const std::string& build) {
  const std::string library = IdentityOf(path);
  if (library.empty() || path[0] != '/' || !build.ends_with(PatchOf(path))) return "";
  std::string note = absl::StrCat(path, "\n", build, "\n", library, "\n", IdentityOf("/etc/ld.so.cache"), "\n");
  for (const char* name : {"LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"}) {
    const char* const value = std::getenv(name);
    absl::StrAppend(&note, name, value == nullptr ? " is not set" : "=", value == nullptr ? "" : value, "\n");
  }
  return note;
}

std::optional<std::string> BuildInNote(std::string_view note) {
  std::string_view rest = note;
  const std::string path(TakeLine(rest));
  std::string build(TakeLine(rest));
  if (path.empty() || build.empty() || NoteOnNvrtc(path, build) != note) return {};
  return build;
}

}  // namespace penstock::jit
