// What a folder holds: the photographs that can be tried, with their sizes, and the files that cannot, with the reason.
//
// Threads: plain values; ReadCatalogue is a pure function of the file system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "image_io.h"

namespace photos {

struct Photo {
  std::string name;  // in its folder
  std::string path;
  ImageInfo info;
};

struct Catalogue {
  std::vector<Photo> photos;  // in the order of their names
  std::vector<absl::Status> refused;  // a file each; the message names it
  int64_t max_width = 0;  // over all photographs
  int64_t max_height = 0;
};

// Reads the header of every file. Errors: the folder cannot be listed; NotFound where it holds no file to try.
absl::StatusOr<Catalogue> ReadCatalogue(const std::string& folder);

}  // namespace photos
