// std::filesystem with error codes: it throws otherwise.
#include "names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "atomic_file.h"
#include "errors.h"

namespace photos {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 6> kNotices = {"readme",  "license", "licenses",
                                                      "copying", "notice",  "copyright"};

// Photographs may be called readme.png.
bool HasPhotoExtension(const std::string& name) {
  const std::string extension = absl::AsciiStrToLower(fs::path(name).extension().string());
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

bool IsNotice(const std::string& name) {
  const std::string stem = absl::AsciiStrToLower(name.substr(0, name.find('.')));
  return std::find(kNotices.begin(), kNotices.end(), stem) != kNotices.end() && !HasPhotoExtension(name);
}

bool IsCandidate(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code ignored;
  return name[0] != '.' && !IsNotice(name) && !entry.is_directory(ignored);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListPhotos(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    if (IsCandidate(*entry)) names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) {
    return SystemError(error.value(), absl::StrCat("cannot list the input folder ", Quoted(folder)),
                       "name a folder that can be read");
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string EdgesName(const std::string& name) { return name + ".edges.png"; }

std::string JoinPath(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

absl::Status PrepareOutputFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return SystemError(error.value(), absl::StrCat("cannot make the output folder ", Quoted(folder)),
                       "name a folder that can be written");
  }
  // Opens a hidden file in the folder; it goes with the object.
  absl::StatusOr<AtomicFile> probe = AtomicFile::Create(JoinPath(folder, "probe"));
  if (probe.ok()) return absl::OkStatus();
  return Error(probe.status().code(), absl::StrCat("cannot write into the output folder ", Quoted(folder)),
               std::string(probe.status().message()), "name a folder that can be written");
}

bool IsSameFolder(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

}  // namespace photos
