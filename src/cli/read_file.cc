#include "src/cli/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/base/status.h"

namespace penstock::cli {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) {
    do {
      fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    } while (fd_ < 0 && errno == EINTR);
  }
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// Appends at most `bytes`. Returns how many; 0: the end; -1: errno says why not.
ssize_t ReadSome(int fd, size_t bytes, std::string& to) {
  const size_t before = to.size();
  to.resize(before + bytes);
  ssize_t got = 0;
  do {
    got = read(fd, to.data() + before, bytes);
  } while (got < 0 && errno == EINTR);
  to.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return got;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(std::string_view what, const std::string& path, size_t most_bytes) {
  const std::string prefix = absl::StrCat(base::Av(what), " '", graph::OneLine(path), "': ");
  const auto failed = [&] {
    const absl::Status status = absl::ErrnoToStatus(errno, prefix + "cannot read it");
    return absl::Status(status.code(), absl::StrCat(status.message(), "; name a file that can be read"));
  };
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(absl::StrCat(prefix, "is larger than ", most_bytes >> 20, " MiB"));
  };
  const OpenFile file(path);
  struct stat is{};
  if (file.fd() < 0 || fstat(file.fd(), &is) != 0) return failed();
  const size_t size = S_ISREG(is.st_mode) ? static_cast<size_t>(is.st_size) : 0;
  if (size > most_bytes) return too_large();
  constexpr size_t kPiece = size_t{1} << 20;
  std::string text;
  text.reserve(size + kPiece);
  while (true) {
    const ssize_t got = ReadSome(file.fd(), kPiece, text);
    if (got < 0) return failed();
    if (got == 0) return text;
    if (text.size() > most_bytes) return too_large();
  }
}

}  // namespace penstock::cli
