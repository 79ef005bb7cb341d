#include "src/jit/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/base/write_signals.h"

namespace penstock::jit {
namespace {

// A file: this, the checksum of what follows, the key, and four texts with their sizes before them, as 8 bytes each.
constexpr std::string_view kMagic = "penstock kernel 1\n";
constexpr std::string_view kEnding = ".kernel", kTemporary = ".tmp";
constexpr const char* kNote = "nvrtc.note";  // a file with a checksum and the note
constexpr size_t kDigits = 2 * sizeof(Digest);  // in a file's name
constexpr time_t kLeftBehind = 3600;  // seconds after which a temporary file is of a process that was interrupted
constexpr int64_t kLargestFile = int64_t{64} << 20;

std::string_view TextOf(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

void PutText(std::string& to, std::string_view text) {
  const uint64_t size = text.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof(size));
  to.append(text);
}

// Takes `size` bytes from the front; false if there are not so many.
bool Take(std::string_view& from, uint64_t size, std::string_view& taken) {
  if (size > from.size()) return false;
  taken = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}
bool TakeText(std::string_view& from, std::string_view& text) {
  std::string_view bytes;
  uint64_t size = 0;
  if (!Take(from, sizeof(size), bytes)) return false;
  std::memcpy(&size, bytes.data(), sizeof(size));
  return Take(from, size, text);
}

struct KernelFile {
  std::string_view key, architecture, kernel, symbol, image;
};

std::string TextOf(const KernelFile& file) {
  std::string rest(file.key);
  for (const std::string_view text : {file.architecture, file.kernel, file.symbol, file.image}) PutText(rest, text);
  return absl::StrCat(std::string(kMagic), std::string(TextOf(Sha256Of(rest))), rest);
}

// Nothing unless the file is whole.
std::optional<KernelFile> Parse(std::string_view text) {
  KernelFile file;
  std::string_view magic, checksum;
  if (!Take(text, kMagic.size(), magic) || magic != kMagic || !Take(text, sizeof(Digest), checksum)) return {};
  if (TextOf(Sha256Of(text)) != checksum || !Take(text, sizeof(Digest), file.key)) return {};
  for (std::string_view* const part : {&file.architecture, &file.kernel, &file.symbol, &file.image}) {
    if (!TakeText(text, *part)) return {};
  }
  if (!text.empty()) return {};
  return file;
}

bool IsNameOfKernel(std::string_view name) {
  return name.size() == kDigits + kEnding.size() && name.ends_with(kEnding) &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}
// What is written before it is renamed.
std::string TemporaryNameOf(const std::string& name) {
  static std::atomic<int> serial{0};  // tells the names of this process apart
  return absl::StrCat(name, ".", getpid(), ".", serial.fetch_add(1), std::string(kTemporary));
}
bool IsTemporaryName(std::string_view name) {
  if (!name.ends_with(kTemporary)) return false;
  return IsNameOfKernel(name.substr(0, kDigits + kEnding.size())) || name.starts_with(kNote);
}

int OpenAt(int folder, const std::string& name, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = openat(folder, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

bool ReadWhole(int fd, std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = read(fd, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += static_cast<size_t>(count);
  }
  return true;
}
bool WriteWhole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

absl::Status FolderFailed(const std::string& folder, const char* what, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", folder));
}

// A folder that is made below one of another user would be in that user's way: as under sudo, which keeps HOME.
absl::Status MakeFolderBelow(const std::string& parent, const std::string& folder) {
  struct stat found{};
  if (stat(parent.c_str(), &found) != 0) return FolderFailed(parent, "look at", errno);
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    return absl::FailedPreconditionError(absl::StrCat(parent, " belongs to user ", found.st_uid,
                                                      ", so nothing is made there; name a folder of your own"));
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return FolderFailed(folder, "make", errno);
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& folder) {
  std::string parent = folder.starts_with('/') ? "/" : ".";
  for (size_t at = 0; at != std::string::npos;) {
    at = folder.find('/', at + 1);
    std::string part = folder.substr(0, at);
    struct stat found{};
    if (stat(part.c_str(), &found) != 0) PENSTOCK_RETURN_IF_ERROR(MakeFolderBelow(parent, part));
    parent = std::move(part);
  }
  return absl::OkStatus();
}

// Whether only this user can have written the file or folder.
bool IsOwn(const struct stat& found) { return found.st_uid == geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0; }

}  // namespace

struct Cache::Named {
  std::string name;
  int64_t bytes = 0;
  int64_t used = 0;
};

std::optional<std::string> Cache::FolderByEnvironment() {
  if (getauxval(AT_SECURE) != 0) return {};  // of a user with fewer rights than the process has
  if (auto own = base::Variable("PENSTOCK_JIT_CACHE")) {
    if (*own == "off") return {};
    return own;
  }
  const auto of = [](const char* variable, const char* below) -> std::optional<std::string> {
    const char* const folder = std::getenv(variable);
    if (folder == nullptr || *folder != '/') return {};  // a relative one counts as none (XDG Base Directory)
    return absl::StrCat(folder, below);
  };
  if (auto folder = of("XDG_CACHE_HOME", "/penstock/jit")) return folder;
  return of("HOME", "/.cache/penstock/jit");
}

absl::StatusOr<Cache> Cache::Open(const std::string& folder, int64_t most_bytes, bool make) {
  if (make) {
    if (absl::Status made = MakeFolders(folder); !made.ok()) return made;
  }
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FolderFailed(folder, "open", errno);
  Cache cache(fd, most_bytes);
  struct stat found{};
  if (fstat(fd, &found) != 0) return FolderFailed(folder, "look at", errno);
  if (found.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat(folder, " belongs to user ", found.st_uid,
                                                      ", who could put other code there; name a folder of your own"));
  }
  if (!IsOwn(found)) {
    return absl::FailedPreconditionError(
        absl::StrCat("others may write to ", folder, ", and could put other code there; chmod go-w it"));
  }
  return cache;
}

Cache::~Cache() {
  if (fd_ >= 0) close(fd_);
}

// The whole text of a file that is this user's alone.
std::optional<std::string> Cache::Read(const std::string& name, Use use) const {
  const int fd = OpenAt(fd_, name, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return {};
  struct stat found{};
  const bool fits = fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && IsOwn(found) &&
                    found.st_size <= std::min(most_bytes_, kLargestFile);
  std::string text(fits ? static_cast<size_t>(found.st_size) : 0, '\0');
  const bool read = fits && ReadWhole(fd, text);
  if (read && use == Use::kCounts) (void)futimens(fd, nullptr);
  close(fd);
  if (!read) return {};
  return text;
}

std::optional<KernelImage> Cache::Find(const Digest& key) const {
  const std::optional<std::string> text = Read(absl::StrCat(HexOf(key), std::string(kEnding)), Use::kCounts);
  if (!text) return {};
  const std::optional<KernelFile> file = Parse(*text);
  if (!file || file->key != TextOf(key)) return {};
  return KernelImage{std::string(file->symbol), std::string(file->image)};
}

bool Cache::Write(const std::string& name, const std::string& text) const {
  const base::WriteSignalsBlocked blocked;
  std::string aside;
  int fd = -1;
  do {
    aside = TemporaryNameOf(name);
    fd = OpenAt(fd_, aside, O_WRONLY | O_CREAT | O_EXCL, 0600);
  } while (fd < 0 && errno == EEXIST);  // left by a killed process
  if (fd < 0) return false;
  const bool written = WriteWhole(fd, text);
  const bool closed = close(fd) == 0;
  if (written && closed && renameat(fd_, aside.c_str(), fd_, name.c_str()) == 0) return true;
  (void)unlinkat(fd_, aside.c_str(), 0);
  return false;
}

void Cache::Keep(const Digest& key, const Entry& entry, const KernelImage& kernel) const {
  const std::string text =
      TextOf(KernelFile{TextOf(key), entry.architecture, entry.kernel, kernel.symbol, kernel.image});
  if (static_cast<int64_t>(text.size()) > std::min(most_bytes_, kLargestFile)) return;
  (void)Write(absl::StrCat(HexOf(key), std::string(kEnding)), text);
}

std::optional<std::string> Cache::ReadNote() const {
  const std::optional<std::string> text = Read(kNote, Use::kDoesNot);
  if (!text || text->size() < sizeof(Digest)) return {};
  const std::string_view checksum = std::string_view(*text).substr(0, sizeof(Digest));
  const std::string_view note = std::string_view(*text).substr(sizeof(Digest));
  if (TextOf(Sha256Of(note)) != checksum) return {};
  return std::string(note);
}

void Cache::WriteNote(const std::string& note) const {
  (void)Write(kNote, absl::StrCat(std::string(TextOf(Sha256Of(note))), note));
}

// Lists the kernels in the folder, and removes temporary files that an interrupted process has left.
std::vector<Cache::Named> Cache::Files() const {
  std::vector<Named> files;
  const int fd = OpenAt(fd_, ".", O_RDONLY | O_DIRECTORY);  // with a position of its own
  DIR* const open = fd < 0 ? nullptr : fdopendir(fd);
  if (open == nullptr) return files;
  while (const dirent* const entry = readdir(open)) {
    const std::string_view name = entry->d_name;
    struct stat found{};
    if (!IsNameOfKernel(name) && !IsTemporaryName(name)) continue;
    if (fstatat(fd_, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode)) continue;
    if (IsNameOfKernel(name)) files.push_back({std::string(name), found.st_size, found.st_mtime});
    else if (found.st_mtime < time(nullptr) - kLeftBehind) (void)unlinkat(fd_, entry->d_name, 0);
  }
  closedir(open);
  std::sort(files.begin(), files.end(),
            [](const Named& a, const Named& b) { return a.used != b.used ? a.used > b.used : a.name < b.name; });
  return files;
}

void Cache::Shrink() const {
  int64_t sum = 0;
  for (const Named& file : Files()) {
    sum += file.bytes;
    if (sum > most_bytes_) (void)unlinkat(fd_, file.name.c_str(), 0);
  }
}

std::vector<Cache::Entry> Cache::List() const {
  std::vector<Entry> entries;
  for (const Named& named : Files()) {
    const std::optional<std::string> text = Read(named.name, Use::kDoesNot);
    const std::optional<KernelFile> file = text ? Parse(*text) : std::nullopt;
    if (!file) continue;
    entries.push_back({std::string(file->kernel), std::string(file->architecture), named.bytes, named.used});
  }
  return entries;
}

Cache::Cleared Cache::Clear() const {
  Cleared cleared;
  for (const Named& file : Files()) {
    if (unlinkat(fd_, file.name.c_str(), 0) != 0) continue;
    ++cleared.kernels;
    cleared.bytes += file.bytes;
  }
  (void)unlinkat(fd_, kNote, 0);
  return cleared;
}

}  // namespace penstock::jit
