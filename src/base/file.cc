// Writes a file in place, or beside its target and then renames it. See file.h.
#include "src/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/base/write_signals.h"

namespace penstock::base {
namespace {

constexpr int kMostLinks = 40;  // the kernel's limit

// What failed, and the errno that says why; 0: nothing failed.
struct Failure {
  int error = 0;
  const char* what = "";
};

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string RealPath(const std::string& path) {
  char text[PATH_MAX];
  return realpath(path.c_str(), text) == nullptr ? "" : text;
}

std::string LinkText(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t size = readlink(path.c_str(), text, sizeof(text));
  return {text, size < 0 ? 0 : static_cast<size_t>(size)};
}

// The open descriptor that a link in /proc/self/fd stands for, or -1.
int DescriptorOf(const std::string& link) {
  const std::string directory = DirectoryOf(link);
  const std::string name = link.substr(directory.size());
  int descriptor = -1;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
  if (error != std::errc() || rest != name.data() + name.size()) return -1;
  const std::string open_ones = RealPath("/proc/self/fd");
  return !open_ones.empty() && RealPath(directory.empty() ? "." : directory) == open_ones ? descriptor : -1;
}

// Where links lead: to a name that is not a link, or to a descriptor.
struct Target {
  std::string path;
  int descriptor = -1;
};

Failure Follow(const std::string& path, Target& target) {
  if (path.find('\0') != std::string::npos) return {EINVAL, "use a path with a null character in it"};
  target.path = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat now{};
    if (lstat(target.path.c_str(), &now) != 0 || !S_ISLNK(now.st_mode)) return {};
    target.descriptor = DescriptorOf(target.path);
    if (target.descriptor >= 0) return {};
    const std::string text = LinkText(target.path);
    if (text.empty()) return {errno, "follow its link"};
    target.path = text[0] == '/' ? text : DirectoryOf(target.path) + text;
  }
  return {ELOOP, "follow its links"};
}

int Open(const std::string& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

Failure WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // another holder has made the descriptor non-blocking
      pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (written <= 0) return {written < 0 ? errno : EIO, "write it"};
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Failure WriteAndClose(int fd, std::string_view text) {
  const Failure written = WriteAll(fd, text);
  const bool closed = close(fd) == 0;
  return written.error != 0 || closed ? written : Failure{errno, "write it"};
}

Failure WriteInPlace(const std::string& path, int flags, std::string_view text) {
  const int fd = Open(path, O_WRONLY | flags);
  return fd < 0 ? Failure{errno, "open it"} : WriteAndClose(fd, text);
}

// A name beside `path` that no other writer, in this process or another, uses, and that is not longer than usual names.
std::string TemporaryName(const std::string& path) {
  static std::atomic<int> serial{0};  // tells the names of this process apart
  return absl::StrCat(DirectoryOf(path), ".penstock.", getpid(), ".", serial.fetch_add(1), ".tmp");
}

// A new file with the owner and mode of `old`, or the defaults if `old` is null; -1 and errno on failure.
int MakeLike(const struct stat* old, const std::string& path) {
  const mode_t mode = old == nullptr ? 0666 : old->st_mode & 0777;
  const int fd = Open(path, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (fd < 0 || old == nullptr) return fd;
  struct stat made{};
  const bool same = fstat(fd, &made) == 0 && made.st_uid == old->st_uid && made.st_gid == old->st_gid;
  if ((same || fchown(fd, old->st_uid, old->st_gid) == 0) && fchmod(fd, old->st_mode & 07777) == 0) return fd;
  const int error = errno;
  close(fd);
  unlink(path.c_str());
  errno = error;
  return -1;
}

// Writes a file beside `path` and renames it. `refused`: the system allows no new file there.
Failure Replace(const std::string& path, const struct stat* old, std::string_view text, bool& refused) {
  std::string temporary;
  int fd = -1;
  do {
    temporary = TemporaryName(path);
    fd = MakeLike(old, temporary);
  } while (fd < 0 && errno == EEXIST);  // left by a killed process
  if (fd < 0) {
    refused = errno != ENOSPC && errno != EDQUOT;
    return {errno, "create it"};
  }
  Failure failure = WriteAndClose(fd, text);
  if (failure.error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) {
    failure = {errno, "put it in place"};
    refused = true;
  }
  if (failure.error != 0) unlink(temporary.c_str());
  return failure;
}

Failure WriteTo(const std::string& path, std::string_view text) {
  Target target;
  if (const Failure failure = Follow(path, target); failure.error != 0) return failure;
  if (target.descriptor >= 0) return WriteAll(target.descriptor, text);
  struct stat old{};
  const bool exists = stat(target.path.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) return {errno, "look at it"};
  if (exists && S_ISDIR(old.st_mode)) return {EISDIR, "write it"};
  if (exists && !S_ISREG(old.st_mode)) return WriteInPlace(target.path, 0, text);
  bool refused = false;
  if (!exists) return Replace(target.path, nullptr, text, refused);
  if (faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) != 0) return {errno, "write it"};
  if (old.st_nlink == 1) {
    const Failure failure = Replace(target.path, &old, text, refused);
    if (!refused) return failure;
  }
  return WriteInPlace(target.path, O_TRUNC, text);
}

Failure FindObstacle(const std::string& path) {
  Target target;
  if (const Failure failure = Follow(path, target); failure.error != 0 || target.descriptor >= 0) return failure;
  struct stat old{};
  const bool exists = stat(target.path.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) return {errno, "look at it"};
  if (exists && S_ISDIR(old.st_mode)) return {EISDIR, "write it"};
  if (exists)
    return faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) == 0 ? Failure() : Failure{errno, "write it"};
  const std::string directory = DirectoryOf(target.path);
  const bool may = faccessat(AT_FDCWD, directory.empty() ? "." : directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  return may ? Failure() : Failure{errno, "create it"};
}

absl::Status StatusOf(const Failure& failure, std::string_view what, const std::string& path) {
  if (failure.error == 0) return absl::OkStatus();
  const absl::Status status =
      absl::ErrnoToStatus(failure.error, absl::StrCat(Av(what), " '", path, "': cannot ", failure.what));
  return absl::Status(status.code(), absl::StrCat(status.message(), "; choose a path that can be written"));
}

}  // namespace

absl::Status WriteFile(std::string_view what, const std::string& path, std::string_view text) {
  const WriteSignalsBlocked blocked;
  return StatusOf(WriteTo(path, text), what, path);
}

absl::Status CheckWritable(std::string_view what, const std::string& path) {
  return StatusOf(FindObstacle(path), what, path);
}

}  // namespace penstock::base
