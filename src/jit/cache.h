// Cache: compiled kernels on disk, one file each, for the next process that wants the same.
//
// A file is named after its key. It holds the key, what `penstock jit list` shows, the kernel, and a checksum of all of
// it; one that is damaged, or of another form, counts as none and is replaced. Files are written aside and renamed, so
// any number of processes may use a folder at once: of two that write the same kernel one wins, and both are right. A
// folder holds as many bytes as it may; beyond that, those that were used longest ago go.
//
// Whoever can write there can have code run by whoever reads it. So a folder that belongs to another user, or that the
// group or others may write to, is refused, and files of other users count as none.
//
// Ownership: holds the folder open.
// Threads:   thread-compatible; several objects may be of one folder.
// Errors:    Open: FailedPrecondition for a folder that is refused, or from errno. Everything else fails by doing
//            nothing: a full disk or a folder that cannot be written to costs the next process a compilation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/jit/kernel_image.h"
#include "src/jit/sha256.h"

namespace penstock::jit {

class Cache {
 public:
  static constexpr int64_t kMostBytes = int64_t{256} << 20;

  struct Entry {
    std::string kernel;  // as its Source names it
    std::string architecture;
    int64_t bytes = 0;  // of the file
    int64_t used = 0;  // when it was last used, in seconds since 1970
  };
  struct Cleared {
    int64_t kernels = 0;
    int64_t bytes = 0;
  };

  // The folder of this process: PENSTOCK_JIT_CACHE, $XDG_CACHE_HOME/penstock/jit, or ~/.cache/penstock/jit. None if the
  // first is "off", if nothing names one, or if the process has more rights than its user (setuid).
  static std::optional<std::string> FolderByEnvironment();

  // Makes the folder, and those above it, unless `make` is false: then NotFound if there is none. None is made below
  // one that belongs to neither this user nor root. Of folders that exist already, only the last one is checked.
  static absl::StatusOr<Cache> Open(const std::string& folder, int64_t most_bytes = kMostBytes, bool make = true);
  Cache(Cache&& other) noexcept : fd_(std::exchange(other.fd_, -1)), most_bytes_(other.most_bytes_) {}
  Cache& operator=(Cache&&) = delete;
  ~Cache();

  // The kernel of the key, which now counts as used.
  std::optional<KernelImage> Find(const Digest& key) const;
  // Keeps it. `entry` says what it is; its numbers are not looked at.
  void Keep(const Digest& key, const Entry& entry, const KernelImage& kernel) const;
  // Removes what was used longest ago, until the rest is no more than may be. To be called after kernels were kept.
  void Shrink() const;

  // The note on the compiler that makes what is kept (installed_nvrtc.h); nothing if there is none, or if it is
  // damaged.
  std::optional<std::string> ReadNote() const;
  void WriteNote(const std::string& note) const;

  // All kernels, those used last first.
  std::vector<Entry> List() const;
  // Removes all of them, the note, and what interrupted processes have left more than an hour ago.
  Cleared Clear() const;

 private:
  struct Named;

  Cache(int fd, int64_t most_bytes) : fd_(fd), most_bytes_(most_bytes) {}
  std::vector<Named> Files() const;
  enum class Use : uint8_t { kCounts, kDoesNot };  // whether the file now counts as used
  std::optional<std::string> Read(const std::string& name, Use use) const;
  bool Write(const std::string& name, const std::string& text) const;

  int fd_;  // of the folder; -1: moved from
  int64_t most_bytes_;
};

}  // namespace penstock::jit
