// A file that appears under its name whole or not at all: written beside its place under a hidden name, then renamed.
//
// Ownership: removes the hidden file unless Commit has renamed it. A killed process may leave one; its name begins with
//            a dot, so nothing takes it for a picture.
// Threads:   one thread an object; any number of objects, also with the same target: the last Commit wins, whole.
// Ordering:  readers see the old content or the new one. Not flushed to the disk: a power cut may lose the file.
// Errors:    the operating system's reason with the target's name.
#pragma once

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace photos {

class AtomicFile {
 public:
  // Creates the hidden file in the folder of `path`.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  FILE* file() const { return file_; }

  // Closes and renames. Once only.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string hidden_path, FILE* file);

  std::string path_;
  std::string hidden_path_;  // empty: nothing to remove
  FILE* file_;
};

}  // namespace photos
