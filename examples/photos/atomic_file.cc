// The hidden name is short and unique by process and count, so a target with the longest name allowed still works.
#include "atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "errors.h"

namespace photos {
namespace {

constexpr int kMaxTries = 100;

std::string HiddenPath(const std::string& path) {
  static std::atomic<uint64_t> count{0};
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return absl::StrCat(folder, ".photos-", getpid(), "-", count.fetch_add(1, std::memory_order_relaxed), ".tmp");
}

absl::Status WriteError(const std::string& path, int error) {
  return SystemError(error, absl::StrCat("cannot write ", Quoted(path)),
                     "is the folder there, writable, and not full?");
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string hidden_path, FILE* file)
    : path_(std::move(path)), hidden_path_(std::move(hidden_path)), file_(file) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      hidden_path_(std::exchange(other.hidden_path_, std::string())),
      file_(std::exchange(other.file_, nullptr)) {}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!hidden_path_.empty()) unlink(hidden_path_.c_str());
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  std::string hidden;
  int fd = -1;
  // Another process of the same number, in another container, may own a name: take the next.
  for (int i = 0; fd < 0 && i < kMaxTries; ++i) {
    hidden = HiddenPath(path);
    fd = open(hidden.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) return WriteError(path, errno);
  FILE* file = fdopen(fd, "wb");
  if (file == nullptr) {
    const int error = errno;
    close(fd);
    unlink(hidden.c_str());
    return WriteError(path, error);
  }
  return AtomicFile(path, std::move(hidden), file);
}

absl::Status AtomicFile::Commit() {
  const bool written = std::ferror(file_) == 0;
  errno = EIO;  // what a failed write of long ago is reported as
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!written || !closed) return WriteError(path_, errno);
  if (std::rename(hidden_path_.c_str(), path_.c_str()) != 0) return WriteError(path_, errno);
  hidden_path_.clear();
  return absl::OkStatus();
}

}  // namespace photos
